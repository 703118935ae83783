"""What each op is on padded arrays: the rules of dynamic-padder for ops that combine elements, and
for indexed reads and writes."""

from __future__ import annotations

import numpy as np

from haloc.analysis.reducers import is_repeatable
from haloc.ir.dtype import PRED, DType
from haloc.ir.module import HloComputation, HloInstruction
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.contraction import dot_dims, free_dims
from haloc.ops.gather import window_dims
from haloc.ops.table import attr
from haloc.passes.dynamic_rules import Result, rule
from haloc.passes.dynamic_sizes import Padding, Sizes, renumbered, static


def _identity(region: HloComputation, dtype: DType) -> object | None:
    """z with f(z, x) == x, of a region that is one op on its two parameters; None for others."""
    root = region.root
    if len(root.operands) != 2 or set(root.operands) != set(region.parameters):
        return None
    if root.opcode in ("maximum", "minimum") and not dtype.is_complex:
        low, high = _range(dtype)
        return low if root.opcode == "maximum" else high
    ones = True if dtype.is_pred else -1 if dtype.is_signed else _range(dtype)[1]
    return {"add": 0, "multiply": 1, "or": 0, "xor": 0, "and": ones}.get(root.opcode)


def _range(dtype: DType) -> tuple[object, object]:
    if dtype.is_pred:
        return False, True
    if dtype.is_integer:
        low = -(1 << dtype.bits - 1) if dtype.is_signed else 0
        return low, low + (1 << dtype.bits) - 1
    return -np.inf, np.inf


def _neutral(p: Padding) -> list[HloInstruction]:
    """For each input of a reduction, a scalar that changes no result."""
    inputs = len(p.given) // 2
    if inputs == 1:
        dtype = p.given[0].dtype
        value = _identity(attr(p.x, "to_apply"), dtype)
        has_infinity = not dtype.is_float or np.isinf(np.asarray(np.inf).astype(dtype.numpy))
        if value is not None and (has_infinity or not np.isinf(np.asarray(value, np.float64))):
            return [p.b.constant(value, dtype)]
    if not is_repeatable(p.x):
        p.refuse("a region whose initial value is not known to be its identity")
    return list(p.x.operands[inputs:])


def _masked_inputs(p: Padding, dims: list[int]) -> list[HloInstruction]:
    """All operands of a reduction, the inputs with what is neutral behind the sizes of `dims`."""
    inputs = len(p.given) // 2
    operands = list(p.x.operands)
    if any(d in sizes for sizes in p.sizes[:inputs] for d in dims):
        for n, value in enumerate(_neutral(p)):
            operands[n] = p.masked(n, value, dims)
    return operands


@rule("reduce")
def reduce(p: Padding) -> Result:
    dims = list(attr(p.x, "dimensions"))
    kept = [d for d in range(p.given[0].rank) if d not in dims]
    result = p.rebuilt(_masked_inputs(p, dims))
    return result, renumbered(p.sizes[0], {d: n for n, d in enumerate(kept)})


@rule("reduce-window")
def reduce_window(p: Padding) -> Result:
    window = attr(p.x, "window")
    result = p.rebuilt(_masked_inputs(p, list(range(p.given[0].rank))))
    sizes = {d: p.window_output_size(size, window[d]) for d, size in p.sizes[0].items()}
    return result, sizes


@rule("dot")
def dot(p: Padding) -> Result:
    lb, lc, rb, rc = dot_dims(p.x)
    left = lb + free_dims(p.given[0].rank, lb, lc)
    right = free_dims(p.given[1].rank, rb, rc)
    # A factor behind its size must be 0, and so must the other: it may be infinite.
    for a, b in zip(lc, rc):
        size = p.sizes[0].get(a) or p.sizes[1].get(b)
        if size is not None:
            p.sizes[0][a] = p.sizes[1][b] = size
    lhs, rhs = p.masked(0, p.zero(0), lc), p.masked(1, p.zero(1), rc)
    sizes = renumbered(p.sizes[1], {d: len(left) + n for n, d in enumerate(right)})
    sizes |= renumbered(p.sizes[1], {d: n for n, d in enumerate(rb)})
    return p.rebuilt((lhs, rhs)), sizes | renumbered(p.sizes[0], {d: n for n, d in enumerate(left)})


@rule("convolution")
def convolution(p: Padding) -> Result:
    labels, window = attr(p.x, "dim_labels"), attr(p.x, "window")
    groups = attr(p.x, "batch_group_count") * attr(p.x, "feature_group_count")
    if p.sizes[1] or groups != 1 or labels.input_feature in p.sizes[0]:
        p.refuse("dynamic kernels, features and groups")
    sizes: Sizes = {}
    for d, size in p.sizes[0].items():
        if d == labels.input_batch:
            sizes[labels.output_batch] = size
            continue
        n = labels.input_spatial.index(d)
        sizes[labels.output_spatial[n]] = p.window_output_size(size, window[n])
    lhs = p.masked(0, p.zero(0), labels.input_spatial)
    return p.rebuilt((lhs, p.x.operands[1])), sizes


# --- sort --------------------------------------------------------------------------------------


@rule("sort")
def sort(p: Padding) -> Result:
    """Padding sorts behind everything: a first key says which elements are padding."""
    dim = attr(p.x, "dimensions")
    merged: Sizes = {}
    for sizes in p.sizes:
        merged = sizes | merged
    if dim not in merged:
        return p.same(), merged
    dims = p.given[0].dims
    there = p.inside(dims, dim, merged[dim])
    padding = p.b.unary("not", there)
    region, pred = attr(p.x, "to_apply"), Shape(PRED)
    pairs = [Shape(s.dtype) for s in p.given for _ in range(2)]

    def build(add, args):  # type: ignore[no-untyped-def]
        a, b, *rest = args
        less = add("call", pred, rest, to_apply=region)
        only_b = add("and", pred, (add("not", pred, (a,)), b))
        same = add("compare", pred, (a, b), direction="EQ")
        return add("or", pred, (only_b, add("and", pred, (same, less))))

    order = p.b.region(f"{region.name}_of_padded", [pred, pred, *pairs], build)
    shape = tuple_shape(padding.shape, *(static(s).with_default_layout() for s in p.given))
    whole = p.b.add("sort", shape, (padding, *p.x.operands), **{**p.x.attrs, "to_apply": order})
    found = p.b.elements(whole)[1:]
    return (p.b.tuple(*found) if p.shape.is_tuple else found[0]), merged


# --- Indexed reads and writes ------------------------------------------------------------------


def _whole(p: Padding, operand: int, sizes: tuple[int, ...]) -> None:
    """Indices are clamped to bounds: a dynamic dimension must be read or written whole."""
    for d in p.sizes[operand]:
        if sizes[d] != p.given[operand].dims[d]:
            p.refuse(f"a part of dynamic dimension {d}")


@rule("dynamic-slice")
def dynamic_slice(p: Padding) -> Result:
    _whole(p, 0, attr(p.x, "dynamic_slice_sizes"))
    return p.same(), p.sizes[0]


@rule("dynamic-update-slice")
def dynamic_update_slice(p: Padding) -> Result:
    if p.sizes[1]:
        p.refuse("an update of dynamic size")
    _whole(p, 0, p.given[1].dims)
    return p.same(), p.sizes[0]


@rule("gather")
def gather(p: Padding) -> Result:
    _whole(p, 0, attr(p.x, "slice_sizes"))
    offset, vector_dim = attr(p.x, "offset_dims"), attr(p.x, "index_vector_dim")
    if vector_dim in p.sizes[1]:
        p.refuse("an index vector of dynamic size")
    batch = [d for d in range(p.shape.rank) if d not in offset]
    sizes = renumbered(p.sizes[0], dict(zip(window_dims(p.x), offset)))
    index_dims = [d for d in range(p.given[1].rank) if d != vector_dim]
    return p.same(), sizes | renumbered(p.sizes[1], dict(zip(index_dims, batch)))


@rule("scatter")
def scatter(p: Padding) -> Result:
    """Padding is scattered to places that do not exist."""
    inputs = len(p.given) // 2  # operands, indices, as many updates
    indices = p.given[inputs]
    windows = attr(p.x, "update_window_dims")
    vector_dim = attr(p.x, "index_vector_dim")
    if any(p.sizes[:inputs]):
        p.refuse("operands of dynamic size")
    if any(d in windows for sizes in p.sizes[inputs + 1 :] for d in sizes):
        p.refuse("windows of dynamic size")
    if vector_dim in p.sizes[inputs] or not attr(p.x, "scatter_dims_to_operand_dims"):
        p.refuse("an index vector of dynamic or no size")
    dims = [d for d in range(indices.rank) if d != vector_dim]
    kept = [d for d in range(p.given[inputs + 1].rank) if d not in windows]
    for sizes in p.sizes[inputs + 1 :]:
        p.sizes[inputs] |= renumbered(sizes, dict(zip(kept, dims)))
    nowhere = -1 if indices.dtype.is_signed else _range(indices.dtype)[1]
    operands = list(p.x.operands)
    operands[inputs] = p.masked(inputs, p.b.constant(nowhere, indices.dtype))
    return p.rebuilt(operands, indices_are_sorted=False, unique_indices=False), {}
