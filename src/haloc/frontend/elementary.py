"""What lax and numpy are made of: conversion, promotion and broadcasting of traced arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from haloc.frontend.builder import XlaOp
from haloc.frontend.dtypes import element_type, promoted
from haloc.frontend.ops.elementwise import stretch
from haloc.frontend.tracer import TracedArray
from haloc.ir.dtype import F32, DType
from haloc.ir.shape import Shape


def wrap(like: TracedArray, op: XlaOp, weak: bool = False) -> TracedArray:
    return TracedArray(like.trace, op, weak)


def emit(
    opcode: str,
    operands: Sequence[TracedArray],
    shape: Shape | None = None,
    weak: bool = False,
    **attrs: Any,
) -> TracedArray:
    """One instruction on arrays of one trace, of which there is at least one."""
    builder = operands[0].trace.builder
    instruction = builder.add(opcode, shape, [o.op.instruction for o in operands], **attrs)
    return wrap(operands[0], XlaOp(builder, instruction), weak)


def convert(x: TracedArray, dtype: DType, weak: bool = False) -> TracedArray:
    if x.element_type is dtype:
        return x if x.weak_type == weak else wrap(x, x.op, weak)
    if x.element_type.is_complex and not dtype.is_complex:
        x = emit("real", [x])
    return emit("convert", [x], x.op.shape.with_dtype(dtype), weak)


def astype(x: TracedArray, dtype: Any) -> TracedArray:
    return convert(x, element_type(dtype))


def full(like: TracedArray, value: Any, dtype: DType, dims: Sequence[int] = ()) -> TracedArray:
    """`value` everywhere, in the trace of `like`."""
    constant = XlaOp(like.trace.builder, like.trace.builder.constant(value, dtype))
    return wrap(like, stretch(constant, tuple(dims), ()) if len(dims) else constant)


def full_like(x: TracedArray, value: Any) -> TracedArray:
    return full(x, value, x.element_type, x.shape)


def promote(*arrays: TracedArray, inexact: bool = False) -> tuple[list[TracedArray], bool]:
    """Arrays of one type, integers as floats where `inexact`; and whether it is weak."""
    dtype, weak = promoted(*((a.element_type, a.weak_type) for a in arrays))
    if inexact and not (dtype.is_float or dtype.is_complex):
        dtype = element_type("float64") if dtype.bits == 64 else F32
    return [convert(a, dtype, weak) for a in arrays], weak


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """NumPy's rule; ValueError where sizes do not fit."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    result = []
    for sizes in zip(*padded):
        kept = {s for s in sizes if s != 1}
        if len(kept) > 1:
            raise ValueError(
                f"Incompatible shapes for broadcasting: shapes={[tuple(s) for s in shapes]}"
            )
        result.append(kept.pop() if kept else 1)
    return tuple(result)


def broadcast_to(x: TracedArray, dims: Sequence[int]) -> TracedArray:
    dims = tuple(dims)
    if broadcast_shapes(x.shape, dims) != dims:
        raise ValueError(f"Incompatible shapes for broadcasting: {x.shape} and {dims}")
    places = tuple(range(len(dims) - x.ndim, len(dims)))
    return wrap(x, stretch(x.op, dims, places), x.weak_type)


def broadcast(*arrays: TracedArray) -> list[TracedArray]:
    dims = broadcast_shapes(*(a.shape for a in arrays))
    return [broadcast_to(a, dims) for a in arrays]


def axes_of(axis: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Dimensions from 0; ValueError for what is none."""
    given = range(rank) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    for a in given:
        if not -rank <= a < rank:
            raise ValueError(f"axis {a} is out of bounds for array of dimension {rank}")
    return tuple(a % rank for a in given)
