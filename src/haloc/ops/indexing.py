"""dynamic-slice, dynamic-update-slice and gather: reads and writes at indices known at run time.

Start indices are clamped so that the slice lies inside the operand.
"""

from __future__ import annotations

from collections.abc import Sequence

from haloc.ir import dtype as dt
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import Dims
from haloc.ops.example import ExampleGraph
from haloc.ops.families import evaluate_with_instruction, pick_dtype
from haloc.ops.reference import Array, wide
from haloc.ops.rules import (
    ANY,
    INTEGER,
    array_operands,
    check_dtype,
    check_length,
    check_same_dtype,
    check_static,
    dynamic_flags,
    label,
)
from haloc.ops.scalar import Index, Indices, Read, Scalar, Value
from haloc.ops.table import Attr, Indexed, OpDef, Structure, attr, invalid, register


def clamped_starts(starts: Sequence[Array], sizes: Sequence[int], dims: Sequence[int]) -> list[int]:
    """Scalar start indices as integers within [0, dim - size]."""
    return [min(max(int(wide(s)), 0), d - n) for s, n, d in zip(starts, sizes, dims)]


def start_values(instruction: HloInstruction, first: int, values: Sequence[Array]) -> list[Array]:
    """The start indices, which stand one an operand or (older text) all in one vector."""
    if len(values) == first + 1 and values[first].ndim == 1:
        return list(values[first])
    return list(values[first:])


def start_indices(
    b: Scalar, instruction: HloInstruction, first: int, sizes: Sequence[int], read: Read
) -> list[Index]:
    """The clamped start of each dimension as an index, for code generation."""
    dims = instruction.operands[0].shape.dims
    vector = instruction.operands[first].shape.rank == 1 if len(dims) else False
    starts = []
    for d, (dim, size) in enumerate(zip(dims, sizes)):
        value = read(first, (b.index_constant(d),)) if vector else read(first + d, ())
        starts.append(b.clamp_index(b.to_index(value), 0, dim - size))
    return starts


def _check_starts(instruction: HloInstruction, first: int, rank: int, labels: str) -> None:
    """`labels`: the spec's constraints for the number and for the type of start indices."""
    count_label, type_label = labels.split()
    starts = [o.shape for o in instruction.operands[first:]]
    for number in range(first, len(instruction.operands)):
        check_dtype(instruction, number, INTEGER)
    if len(starts) == 1 and starts[0].rank == 1:
        if starts[0].dims != (rank,):
            fault = f"start_indices is {starts[0].to_string(False)}, wanted {rank} elements"
            invalid(instruction, fault, label(instruction, count_label))
        return
    if len(starts) != rank:
        fault = f"{len(starts)} start indices given, wanted {rank}, one a dimension"
        invalid(instruction, fault, label(instruction, count_label))
    for number, shape in enumerate(starts):
        if shape.rank:
            fault = f"start_indices[{number}] must be a scalar, got {shape.to_string(False)}"
            invalid(instruction, fault, label(instruction, type_label))
    if starts:
        numbers = range(first, first + rank)
        check_same_dtype(instruction, numbers, type_label)


# --- dynamic-slice -----------------------------------------------------------------------------


def _infer_dynamic_slice(instruction: HloInstruction) -> Shape:
    operand = array_operands(instruction)[0]
    check_static(instruction, operand)
    sizes = attr(instruction, "dynamic_slice_sizes")
    check_length(instruction, "dynamic_slice_sizes", sizes, operand.rank, "c2")
    _check_starts(instruction, 1, operand.rank, "c2 c3")
    _check_sizes(instruction, "dynamic_slice_sizes", sizes, operand, "c4")
    flags = zip(dynamic_flags(operand), sizes, operand.dims)
    whole = tuple(dynamic and size == n for dynamic, size, n in flags)
    return Shape(operand.dtype, tuple(sizes), None, whole)


def whole_sizes(
    instruction: HloInstruction, slice_sizes: Sequence[int], sizes: Sequence[int]
) -> tuple[int, ...]:
    """Sizes of a slice of operand 0 when that has `sizes`: all of a dynamic dimension if it was
    all of its bound."""
    bound = instruction.operands[0].shape
    together = zip(slice_sizes, sizes, bound.dims, dynamic_flags(bound))
    return tuple(now if dynamic and n == most else n for n, now, most, dynamic in together)


def _at_sizes(
    instruction: HloInstruction, sizes: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], dict[str, object]]:
    slice_sizes = attr(instruction, "dynamic_slice_sizes")
    return instruction.shape.dims, {
        "dynamic_slice_sizes": whole_sizes(instruction, slice_sizes, sizes[0])
    }


def _check_sizes(
    instruction: HloInstruction, what: str, sizes: Sequence[int], operand: Shape, constraint: str
) -> None:
    for d, (size, dim) in enumerate(zip(sizes, operand.dims)):
        if not 0 <= size <= dim:
            invalid(
                instruction,
                f"{what} of dimension {d} is {size}, wanted 0 to {dim}, "
                f"the size of {operand.to_string(False)}",
                label(instruction, constraint),
            )


def _dynamic_slice(instruction: HloInstruction, x: Array, *starts: Array) -> Array:
    sizes = attr(instruction, "dynamic_slice_sizes")
    values = start_values(instruction, 0, starts) if starts else []
    first = clamped_starts(values, sizes, x.shape)
    return x[tuple(slice(s, s + n) for s, n in zip(first, sizes))].copy()


def _emit_dynamic_slice(
    b: Scalar, instruction: HloInstruction, index: Indices, read: Read
) -> Value:
    starts = start_indices(b, instruction, 1, attr(instruction, "dynamic_slice_sizes"), read)
    return read(0, tuple(i + s for i, s in zip(index, starts)))


def _example_starts(graph: ExampleGraph, rank: int) -> list[HloInstruction]:
    dtype = graph.pick([dt.S32, dt.S32, dt.S64, dt.U8, dt.U32])
    return [graph.operand(dtype) for _ in range(rank)]


def _example_dynamic_slice(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = pick_dtype(graph, ANY), graph.dims()
    sizes = tuple(int(graph.rng.integers(0 if d == 0 else 1, d + 1)) for d in dims)
    operands = [graph.operand(dtype, dims), *_example_starts(graph, len(dims))]
    return graph.add("dynamic-slice", Shape(dtype, sizes), operands, dynamic_slice_sizes=sizes)


register(
    OpDef(
        opcode="dynamic-slice",
        operands=("operand", "start_indices*"),
        attrs=(Attr("dynamic_slice_sizes", Dims(), ()),),
        infer=_infer_dynamic_slice,
        evaluate=evaluate_with_instruction(_dynamic_slice),
        lower=Indexed(_emit_dynamic_slice),
        example=_example_dynamic_slice,
        spec="dynamic_slice",
        at_sizes=_at_sizes,
    )
)


# --- dynamic-update-slice ----------------------------------------------------------------------


def _infer_dynamic_update_slice(instruction: HloInstruction) -> Shape:
    operand, update = array_operands(instruction)[:2]
    check_static(instruction, operand, update)
    check_same_dtype(instruction, (0, 1), "c2")
    check_length(instruction, "the shape of update", update.dims, operand.rank, "c3")
    _check_starts(instruction, 2, operand.rank, "c4 c5")
    _check_sizes(instruction, "the size of update", update.dims, operand, "c6")
    return operand


def _dynamic_update_slice(
    instruction: HloInstruction, x: Array, update: Array, *starts: Array
) -> Array:
    values = start_values(instruction, 0, starts) if starts else []
    first = clamped_starts(values, update.shape, x.shape)
    result = x.copy()
    result[tuple(slice(s, s + n) for s, n in zip(first, update.shape))] = update
    return result


def _example_dynamic_update_slice(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = pick_dtype(graph, ANY), graph.dims()
    sizes = tuple(int(graph.rng.integers(0 if d == 0 else 1, d + 1)) for d in dims)
    operand, update = graph.operand(dtype, dims), graph.operand(dtype, sizes)
    operands = [operand, update, *_example_starts(graph, len(dims))]
    return graph.add("dynamic-update-slice", Shape(dtype, dims), operands)


register(
    OpDef(
        opcode="dynamic-update-slice",
        operands=("operand", "update", "start_indices*"),
        infer=_infer_dynamic_update_slice,
        evaluate=evaluate_with_instruction(_dynamic_update_slice),
        lower=Structure.UPDATE,
        example=_example_dynamic_update_slice,
        spec="dynamic_update_slice",
    )
)
