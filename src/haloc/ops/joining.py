"""concatenate, iota, copy and bitcast."""

from __future__ import annotations

import numpy as np

from haloc.ir import dtype as dt
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import UNBOUNDED, Layout, Shape
from haloc.ops.attrs import Int, OneDim
from haloc.ops.example import ExampleGraph
from haloc.ops.families import evaluate_with_instruction, pick_dtype
from haloc.ops.reference import Array
from haloc.ops.rules import (
    ANY,
    COMPLEX,
    FLOAT,
    INTEGER,
    array_operands,
    check_dims_in_range,
    check_operand_count,
    check_same_dtype,
    dtypes_text,
    dynamic_flags,
    label,
)
from haloc.ops.scalar import Indices, Read, Scalar
from haloc.ops.scalar import Value as Element
from haloc.ops.table import Attr, Evaluator, Indexed, OpDef, Structure, attr, invalid, register

# --- concatenate -------------------------------------------------------------------------------


def _infer_concatenate(instruction: HloInstruction) -> Shape:
    shapes = array_operands(instruction)
    if not shapes:
        invalid(instruction, "takes at least 1 operand, 0 given", label(instruction, "c3"))
    dim, first = attr(instruction, "dimensions"), shapes[0]
    check_same_dtype(instruction, range(len(shapes)), "c1")
    check_dims_in_range(instruction, "dimensions", (dim,), first.rank, "c4")
    for number, shape in enumerate(shapes):
        same = shape.rank == first.rank and all(
            d == dim or a == b or UNBOUNDED in (a, b)
            for d, (a, b) in enumerate(zip(shape.dims, first.dims))
        )
        if not same:
            invalid(
                instruction,
                f"operand {number} {shape.to_string(False)} and operand 0 "
                f"{first.to_string(False)} differ in a dimension other than {dim}",
                label(instruction, "c2"),
            )
    dims = list(first.dims)
    sizes = [s.dims[dim] for s in shapes]
    dims[dim] = UNBOUNDED if UNBOUNDED in sizes else sum(sizes)
    flags = [any(column) for column in zip(*(dynamic_flags(s) for s in shapes))]
    return Shape(first.dtype, tuple(dims), first.layout, tuple(flags))


def _concatenate(instruction: HloInstruction, *xs: Array) -> Array:
    return np.concatenate(xs, attr(instruction, "dimensions"))


def _emit_concatenate(
    b: Scalar, instruction: HloInstruction, index: Indices, read: Read
) -> Element:
    """Each operand is read under its own mask; the last one gives the start of the select chain."""
    dim = attr(instruction, "dimensions")
    pieces, end = [], 0
    for number, operand in enumerate(instruction.operands):
        start, end = end, end + operand.shape.dims[dim]
        if start < end:
            pieces.append((number, start, end))
    if len(pieces) == 1:
        return read(pieces[0][0], index)
    result: Element | None = None
    for number, start, end in reversed(pieces):
        mask = b.index_in_range(index[dim], start, end)
        at = (*index[:dim], index[dim] - start, *index[dim + 1 :])
        value = read(number, at, mask)
        result = value if result is None else b.select(mask, value, result)
    if result is None:  # No elements at all: this is never run.
        return b.constant(instruction.shape.dtype, 0)
    return result


def _example_concatenate(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = pick_dtype(graph, ANY), graph.dims(low=1)
    dim = int(graph.rng.integers(len(dims)))
    sizes = [int(s) for s in graph.rng.integers(0, 4, int(graph.rng.integers(1, 4)))]
    operands = [graph.operand(dtype, (*dims[:dim], s, *dims[dim + 1 :])) for s in sizes]
    shape = Shape(dtype, (*dims[:dim], sum(sizes), *dims[dim + 1 :]))
    return graph.add("concatenate", shape, operands, dimensions=dim)


register(
    OpDef(
        opcode="concatenate",
        operands=("inputs*",),
        attrs=(Attr("dimensions", OneDim(), proto="dimensions[0]"),),
        infer=_infer_concatenate,
        evaluate=evaluate_with_instruction(_concatenate),
        lower=Indexed(_emit_concatenate),
        example=_example_concatenate,
        spec="concatenate",
    )
)


# --- iota --------------------------------------------------------------------------------------

IOTA_DTYPES = INTEGER | FLOAT | COMPLEX


def _infer_iota(instruction: HloInstruction) -> Shape:
    check_operand_count(instruction)
    shape = instruction.shape
    if shape.dtype not in IOTA_DTYPES:
        invalid(
            instruction,
            f"the result must be of {dtypes_text(IOTA_DTYPES)} type, got {shape}",
            label(instruction, "i1"),
        )
    dims = (attr(instruction, "iota_dimension"),)
    check_dims_in_range(instruction, "iota_dimension", dims, shape.rank, "c1")
    return shape


def _iota(instruction: HloInstruction) -> Array:
    shape, dim = instruction.shape, attr(instruction, "iota_dimension")
    wide = np.int64 if shape.dtype.is_integer else np.float64
    line = np.arange(shape.dims[dim]).astype(wide)
    column = line.reshape([-1 if d == dim else 1 for d in range(shape.rank)])
    return np.array(np.broadcast_to(column, shape.dims))


def _emit_iota(b: Scalar, instruction: HloInstruction, index: Indices, read: Read) -> Element:
    return b.from_index(index[attr(instruction, "iota_dimension")], instruction.shape.dtype)


def _example_iota(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = pick_dtype(graph, IOTA_DTYPES), graph.dims(low=1)
    dim = int(graph.rng.integers(len(dims)))
    return graph.add("iota", Shape(dtype, dims), iota_dimension=dim)


register(
    OpDef(
        opcode="iota",
        attrs=(Attr("iota_dimension", Int(), proto="dimensions[0]"),),
        infer=_infer_iota,
        evaluate=evaluate_with_instruction(_iota),
        lower=Indexed(_emit_iota),
        example=_example_iota,
        spec="iota",
    )
)


# --- copy --------------------------------------------------------------------------------------


def _infer_copy(instruction: HloInstruction) -> Shape:
    """The operand's shape in the instruction's own layout, for that is what copy may change."""
    check_operand_count(instruction)
    operand = instruction.operands[0].shape
    return instruction.shape if instruction.shape.compatible(operand) else operand


def _copy(instruction: HloInstruction, values: list[Value], _: Evaluator) -> Value:
    return values[0]


def _emit_copy(b: Scalar, instruction: HloInstruction, index: Indices, read: Read) -> Element:
    return read(0, index)


def _example_copy(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = pick_dtype(graph, ANY), graph.dims()
    return graph.add("copy", Shape(dtype, dims), [graph.operand(dtype, dims)])


register(
    OpDef(
        opcode="copy",
        operands=("operand",),
        attrs=(Attr("cross_program_prefetch_index", Int(), -1),),
        infer=_infer_copy,
        evaluate=_copy,
        lower=Indexed(_emit_copy, is_remap=True, keeps_order=True),
        example=_example_copy,
        spec="XLA copy",
    )
)


# --- bitcast -----------------------------------------------------------------------------------


def _infer_bitcast(instruction: HloInstruction) -> Shape:
    (operand,) = array_operands(instruction)
    result = instruction.shape
    if not result.is_array or result.byte_size != operand.byte_size:
        invalid(
            instruction,
            f"the operand {operand} takes {operand.byte_size} bytes, "
            f"the result {result} {result.byte_size}",
        )
    return result


def to_physical(x: Array, layout: Layout) -> Array:
    """The elements in the order in which they lie in memory under `layout`."""
    return np.transpose(x, layout.minor_to_major[::-1]).reshape(-1)


def from_physical(flat: Array, shape: Shape) -> Array:
    """The inverse of `to_physical`."""
    assert shape.layout is not None
    order = shape.layout.minor_to_major[::-1]
    placed = flat.reshape([shape.dims[d] for d in order])
    return np.ascontiguousarray(np.transpose(placed, np.argsort(order) if order else ()))


def _bitcast(instruction: HloInstruction, x: Array) -> Array:
    source, target = instruction.operands[0].shape, instruction.shape
    assert source.layout is not None and target.dtype.numpy is not None
    flat = np.ascontiguousarray(to_physical(x, source.layout))
    return from_physical(flat.view(target.dtype.numpy), target).reshape(target.dims)


def _example_bitcast(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = graph.pick([dt.F32, dt.S32, dt.U32]), graph.dims()
    target = graph.pick([dt.F32, dt.S32, dt.U32])
    shape = Shape(target, graph.pick([dims[::-1], (1, *dims), dims]))
    return graph.add("bitcast", shape, [graph.operand(dtype, dims)])


register(
    OpDef(
        opcode="bitcast",
        operands=("operand",),
        attrs=(),
        infer=_infer_bitcast,
        evaluate=evaluate_with_instruction(_bitcast),
        lower=Structure.NO_CODE,
        example=_example_bitcast,
        spec="XLA bitcast",
    )
)
