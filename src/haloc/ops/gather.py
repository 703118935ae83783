"""gather: slices of an operand, at places that an array of start indices gives.

Written out: a result index splits into batch dimensions (not in offset_dims) and offset dimensions.
The batch part, with the number k put in at index_vector_dim, finds the start index of operand
dimension start_index_map[k], clamped so that the slice lies inside. The offset part runs over the
slice's dimensions that are neither collapsed nor batching. A batching dimension of the operand
takes the position of the batch in its dimension of start_indices.
"""

from __future__ import annotations

import numpy as np

from haloc.ir import dtype as dt
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import Bool, Dims, Int
from haloc.ops.example import ExampleGraph
from haloc.ops.families import evaluate_with_instruction, pick_dtype
from haloc.ops.indexing import whole_sizes
from haloc.ops.reference import Array, wide
from haloc.ops.rules import (
    ANY,
    INTEGER,
    array_operands,
    check_dims_in_range,
    check_dtype,
    check_length,
    check_sorted,
    check_static,
    check_unique,
    dynamic_flags,
    label,
)
from haloc.ops.scalar import Indices, Read, Scalar, Value
from haloc.ops.table import Attr, Indexed, OpDef, attr, invalid, register

# --- inference ---------------------------------------------------------------------------------


def _infer(instruction: HloInstruction) -> Shape:
    operand, indices = array_operands(instruction)
    check_static(instruction, operand, indices)
    check_dtype(instruction, 1, INTEGER)
    offset, collapsed = attr(instruction, "offset_dims"), attr(instruction, "collapsed_slice_dims")
    batching = attr(instruction, "operand_batching_dims")
    sizes, vector_dim = attr(instruction, "slice_sizes"), attr(instruction, "index_vector_dim")
    if operand.rank != len(offset) + len(collapsed) + len(batching):
        invalid(
            instruction,
            f"offset_dims ({len(offset)}), collapsed_slice_dims ({len(collapsed)}) and "
            f"operand_batching_dims ({len(batching)}) must together number the {operand.rank} "
            f"dimensions of the operand {operand.to_string(False)}",
            label(instruction, "c1"),
        )
    if not 0 <= vector_dim <= indices.rank:
        fault = f"index_vector_dim={vector_dim} is not in [0, {indices.rank}]"
        invalid(instruction, fault, label(instruction, "c2"))
    check_length(instruction, "slice_sizes", sizes, operand.rank, "c20")
    for d, (size, dim) in enumerate(zip(sizes, operand.dims)):
        if not 0 <= size <= dim:
            fault = f"slice_sizes of dimension {d} is {size}, wanted 0 to {dim}"
            invalid(instruction, fault, label(instruction, "c21"))
    _check_operand_dims(instruction, operand)
    _check_index_dims(instruction, operand, indices)
    batch = [n for d, n in enumerate(indices.dims) if d != vector_dim]
    rank = len(batch) + len(offset)
    check_unique(instruction, "offset_dims", offset, "c4")
    check_sorted(instruction, "offset_dims", offset, "c4")
    check_dims_in_range(instruction, "offset_dims", offset, rank, "c5")
    # A slice is as dynamic as the operand where it takes all of it.
    flags = [f and size == n for f, size, n in zip(dynamic_flags(operand), sizes, operand.dims)]
    index_flags = [f for d, f in enumerate(dynamic_flags(indices)) if d != vector_dim]
    window = [(sizes[d], flags[d]) for d in window_dims(instruction)]
    result = [(0, False)] * rank
    for d, size in zip(offset, window):
        result[d] = size
    for d, size in zip([d for d in range(rank) if d not in offset], zip(batch, index_flags)):
        result[d] = size
    return Shape(operand.dtype, tuple(n for n, _ in result), None, tuple(f for _, f in result))


def _check_operand_dims(instruction: HloInstruction, operand: Shape) -> None:
    collapsed = attr(instruction, "collapsed_slice_dims")
    batching = attr(instruction, "operand_batching_dims")
    sizes = attr(instruction, "slice_sizes")
    both = "collapsed_slice_dims and operand_batching_dims"
    check_unique(instruction, both, (*collapsed, *batching), "c6")
    check_sorted(instruction, "collapsed_slice_dims", collapsed, "c7")
    check_dims_in_range(instruction, "collapsed_slice_dims", collapsed, operand.rank, "c8")
    check_sorted(instruction, "operand_batching_dims", batching, "c10")
    check_dims_in_range(instruction, "operand_batching_dims", batching, operand.rank, "c11")
    for dims, constraint in ((collapsed, "c9"), (batching, "c12")):
        for d in dims:
            if sizes[d] > 1:
                fault = f"slice_sizes of dimension {d} is {sizes[d]}, wanted at most 1"
                invalid(instruction, fault, label(instruction, constraint))


def _check_index_dims(instruction: HloInstruction, operand: Shape, indices: Shape) -> None:
    vector_dim = attr(instruction, "index_vector_dim")
    start_map = attr(instruction, "start_index_map")
    batching = attr(instruction, "operand_batching_dims")
    index_batching = attr(instruction, "start_indices_batching_dims")
    length = indices.dims[vector_dim] if vector_dim < indices.rank else 1
    check_length(instruction, "start_index_map", start_map, length, "c3")
    what = "start_indices_batching_dims"
    check_unique(instruction, what, index_batching, "c13")
    check_dims_in_range(instruction, what, index_batching, indices.rank, "c14")
    if vector_dim in index_batching:
        fault = f"index_vector_dim={vector_dim} is one of {what}"
        invalid(instruction, fault, label(instruction, "c15"))
    check_length(instruction, what, index_batching, len(batching), "c16")
    for d, i in zip(batching, index_batching):
        if operand.dims[d] != indices.dims[i]:
            invalid(
                instruction,
                f"batching dimension {d} of the operand has size {operand.dims[d]}, "
                f"dimension {i} of start_indices {indices.dims[i]}",
                label(instruction, "c17"),
            )
    both = "start_index_map and operand_batching_dims"
    check_unique(instruction, both, (*start_map, *batching), "c18")
    check_dims_in_range(instruction, "start_index_map", start_map, operand.rank, "c19")


def window_dims(instruction: HloInstruction) -> list[int]:
    """The operand dimensions that offset_dims run over, in order."""
    dropped = {
        *attr(instruction, "collapsed_slice_dims"),
        *attr(instruction, "operand_batching_dims"),
    }
    return [d for d in range(instruction.operands[0].shape.rank) if d not in dropped]


def _at_sizes(
    instruction: HloInstruction, sizes: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], dict[str, object]]:
    """Slices that take all of a dynamic dimension take what there is."""
    return instruction.shape.dims, {
        "slice_sizes": whole_sizes(instruction, attr(instruction, "slice_sizes"), sizes[0])
    }


# --- meaning -----------------------------------------------------------------------------------


def _batch_axis(instruction: HloInstruction, index_dim: int, batch: list[int]) -> int:
    """The result dimension that runs over a dimension of start_indices."""
    vector_dim = attr(instruction, "index_vector_dim")
    return batch[index_dim - (index_dim > vector_dim)]


def _evaluate(instruction: HloInstruction, x: Array, indices: Array) -> Array:
    dims = instruction.shape.dims
    offset, sizes = attr(instruction, "offset_dims"), attr(instruction, "slice_sizes")
    vector_dim = attr(instruction, "index_vector_dim")
    batch = [d for d in range(len(dims)) if d not in offset]
    if 0 in dims:
        return np.zeros(dims, x.dtype)

    def along(axis: int, size: int) -> Array:
        return np.arange(size).reshape([-1 if d == axis else 1 for d in range(len(dims))])

    at: list[Array] = [np.zeros([1] * len(dims), np.int64) for _ in range(x.ndim)]
    whole = wide(indices)
    if vector_dim == indices.ndim:
        whole = whole[..., None]
    vectors = np.moveaxis(whole, vector_dim, -1)
    for k, d in enumerate(attr(instruction, "start_index_map")):
        high = x.shape[d] - sizes[d]
        clamped = _clamp_start(vectors[..., k], high)
        spread = [1] * len(dims)
        for axis, n in zip(batch, clamped.shape):
            spread[axis] = n
        at[d] = at[d] + clamped.reshape(spread)
    for axis, d in zip(offset, window_dims(instruction)):
        at[d] = at[d] + along(axis, sizes[d])
    index_batching = attr(instruction, "start_indices_batching_dims")
    for d, i in zip(attr(instruction, "operand_batching_dims"), index_batching):
        at[d] = at[d] + along(_batch_axis(instruction, i, batch), x.shape[d])
    if not at:
        return np.array(np.broadcast_to(x, dims))
    return np.array(np.broadcast_to(x[tuple(np.broadcast_arrays(*at))], dims))


def _clamp_start(start: Array, high: int) -> Array:
    """Within [0, high], as s64; unsigned numbers may lie beyond s64."""
    if start.dtype.kind == "u":
        return np.minimum(start.astype(np.uint64), np.uint64(high)).astype(np.int64)
    return np.clip(start.astype(np.int64), 0, high)


def _emit(b: Scalar, instruction: HloInstruction, index: Indices, read: Read) -> Value:
    operand, indices = (o.shape for o in instruction.operands)
    offset, sizes = attr(instruction, "offset_dims"), attr(instruction, "slice_sizes")
    vector_dim = attr(instruction, "index_vector_dim")
    batch = [d for d in range(len(index)) if d not in offset]
    at = [b.index_constant(0)] * operand.rank
    where = [index[d] for d in batch]
    for k, d in enumerate(attr(instruction, "start_index_map")):
        place = list(where)
        if vector_dim < indices.rank:
            place.insert(vector_dim, b.index_constant(k))
        start = b.to_index(read(1, tuple(place)))
        at[d] = b.clamp_index(start, 0, operand.dims[d] - sizes[d])
    for axis, d in zip(offset, window_dims(instruction)):
        if sizes[d] > 1:
            at[d] = at[d] + index[axis]
    index_batching = attr(instruction, "start_indices_batching_dims")
    for d, i in zip(attr(instruction, "operand_batching_dims"), index_batching):
        at[d] = at[d] + index[_batch_axis(instruction, i, batch)]
    return read(0, tuple(at))


# --- example -----------------------------------------------------------------------------------


def _example(graph: ExampleGraph) -> HloInstruction:
    """Random kinds of operand dimensions: batching, indexed and collapsed, windows."""
    rng, dtype = graph.rng, pick_dtype(graph, ANY)
    dims = tuple(max(d, 1) for d in graph.dims(low=1, high=4))
    rank = len(dims)
    kinds = [graph.pick(["batching", "collapsed", "window", "window"]) for _ in dims]
    batching = tuple(d for d in range(rank) if kinds[d] == "batching")
    collapsed = tuple(d for d in range(rank) if kinds[d] == "collapsed")
    window = [d for d in range(rank) if kinds[d] == "window"]
    sizes = tuple(
        int(rng.integers(1, dims[d] + 1)) if kinds[d] == "window" else 1 for d in range(rank)
    )
    start_map = tuple(d for d in range(rank) if kinds[d] != "batching" and rng.random() < 0.8)
    batch = [dims[d] for d in batching] + list(graph.dims(0, 3, 4))
    index_dims = [*batch, len(start_map)]
    vector_dim = len(batch)
    if len(start_map) == 1 and rng.random() < 0.3:
        index_dims.pop()
    result_rank = len(batch) + len(window)
    chosen = rng.permutation(result_rank)[: len(window)]
    offset = tuple(sorted(int(d) for d in chosen))
    result = [0] * result_rank
    for axis, d in zip(offset, window):
        result[axis] = sizes[d]
    for axis, n in zip([a for a in range(result_rank) if a not in offset], batch):
        result[axis] = n
    index_dtype = graph.pick([dt.S32, dt.S32, dt.S64, dt.U8])
    operands = [graph.operand(dtype, dims), graph.operand(index_dtype, tuple(index_dims))]
    return graph.add(
        "gather",
        Shape(dtype, tuple(result)),
        operands,
        offset_dims=offset,
        collapsed_slice_dims=collapsed,
        start_index_map=start_map,
        operand_batching_dims=batching,
        start_indices_batching_dims=tuple(range(len(batching))),
        index_vector_dim=vector_dim,
        slice_sizes=sizes,
    )


register(
    OpDef(
        opcode="gather",
        operands=("operand", "start_indices"),
        attrs=(
            Attr("offset_dims", Dims(), (), "gather_dimension_numbers."),
            Attr("collapsed_slice_dims", Dims(), (), "gather_dimension_numbers."),
            Attr("start_index_map", Dims(), (), "gather_dimension_numbers."),
            Attr("operand_batching_dims", Dims(), (), "gather_dimension_numbers."),
            Attr("start_indices_batching_dims", Dims(), (), "gather_dimension_numbers."),
            Attr("index_vector_dim", Int(), proto="gather_dimension_numbers."),
            Attr("slice_sizes", Dims(), (), "gather_slice_sizes"),
            Attr("indices_are_sorted", Bool(), False),
        ),
        infer=_infer,
        evaluate=evaluate_with_instruction(_evaluate),
        lower=Indexed(_emit),
        example=_example,
        spec="gather",
        at_sizes=_at_sizes,
    )
)
