"""ragged-dot: products of groups of rows, whose sizes are known when the program runs.

One dimension of lhs is ragged: the last dimension of group_sizes says how many of its rows belong
to each group, one group after another. group_sizes may have further dimensions in front: lhs's
batch dimensions, then those of the ragged one's kind that stand before it. The ragged dimension is
  free: rows of group j are multiplied by rhs[j] of the group dimension; rows of no group give 0;
  contracting: the result has a first dimension of groups, each of which sums its own rows;
  batch: the op is a dot, whatever the groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from haloc.ir.dtype import BF16, F32, F64, PRED, S32, S64
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import Dims
from haloc.ops.contraction import (
    DOT_DIMS,
    PRECISION,
    dot_attrs,
    dot_dims,
    dot_general,
    free_dims,
    infer_dot,
    narrow,
    wide_operands,
)
from haloc.ops.example import ExampleGraph
from haloc.ops.expand import Beside
from haloc.ops.regions import braces, check_dims, text
from haloc.ops.shaping import broadcast_array
from haloc.ops.table import OPS, Attr, Cost, Evaluator, Expand, OpDef, attr, invalid, register

PROTO = "ragged_dot_dimension_numbers."


def _ragged(instruction: HloInstruction) -> tuple[str, int]:
    """(kind, dimension of lhs): the kind is "free", "contracting" or "batch"."""
    ragged = tuple(attr(instruction, "lhs_ragged_dims"))
    lhs = instruction.operands[0].shape
    if len(ragged) != 1:
        invalid(instruction, f"lhs_ragged_dims={braces(ragged)} must name one dimension")
    check_dims(instruction, "lhs_ragged_dims", ragged, lhs.rank)
    lb, lc, _, _ = dot_dims(instruction)
    kind = "batch" if ragged[0] in lb else "contracting" if ragged[0] in lc else "free"
    return kind, ragged[0]


def _prefix(instruction: HloInstruction) -> tuple[int, ...]:
    """The dimensions of lhs that group_sizes may have in front."""
    kind, dim = _ragged(instruction)
    lb, lc, _, _ = dot_dims(instruction)
    if kind == "batch":
        return lb[: lb.index(dim)]
    same = lc if kind == "contracting" else free_dims(instruction.operands[0].shape.rank, lb, lc)
    return lb + same[: same.index(dim)]


def _infer(instruction: HloInstruction) -> Shape:
    product = infer_dot(instruction)
    lhs, rhs, sizes = (o.shape for o in instruction.operands)
    kind, _ = _ragged(instruction)
    if not sizes.dtype.is_integer or not sizes.rank:
        invalid(instruction, f"group_sizes is {text(sizes)}, wanted an array of integers")
    prefix = tuple(lhs.dims[d] for d in _prefix(instruction))
    if sizes.rank > 1 and sizes.dims[:-1] != prefix:
        wanted = ",".join([*map(str, prefix), "groups"])
        invalid(instruction, f"group_sizes is {text(sizes)}, wanted [groups] or [{wanted}]")
    groups = tuple(attr(instruction, "rhs_group_dims"))
    if len(groups) != (kind == "free"):
        wanted = "one dimension" if kind == "free" else "no dimension"
        fault = f"rhs_group_dims={braces(groups)} must name {wanted}: the ragged one is {kind}"
        invalid(instruction, fault)
    if kind == "batch":
        return product
    if kind == "contracting":
        return product.with_dims((sizes.dims[-1], *product.dims))
    check_dims(instruction, "rhs_group_dims", groups, rhs.rank)
    _, _, rb, rc = dot_dims(instruction)
    if groups[0] in rb + rc:
        invalid(instruction, f"rhs_group_dims={braces(groups)} is a batch or contracting dimension")
    if rhs.dims[groups[0]] != sizes.dims[-1]:
        invalid(instruction, f"rhs {text(rhs)} has other groups than group_sizes {text(sizes)}")
    right = free_dims(rhs.rank, rb, rc)
    place = product.rank - len(right) + right.index(groups[0])
    return product.with_dims(product.dims[:place] + product.dims[place + 1 :])


def _of_one_group(instruction: HloInstruction) -> dict[str, tuple[int, ...]]:
    """DOT_DIMS without the group dimension of rhs."""
    groups = tuple(attr(instruction, "rhs_group_dims"))
    dims = dict(zip(DOT_DIMS, dot_dims(instruction)))
    for group in groups:
        for name in ("rhs_batch_dims", "rhs_contracting_dims"):
            dims[name] = tuple(d - (d > group) for d in dims[name])
    return dims


def _places(instruction: HloInstruction) -> list[tuple[tuple[int, ...], int]]:
    """(prefix, ragged dimension) where rows are chosen: in the product when the ragged dimension
    is free; in lhs and in rhs when it is contracting."""
    kind, dim = _ragged(instruction)
    prefix = _prefix(instruction)
    lb, lc, rb, rc = dot_dims(instruction)
    if kind == "free":
        left = lb + free_dims(instruction.operands[0].shape.rank, lb, lc)
        return [(tuple(left.index(d) for d in prefix), left.index(dim))]
    right = dict(zip(lb + lc, rb + rc))
    return [(prefix, dim), (tuple(right[d] for d in prefix), right[dim])]


# --- Evaluation --------------------------------------------------------------------------------


def _evaluate(instruction: HloInstruction, operands: list[Value], context: Evaluator) -> Value:
    lhs, rhs = wide_operands(instruction, operands)
    kind, _ = _ragged(instruction)
    dims = dot_dims(instruction)
    dtype = instruction.shape.dtype
    if kind == "batch":
        return narrow(dot_general(lhs, rhs, dims), dtype)
    sizes = np.asarray(operands[2]).astype(np.int64)
    if sizes.ndim == 1:
        sizes = np.broadcast_to(sizes, (*(lhs.shape[d] for d in _prefix(instruction)), len(sizes)))
    result = np.zeros(instruction.shape.dims, lhs.dtype)
    places = _places(instruction)
    one = _of_one_group(instruction)
    end = np.zeros(sizes.shape[:-1], np.int64)
    for j in range(sizes.shape[-1]):
        start, end = end, end + sizes[..., j]
        if kind == "free":
            group = np.take(rhs, j, attr(instruction, "rhs_group_dims")[0])
            product = dot_general(lhs, group, tuple(one.values()))  # type: ignore[arg-type]
            rows = _rows(start, end, *places[0], product.shape)
            result = np.where(rows, product, result)
        else:
            left = np.where(_rows(start, end, *places[0], lhs.shape), lhs, lhs.dtype.type(0))
            right = np.where(_rows(start, end, *places[1], rhs.shape), rhs, rhs.dtype.type(0))
            result[j] = dot_general(left, right, dims)
    return narrow(result, dtype)


def _rows(
    start: np.ndarray, end: np.ndarray, prefix: tuple[int, ...], dim: int, dims: tuple[int, ...]
) -> np.ndarray:
    """Whether each element of an array of `dims` has its index along `dim` in [start, end)."""
    index = broadcast_array(np.arange(dims[dim]), (dim,), dims)
    first, last = (broadcast_array(x, prefix, dims) for x in (start, end))
    return (first <= index) & (index < last)


# --- Expansion ---------------------------------------------------------------------------------


def _expand(instruction: HloInstruction) -> HloInstruction:
    """ragged-dot => a loop over groups, each of which multiplies and then chooses its rows

    Rows are chosen after the product where they are free: those of another group may meet an
    infinity in this group's rhs.
    """
    beside = Beside(instruction)
    lhs, rhs, sizes = instruction.operands
    precision = {k: v for k, v in instruction.attrs.items() if k == PRECISION.name}
    kind, _ = _ragged(instruction)
    if kind == "batch":
        dims = dict(zip(DOT_DIMS, dot_dims(instruction)))
        return beside.add("dot", instruction.shape, (lhs, rhs), **dims, **precision)
    groups = sizes.shape.dims[-1]
    sizes = beside.convert(sizes, S64)
    prefix = tuple(lhs.shape.dims[d] for d in _prefix(instruction))
    if sizes.shape.rank == 1:
        sizes = beside.broadcast(sizes, (*prefix, groups), (len(prefix),))
    step = _free_step if kind == "free" else _contracting_step
    zeros = beside.full(0, instruction.shape.with_default_layout())
    ends = beside.full(0, Shape(S64, prefix))

    def body(
        inside: Beside, j: HloInstruction, state: list[HloInstruction]
    ) -> list[HloInstruction]:
        lhs, rhs, sizes, start, result = state
        size = _member(inside, sizes, sizes.shape.rank - 1, j)
        end = inside.binary("add", start, size)
        result = step(instruction, inside, j, lhs, rhs, (start, end), result, precision)
        return [lhs, rhs, sizes, end, result]

    return beside.loop(groups, [lhs, rhs, sizes, ends, zeros], body)[-1]


Bounds = tuple[HloInstruction, HloInstruction]


def _free_step(
    instruction: HloInstruction,
    inside: Beside,
    j: HloInstruction,
    lhs: HloInstruction,
    rhs: HloInstruction,
    bounds: Bounds,
    result: HloInstruction,
    precision: dict[str, Any],
) -> HloInstruction:
    group = _member(inside, rhs, attr(instruction, "rhs_group_dims")[0], j)
    one = _of_one_group(instruction)
    product = inside.add("dot", result.shape, (lhs, group), **one, **precision)
    rows = _chosen(inside, bounds, *_places(instruction)[0], product.shape)
    return inside.select(rows, product, result)


def _contracting_step(
    instruction: HloInstruction,
    inside: Beside,
    j: HloInstruction,
    lhs: HloInstruction,
    rhs: HloInstruction,
    bounds: Bounds,
    result: HloInstruction,
    precision: dict[str, Any],
) -> HloInstruction:
    parts = [
        inside.select(_chosen(inside, bounds, *place, x.shape), x, inside.like(x, 0))
        for place, x in zip(_places(instruction), (lhs, rhs))
    ]
    dims = result.shape.dims
    shape = result.shape.with_dims(dims[1:])
    own = dict(zip(DOT_DIMS, dot_dims(instruction)))
    product = inside.add("dot", shape, parts, **own, **precision)
    zero = inside.constant(0, S32)
    update = inside.reshape(product, (1, *dims[1:]))
    starts = [j] + [zero] * (len(dims) - 1)
    return inside.add("dynamic-update-slice", result.shape, (result, update, *starts))


def _member(inside: Beside, x: HloInstruction, dim: int, j: HloInstruction) -> HloInstruction:
    """x[..., j, ...] along `dim`."""
    dims = x.shape.dims
    zero = inside.constant(0, S32)
    sizes = (*dims[:dim], 1, *dims[dim + 1 :])
    starts = [j if d == dim else zero for d in range(len(dims))]
    one = inside.add(
        "dynamic-slice", x.shape.with_dims(sizes), (x, *starts), dynamic_slice_sizes=sizes
    )
    return inside.reshape(one, dims[:dim] + dims[dim + 1 :])


def _chosen(
    inside: Beside, bounds: Bounds, prefix: tuple[int, ...], dim: int, shape: Shape
) -> HloInstruction:
    """`_rows` in instructions."""
    index = inside.iota(S64, shape.dims, dim)
    first, last = (inside.broadcast(x, shape.dims, prefix) for x in bounds)
    both = inside.compare(first, index, "LE"), inside.compare(index, last, "LT")
    return inside.add("and", Shape(PRED, shape.dims), both)


# --- The row -----------------------------------------------------------------------------------


def _cost(instruction: HloInstruction) -> Cost:
    """That of a dot: XLA takes every group to have all rows of a ragged contracting dimension."""
    return OPS["dot"].cost(instruction)


def _example(graph: ExampleGraph) -> HloInstruction:
    dtype, result = graph.pick([(F32, F32), (F64, F64), (BF16, F32), (S32, S32)])
    b, m, k, n, g = (int(s) for s in graph.rng.integers(1, 5, 5))
    kind = graph.pick(["free", "free", "contracting", "batch"])
    rhs_dims = (b, g, k, n) if kind == "free" else (b, k, n)
    lhs, rhs = graph.operand(dtype, (b, m, k)), graph.operand(dtype, rhs_dims)
    prefix = () if kind == "batch" or graph.rng.random() < 0.5 else (b,)
    sizes = graph.operand(S32, (*prefix, g))
    return graph.add(
        "ragged-dot",
        Shape(result, (g, b, m, n) if kind == "contracting" else (b, m, n)),
        (lhs, rhs, sizes),
        lhs_batch_dims=(0,),
        lhs_contracting_dims=(2,),
        rhs_batch_dims=(0,),
        rhs_contracting_dims=(len(rhs_dims) - 2,),
        lhs_ragged_dims=({"batch": 0, "free": 1, "contracting": 2}[kind],),
        rhs_group_dims=(1,) if kind == "free" else (),
    )


register(
    OpDef(
        opcode="ragged-dot",
        operands=("lhs", "rhs", "group_sizes"),
        attrs=(
            *dot_attrs(PROTO + "dot_dimension_numbers."),
            Attr("lhs_ragged_dims", Dims(), (), PROTO + "lhs_ragged_dimensions"),
            Attr("rhs_group_dims", Dims(), (), PROTO + "rhs_group_dimensions"),
            PRECISION,
        ),
        infer=_infer,
        evaluate=_evaluate,
        lower=Expand(_expand),
        cost=_cost,
        example=_example,
        spec="chlo.ragged_dot",
    )
)
