"""Ops that move elements without looking at them: broadcast, reshape, transpose, slice, reverse,
concatenate, iota, copy, bitcast."""

from __future__ import annotations

from math import prod

import numpy as np

from haloc.errors import UnimplementedError
from haloc.ir.module import HloInstruction
from haloc.ir.shape import UNBOUNDED, Shape
from haloc.ops.attrs import Dims, Int, Slices
from haloc.ops.example import ExampleGraph
from haloc.ops.families import evaluate_with_instruction, pick_dtype
from haloc.ops.reference import Array
from haloc.ops.rules import (
    ANY,
    array_operands,
    check_dims_in_range,
    check_length,
    check_unique,
    dims_text,
    dynamic_flags,
    label,
)
from haloc.ops.scalar import Index, Indices, Read, Scalar
from haloc.ops.scalar import Value as Element
from haloc.ops.table import Attr, Indexed, OpDef, attr, invalid, register

# --- broadcast ---------------------------------------------------------------------------------


def _infer_broadcast(instruction: HloInstruction) -> Shape:
    (operand,) = array_operands(instruction)
    result, dims = instruction.shape, attr(instruction, "dimensions")
    if not result.is_array:
        invalid(instruction, f"the result must be an array, got {result}")
    check_length(instruction, "dimensions", dims, operand.rank, "c2")
    check_dims_in_range(instruction, "dimensions", dims, result.rank, "c3")
    check_unique(instruction, "dimensions", dims, "c4")
    for number, (dim, size) in enumerate(zip(dims, operand.dims)):
        if size != result.dims[dim] and UNBOUNDED not in (size, result.dims[dim]):
            invalid(
                instruction,
                f"dimension {number} of the operand {operand.to_string(False)} has size {size}, "
                f"dimension {dim} of the result {result.to_string(False)} has {result.dims[dim]}",
                label(instruction, "c5"),
            )
    return result.with_dtype(operand.dtype)


def broadcast_array(x: Array, dims: tuple[int, ...], result_dims: tuple[int, ...]) -> Array:
    """x with its dimension k at place dims[k] of the result, repeated along the others."""
    order = np.argsort(dims, kind="stable") if dims else ()
    expanded = [1] * len(result_dims)
    for dim, size in zip(dims, x.shape):
        expanded[dim] = size
    placed = np.transpose(x, order).reshape(expanded)
    return np.array(np.broadcast_to(placed, result_dims))


def _broadcast(instruction: HloInstruction, x: Array) -> Array:
    return broadcast_array(x, attr(instruction, "dimensions"), instruction.shape.dims)


def _broadcast_at_sizes(
    instruction: HloInstruction, sizes: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], dict[str, object]]:
    """A dimension that is not the operand's has all the elements of its bound."""
    dims = list(instruction.shape.dims)
    for dim, size in zip(attr(instruction, "dimensions"), sizes[0]):
        dims[dim] = size
    return tuple(dims), {}


def _emit_broadcast(b: Scalar, instruction: HloInstruction, index: Indices, read: Read) -> Element:
    return read(0, tuple(index[d] for d in attr(instruction, "dimensions")))


def _example_broadcast(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = pick_dtype(graph, ANY), graph.dims()
    kept = tuple(d for d in range(len(dims)) if graph.rng.random() < 0.5)
    operand = graph.operand(dtype, tuple(dims[d] for d in kept))
    return graph.add("broadcast", Shape(dtype, dims), [operand], dimensions=kept)


register(
    OpDef(
        opcode="broadcast",
        operands=("operand",),
        attrs=(Attr("dimensions", Dims(), ()),),
        infer=_infer_broadcast,
        evaluate=evaluate_with_instruction(_broadcast),
        lower=Indexed(_emit_broadcast, is_remap=True),
        example=_example_broadcast,
        spec="broadcast_in_dim",
        at_sizes=_broadcast_at_sizes,
    )
)


# --- reshape -----------------------------------------------------------------------------------


def _infer_reshape(instruction: HloInstruction) -> Shape:
    (operand,) = array_operands(instruction)
    result = instruction.shape
    if not result.is_array:
        invalid(instruction, f"the result must be an array, got {result}")
    known = UNBOUNDED not in operand.dims and UNBOUNDED not in result.dims
    if known and operand.element_count != result.element_count:
        invalid(
            instruction,
            f"the operand {operand.to_string(False)} has {operand.element_count} elements, "
            f"the result {result.to_string(False)} {result.element_count}",
            label(instruction, "c2"),
        )
    return result.with_dtype(operand.dtype)


def _reshape(instruction: HloInstruction, x: Array) -> Array:
    return x.reshape(instruction.shape.dims)


def reshape_groups(source: tuple[int, ...], target: tuple[int, ...]) -> list[tuple[range, range]]:
    """Splits a reshape into independent ones: runs of dimensions with equal element counts.

    reshape_groups((2, 3, 4), (6, 4)) == [(range(0, 2), range(0, 1)), (range(2, 3), range(1, 2))].
    Sizes must not be 0.
    """
    groups: list[tuple[range, range]] = []
    i = j = 0
    while i < len(source) or j < len(target):
        first_i, first_j = i, j
        left, i = (source[i], i + 1) if i < len(source) else (1, i)
        right, j = (target[j], j + 1) if j < len(target) else (1, j)
        while left != right:
            if left < right:
                left, i = left * source[i], i + 1
            else:
                right, j = right * target[j], j + 1
        groups.append((range(first_i, i), range(first_j, j)))
    return groups


def reshaped_index(
    b: Scalar, source: tuple[int, ...], target: tuple[int, ...], index: Indices
) -> Indices:
    """Where the element at `index` of a reshape to `target` stands in an array of `source` dims.

    Each group of dimensions that keeps its element count is linearised and split on its own, so
    that dimensions which a reshape leaves alone cost no division.
    """
    zero = b.index_constant(0)
    result: list[Index] = [zero] * len(source)
    if 0 in source:
        return tuple(result)
    for source_range, target_range in reshape_groups(source, target):
        linear: Index | None = None
        for d in target_range:
            if target[d] != 1:
                linear = index[d] if linear is None else linear * target[d] + index[d]
        if linear is None:
            continue
        real = [d for d in source_range if source[d] != 1]
        for d in reversed(real[1:]):
            result[d] = linear % source[d]
            linear = linear // source[d]
        result[real[0]] = linear
    return tuple(result)


def dynamic_in_group(instruction: HloInstruction, group: range) -> int:
    """The one dynamic dimension of a group of the result's; -1 when there is none.

    Its size follows from the others'. UnimplementedError when there are several.
    """
    flags = dynamic_flags(instruction.shape)
    found = [d for d in group if flags[d]]
    if len(found) > 1:
        raise UnimplementedError(
            f"reshape: the sizes of dimensions {dims_text(found)} of "
            f"{instruction.shape.to_string(False)} do not follow from those of "
            f"{instruction.operands[0].shape.to_string(False)}; dynamic-reshape says them"
        )
    return found[0] if found else -1


def _reshape_at_sizes(
    instruction: HloInstruction, sizes: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], dict[str, object]]:
    """In each group of dimensions that keeps its element count, the dynamic one takes the rest."""
    dims = list(instruction.shape.dims)
    for source, target in reshape_groups(instruction.operands[0].shape.dims, tuple(dims)):
        dim = dynamic_in_group(instruction, target)
        if dim >= 0:
            count = prod(sizes[0][d] for d in source)
            dims[dim] = count // max(1, prod(dims[d] for d in target if d != dim))
    return tuple(dims), {}


def _emit_reshape(b: Scalar, instruction: HloInstruction, index: Indices, read: Read) -> Element:
    source = instruction.operands[0].shape.dims
    return read(0, reshaped_index(b, source, instruction.shape.dims, index))


def _example_reshape(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = pick_dtype(graph, ANY), graph.dims()
    wanted = graph.pick([dims[::-1], (prod(dims),), (1, *dims), (*dims, 1)])
    return graph.add("reshape", Shape(dtype, wanted), [graph.operand(dtype, dims)])


register(
    OpDef(
        opcode="reshape",
        operands=("operand",),
        attrs=(Attr("inferred_dimension", Int(), -1, "dimensions[0]"),),
        infer=_infer_reshape,
        evaluate=evaluate_with_instruction(_reshape),
        lower=Indexed(_emit_reshape, is_remap=True, keeps_order=True),
        example=_example_reshape,
        spec="reshape",
        at_sizes=_reshape_at_sizes,
    )
)


# --- transpose ---------------------------------------------------------------------------------


def _infer_transpose(instruction: HloInstruction) -> Shape:
    (operand,) = array_operands(instruction)
    dims = attr(instruction, "dimensions")
    if sorted(dims) != list(range(operand.rank)):
        invalid(
            instruction,
            f"dimensions={dims_text(dims)} is not a permutation of the {operand.rank} dimensions "
            f"of {operand.to_string(False)}",
            label(instruction, "c2"),
        )
    return operand.keep(dims)


def _transpose(instruction: HloInstruction, x: Array) -> Array:
    return np.ascontiguousarray(np.transpose(x, attr(instruction, "dimensions"))).reshape(
        [x.shape[d] for d in attr(instruction, "dimensions")]
    )


def _emit_transpose(b: Scalar, instruction: HloInstruction, index: Indices, read: Read) -> Element:
    dims = attr(instruction, "dimensions")
    return read(0, tuple(index[dims.index(d)] for d in range(len(dims))))


def _example_transpose(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = pick_dtype(graph, ANY), graph.dims()
    order = tuple(int(d) for d in graph.rng.permutation(len(dims)))
    shape = Shape(dtype, tuple(dims[d] for d in order))
    return graph.add("transpose", shape, [graph.operand(dtype, dims)], dimensions=order)


register(
    OpDef(
        opcode="transpose",
        operands=("operand",),
        attrs=(Attr("dimensions", Dims(), ()),),
        infer=_infer_transpose,
        evaluate=evaluate_with_instruction(_transpose),
        lower=Indexed(_emit_transpose, is_remap=True),
        example=_example_transpose,
        spec="transpose",
    )
)


# --- slice -------------------------------------------------------------------------------------


def _infer_slice(instruction: HloInstruction) -> Shape:
    (operand,) = array_operands(instruction)
    slices = attr(instruction, "slice")
    check_length(instruction, "slice", slices, operand.rank, "c2")
    dims = []
    flags = list(dynamic_flags(operand))
    for d, ((start, limit, stride), size) in enumerate(zip(slices, operand.dims)):
        if stride < 1:
            fault = f"the stride of dimension {d} is {stride}, wanted at least 1"
            invalid(instruction, fault, label(instruction, "c4"))
        if not 0 <= start <= limit or (size != UNBOUNDED and limit > size):
            invalid(
                instruction,
                f"[{start}:{limit}] of dimension {d} is not a range within its size {size}",
                label(instruction, "c3"),
            )
        dims.append((limit - start + stride - 1) // stride)
        flags[d] = flags[d] and dims[-1] == size
    return Shape(operand.dtype, tuple(dims), None, tuple(flags))


def _slice(instruction: HloInstruction, x: Array) -> Array:
    return x[tuple(slice(*s) for s in attr(instruction, "slice"))].copy()


def _slice_at_sizes(
    instruction: HloInstruction, sizes: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], dict[str, object]]:
    """A dimension that stays dynamic is taken whole."""
    flags = dynamic_flags(instruction.shape)
    slices = attr(instruction, "slice")
    now = tuple((0, n, 1) if f else s for f, n, s in zip(flags, sizes[0], slices))
    return instruction.shape.dims, {"slice": now}


def _emit_slice(b: Scalar, instruction: HloInstruction, index: Indices, read: Read) -> Element:
    slices = attr(instruction, "slice")
    return read(0, tuple(i * stride + start for i, (start, _, stride) in zip(index, slices)))


def _example_slice(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = pick_dtype(graph, ANY), graph.dims()
    slices = []
    for size in dims:
        start, limit = sorted(int(v) for v in graph.rng.integers(0, size + 1, 2))
        slices.append((start, limit, int(graph.rng.integers(1, 4))))
    shape = Shape(dtype, tuple(len(range(*s)) for s in slices))
    return graph.add("slice", shape, [graph.operand(dtype, dims)], slice=tuple(slices))


register(
    OpDef(
        opcode="slice",
        operands=("operand",),
        attrs=(Attr("slice", Slices(), proto="slice_dimensions"),),
        infer=_infer_slice,
        evaluate=evaluate_with_instruction(_slice),
        lower=Indexed(_emit_slice, is_remap=True),
        example=_example_slice,
        spec="slice",
        at_sizes=_slice_at_sizes,
    )
)


# --- reverse -----------------------------------------------------------------------------------


def _infer_reverse(instruction: HloInstruction) -> Shape:
    (operand,) = array_operands(instruction)
    dims = attr(instruction, "dimensions")
    check_unique(instruction, "dimensions", dims, "c2")
    check_dims_in_range(instruction, "dimensions", dims, operand.rank, "c3")
    return operand


def _reverse(instruction: HloInstruction, x: Array) -> Array:
    return np.flip(x, attr(instruction, "dimensions")).copy()


def _emit_reverse(b: Scalar, instruction: HloInstruction, index: Indices, read: Read) -> Element:
    reversed_dims, sizes = attr(instruction, "dimensions"), instruction.shape.dims
    return read(
        0, tuple(sizes[d] - 1 - i if d in reversed_dims else i for d, i in enumerate(index))
    )


def _example_reverse(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = pick_dtype(graph, ANY), graph.dims()
    chosen = tuple(d for d in range(len(dims)) if graph.rng.random() < 0.5)
    return graph.add("reverse", Shape(dtype, dims), [graph.operand(dtype, dims)], dimensions=chosen)


register(
    OpDef(
        opcode="reverse",
        operands=("operand",),
        attrs=(Attr("dimensions", Dims(), ()),),
        infer=_infer_reverse,
        evaluate=evaluate_with_instruction(_reverse),
        lower=Indexed(_emit_reverse, is_remap=True),
        example=_example_reverse,
        spec="reverse",
    )
)
