"""scatter: update windows of arrays, combined with what is there by a region."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from haloc.ir.dtype import F32, F64, S32, U8
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import Bool, Computation, Dims, Int
from haloc.ops.example import ExampleGraph
from haloc.ops.reduction import region_cost
from haloc.ops.regions import (
    braces,
    check_dims,
    check_region,
    one_or_tuple,
    results,
    scalars,
    text,
)
from haloc.ops.table import Attr, Cost, Evaluator, OpDef, Structure, attr, invalid, register

ATTRS = (
    Attr("update_window_dims", Dims(), (), "scatter_dimension_numbers."),
    Attr("inserted_window_dims", Dims(), (), "scatter_dimension_numbers."),
    Attr("scatter_dims_to_operand_dims", Dims(), (), "scatter_dimension_numbers."),
    Attr("input_batching_dims", Dims(), (), "scatter_dimension_numbers."),
    Attr("scatter_indices_batching_dims", Dims(), (), "scatter_dimension_numbers."),
    Attr("index_vector_dim", Int(), 0, "scatter_dimension_numbers."),
    Attr("indices_are_sorted", Bool(), False),
    Attr("unique_indices", Bool(), False),
    Attr("to_apply", Computation(), proto="called_computation_ids[0]"),
)


@dataclass(frozen=True)
class ScatterDims:
    """The attributes of a scatter, with what follows from them.

    window_operand_dims: operand dimension of each update window dimension, in order.
    scatter_dims: dimensions of the updates that are not window dimensions.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    input_batching_dims: tuple[int, ...]
    scatter_indices_batching_dims: tuple[int, ...]
    index_vector_dim: int
    window_operand_dims: tuple[int, ...]
    scatter_dims: tuple[int, ...]


def scatter_dims(instruction: HloInstruction) -> ScatterDims:
    """Read them from a scatter; every rank is taken from its operands."""
    count = len(instruction.operands) // 2
    operand, updates = instruction.operands[0].shape, instruction.operands[count + 1].shape
    window, inserted, to_operand, batching, index_batching = (
        tuple(attr(instruction, a.name)) for a in ATTRS[:5]
    )
    dropped = {*inserted, *batching}
    return ScatterDims(
        window,
        inserted,
        to_operand,
        batching,
        index_batching,
        attr(instruction, "index_vector_dim"),
        tuple(d for d in range(operand.rank) if d not in dropped),
        tuple(d for d in range(updates.rank) if d not in window),
    )


def _check_operands(instruction: HloInstruction) -> tuple[list[Shape], Shape, list[Shape]]:
    shapes = [o.shape for o in instruction.operands]
    count = len(shapes) // 2
    if len(shapes) < 3 or len(shapes) % 2 == 0:
        invalid(
            instruction,
            f"takes inputs, indices and as many updates, given {len(shapes)} operands",
            "scatter_c5",
        )
    inputs, indices, updates = shapes[:count], shapes[count], shapes[count + 1 :]
    if not indices.dtype.is_integer:
        invalid(instruction, f"indices are {text(indices)}, wanted integers")
    for name, group, label in (("input", inputs, "c1"), ("updates", updates, "c3")):
        for i, x in enumerate(group):
            if not x.same_dims(group[0]):
                invalid(
                    instruction,
                    f"{name} {i} is {text(x)}, but {name} 0 is {text(group[0])}: "
                    "they must have the same dimensions",
                    f"scatter_{label}",
                )
    for i, (x, u) in enumerate(zip(inputs, updates)):
        if x.dtype is not u.dtype:
            invalid(
                instruction,
                f"updates {i} are {text(u)}, but input {i} is {text(x)}: "
                "element types must be the same",
                "scatter_c6",
            )
    return inputs, indices, updates


def _check_numbers(
    instruction: HloInstruction, d: ScatterDims, operand: Shape, indices: Shape, updates: Shape
) -> None:
    """The dimension lists are in range, sorted, disjoint and of the right lengths."""
    vector = d.index_vector_dim
    if not 0 <= vector <= indices.rank:
        invalid(
            instruction,
            f"index_vector_dim={vector} is out of range for {text(indices)}",
            "scatter_c22",
        )
    for name, dims, rank, range_label, unique_label in (
        ("update_window_dims", d.update_window_dims, updates.rank, "c8", "c7"),
        ("inserted_window_dims", d.inserted_window_dims, operand.rank, "c11", "c9"),
        ("input_batching_dims", d.input_batching_dims, operand.rank, "c13", "c9"),
        (
            "scatter_dims_to_operand_dims",
            d.scatter_dims_to_operand_dims,
            operand.rank,
            "c21",
            "c20",
        ),
        (
            "scatter_indices_batching_dims",
            d.scatter_indices_batching_dims,
            indices.rank,
            "c15",
            "c14",
        ),
    ):
        check_dims(
            instruction, name, dims, rank, f"scatter_{range_label}", f"scatter_{unique_label}"
        )
    for name, dims, label in (
        ("update_window_dims", d.update_window_dims, "c7"),
        ("inserted_window_dims", d.inserted_window_dims, "c10"),
        ("input_batching_dims", d.input_batching_dims, "c12"),
    ):
        if list(dims) != sorted(dims):
            invalid(instruction, f"{name}={braces(dims)} is not sorted", f"scatter_{label}")
    for name, dims, label in (
        ("inserted_window_dims", d.inserted_window_dims, "c9"),
        ("scatter_dims_to_operand_dims", d.scatter_dims_to_operand_dims, "c20"),
    ):
        if set(dims) & set(d.input_batching_dims):
            invalid(
                instruction,
                f"{name}={braces(dims)} and input_batching_dims="
                f"{braces(d.input_batching_dims)} share a dimension",
                f"scatter_{label}",
            )
    if vector in d.scatter_indices_batching_dims:
        invalid(
            instruction,
            f"scatter_indices_batching_dims={braces(d.scatter_indices_batching_dims)} contains "
            f"index_vector_dim={vector}",
            "scatter_c16",
        )
    if len(d.input_batching_dims) != len(d.scatter_indices_batching_dims):
        invalid(
            instruction,
            f"input_batching_dims={braces(d.input_batching_dims)} and "
            f"scatter_indices_batching_dims={braces(d.scatter_indices_batching_dims)} "
            "differ in number",
            "scatter_c17",
        )


def _check_sizes(
    instruction: HloInstruction, d: ScatterDims, operand: Shape, indices: Shape, updates: Shape
) -> None:
    for x, y in zip(d.input_batching_dims, d.scatter_indices_batching_dims):
        if operand.dims[x] != indices.dims[y]:
            invalid(
                instruction,
                f"batching dimension {x} of {text(operand)} and {y} of {text(indices)} "
                "differ in size",
                "scatter_c18",
            )
    vector = d.index_vector_dim
    length = indices.dims[vector] if vector < indices.rank else 1
    if length != len(d.scatter_dims_to_operand_dims):
        invalid(
            instruction,
            f"scatter_dims_to_operand_dims={braces(d.scatter_dims_to_operand_dims)} has "
            f"{len(d.scatter_dims_to_operand_dims)} entries, but index vectors have {length}",
            "scatter_c19",
        )
    if len(d.window_operand_dims) != len(d.update_window_dims):
        invalid(
            instruction,
            f"update_window_dims={braces(d.update_window_dims)} has "
            f"{len(d.update_window_dims)} entries, wanted {len(d.window_operand_dims)}: rank "
            f"{operand.rank} less inserted_window_dims and input_batching_dims",
            "scatter_c2",
        )
    wanted = tuple(n for i, n in enumerate(indices.dims) if i != vector)
    given = tuple(updates.dims[i] for i in d.scatter_dims)
    if wanted != given:
        invalid(
            instruction,
            f"updates {text(updates)} have scatter dimensions {braces(given)}, wanted "
            f"{braces(wanted)} from indices {text(indices)}",
            "scatter_c4",
        )
    for u, o in zip(d.update_window_dims, d.window_operand_dims):
        if updates.dims[u] > operand.dims[o]:
            invalid(
                instruction,
                f"window dimension {u} of updates {text(updates)} is larger than dimension {o} "
                f"of {text(operand)}",
                "scatter_c4",
            )


def _infer_scatter(instruction: HloInstruction) -> Shape:
    inputs, indices, updates = _check_operands(instruction)
    d = scatter_dims(instruction)
    _check_numbers(instruction, d, inputs[0], indices, updates[0])
    _check_sizes(instruction, d, inputs[0], indices, updates[0])
    elements = scalars(inputs)
    check_region(
        instruction, "to_apply", elements + elements, one_or_tuple(elements), "scatter_c23"
    )
    return one_or_tuple([x.with_default_layout() for x in inputs])


def scatter_targets(
    instruction: HloInstruction, indices: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For each update element, the flat operand element it goes to, and whether it is applied.

    A window any part of which is out of bounds is skipped as a whole.
    """
    d = scatter_dims(instruction)
    count = len(instruction.operands) // 2
    operand, updates = instruction.operands[0].shape, instruction.operands[count + 1].shape
    vectors = indices if d.index_vector_dim < indices.ndim else indices[..., None]
    vectors = np.moveaxis(vectors, d.index_vector_dim, -1)
    unsigned = vectors.dtype.kind == "u"
    vectors = vectors.astype(np.uint64 if unsigned else np.int64)
    if unsigned:
        vectors = np.minimum(vectors, np.uint64(2**62)).astype(np.int64)
    batch = vectors.shape[:-1]
    positions = np.indices(updates.dims, sparse=True)

    def over_updates(x: np.ndarray) -> np.ndarray:
        """An array over the scatter dimensions, placed among the updates' dimensions."""
        window = tuple(i for i in range(updates.rank) if i in d.update_window_dims)
        return np.expand_dims(x, window)

    starts = [np.zeros(batch, np.int64) for _ in range(operand.rank)]
    for k, dim in enumerate(d.scatter_dims_to_operand_dims):
        starts[dim] = vectors[..., k]
    for dim, index_dim in zip(d.input_batching_dims, d.scatter_indices_batching_dims):
        place = index_dim - (index_dim > d.index_vector_dim)
        starts[dim] = np.broadcast_to(np.indices(batch, sparse=True)[place], batch)
    extent = dict.fromkeys(range(operand.rank), 1)
    offset: dict[int, np.ndarray | int] = dict.fromkeys(range(operand.rank), 0)
    for u, o in zip(d.update_window_dims, d.window_operand_dims):
        extent[o], offset[o] = updates.dims[u], positions[u]
    applied = np.ones(batch, np.bool_)
    target = np.zeros((1,) * updates.rank, np.int64)
    for dim, size in enumerate(operand.dims):
        applied &= (starts[dim] >= 0) & (starts[dim] <= size - extent[dim])
        start = np.clip(starts[dim], 0, max(0, size - extent[dim]))
        target = target * size + over_updates(start) + offset[dim]
    return (
        np.broadcast_to(target, updates.dims).reshape(-1),
        np.broadcast_to(over_updates(applied), updates.dims).reshape(-1),
    )


def rounds(targets: np.ndarray) -> Iterator[np.ndarray]:
    """Positions in `targets` in groups: the first use of each target, then the second, ..."""
    order = np.argsort(targets, kind="stable")
    ordered = targets[order]
    number = np.arange(len(order))
    starts = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(order) else number == -1
    rank = number - np.maximum.accumulate(np.where(starts, number, 0))
    by_rank = order[np.argsort(rank, kind="stable")]
    bounds = np.cumsum(np.bincount(rank)) if len(order) else number
    yield from np.split(by_rank, bounds[:-1]) if len(order) else ()


def _evaluate_scatter(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    """Updates apply one after another, in row-major order of the updates array.

    Elements that meet no earlier one are done together: that gives the same results.
    """
    count = len(operands) // 2
    flat = [np.array(x).reshape(-1) for x in operands[:count]]
    updates = [np.asarray(u).reshape(-1) for u in operands[count + 1 :]]
    targets, applied = scatter_targets(instruction, np.asarray(operands[count]))
    wanted = np.flatnonzero(applied)
    region = attr(instruction, "to_apply")
    for group in rounds(targets[wanted]):
        elements = wanted[group]
        places = targets[elements]
        arguments: list[Value] = [x[places] for x in flat] + [u[elements] for u in updates]
        for x, new in zip(flat, results(context.call_elementwise(region, arguments))):
            x[places] = new
    arrays = tuple(x.reshape(instruction.operands[0].shape.dims) for x in flat)
    return arrays if instruction.shape.is_tuple else arrays[0]


def _scatter_cost(instruction: HloInstruction) -> Cost:
    """One execution of the region for each update element."""
    each = region_cost(attr(instruction, "to_apply"))
    updates = instruction.operands[-1].shape.element_count
    return Cost(each.flops * updates, each.transcendentals * updates)


def _scatter_example(graph: ExampleGraph) -> HloInstruction:
    dims = graph.dims(1, 4)
    rank = len(dims)
    kinds = [graph.pick(["window", "inserted"]) for _ in dims]
    to_operand = tuple(int(d) for d in graph.rng.permutation(rank)[: graph.rng.integers(rank + 1)])
    batch = graph.dims(0, 3, 3)
    window = tuple(
        int(graph.rng.integers(0 if n == 0 else 1, n + 1))
        for n, kind in zip(dims, kinds)
        if kind == "window"
    )
    window_dims = tuple(range(len(batch), len(batch) + len(window)))
    dtype = graph.pick([F32, F32, S32, F64, U8])
    indices = graph.rng.integers(-1, 5, (*batch, len(to_operand)))
    operands = (
        graph.operand(dtype, dims),
        graph.constant(indices, S32),
        graph.operand(dtype, batch + window),
    )
    return graph.add(
        "scatter",
        Shape(dtype, dims),
        operands,
        update_window_dims=window_dims,
        inserted_window_dims=tuple(d for d in range(rank) if kinds[d] == "inserted"),
        scatter_dims_to_operand_dims=to_operand,
        index_vector_dim=len(batch),
        to_apply=graph.binary_region(graph.pick(["add", "maximum"]), dtype),
    )


register(
    OpDef(
        opcode="scatter",
        operands=("inputs_indices_and_updates*",),
        attrs=ATTRS,
        infer=_infer_scatter,
        evaluate=_evaluate_scatter,
        lower=Structure.UPDATE,
        cost=_scatter_cost,
        example=_scatter_example,
        spec="scatter",
    )
)
