"""Ops with sizes given by operands: done where the result is static and the sizes are constants.

A reshape may also have a bounded result."""

from __future__ import annotations

import numpy as np

from haloc.formats.stablehlo.convert import reading
from haloc.formats.stablehlo.convert.context import Scope, converts, result_shape
from haloc.formats.stablehlo.convert.contraction import convolution
from haloc.formats.stablehlo.convert.shaping import broadcast_in_dim, gather
from haloc.formats.stablehlo.mlir import MlirOp
from haloc.ir.dtype import S32
from haloc.ir.module import HloInstruction
from haloc.ir.shape import UNBOUNDED, Shape
from haloc.ops.table import OPS, Effect, Evaluator

_DEPTH = 50
_MOST_ELEMENTS = 100_000


def known(instruction: HloInstruction, depth: int = 0) -> np.ndarray | None:
    """The value of an instruction that depends on constants only; None when it does not."""
    if instruction.opcode == "constant":
        return instruction.attrs["literal"].array
    row = OPS[instruction.opcode]
    pure = row.effect is Effect.PURE and not instruction.called_computations
    pure = pure and instruction.shape.element_count <= _MOST_ELEMENTS
    if not pure or depth > _DEPTH or not instruction.shape.is_array:
        return None
    if instruction.opcode == "parameter" or not instruction.shape.is_static:
        return None
    values = []
    for operand in instruction.operands:
        value = known(operand, depth + 1)
        if value is None:
            return None
        values.append(value)
    evaluator: Evaluator = None  # type: ignore[assignment]  # no op here calls a computation
    result = row.evaluate(instruction, list(values), evaluator)
    return result if isinstance(result, np.ndarray) else None


def sizes(scope: Scope, op: MlirOp, number: int, what: str) -> tuple[int, ...]:
    """An operand's integers, which must be known."""
    value = known(scope.operand(op, number))
    if value is None:
        reading.unimplemented(op, f"{what} must be constants: dynamic shapes are not executed")
    return tuple(int(v) for v in value.reshape(-1))


def static_shape(op: MlirOp) -> Shape:
    shape = result_shape(op)
    if not shape.is_static:
        reading.unimplemented(
            op, f"the result {op.results[0].type} is dynamic: dynamic shapes are not executed"
        )
    return shape


@converts("stablehlo.dynamic_reshape")
def _dynamic_reshape(scope: Scope, op: MlirOp) -> HloInstruction:
    operand, wanted = scope.operands(op, 2)
    shape = result_shape(op)
    if shape.is_static or UNBOUNDED in shape.dims:
        return scope.add("reshape", static_shape(op), (operand,))
    if wanted.shape.dims != (shape.rank,):
        reading.fail(op, f"the sizes are {wanted.shape.to_string(False)}, wanted {shape.rank}")
    sizes = []
    for size in _members(scope, wanted):
        is_s32 = size.shape.dtype is S32
        sizes.append(size if is_s32 else scope.add("convert", Shape(S32), (size,)))
    return scope.add("dynamic-reshape", shape, (operand, *sizes))


def _members(scope: Scope, vector: HloInstruction) -> list[HloInstruction]:
    """The elements of a vector as scalars."""
    scalar, members = Shape(vector.shape.dtype), []
    for n in range(vector.shape.dims[0]):
        one = scope.add("slice", scalar.with_dims((1,)), (vector,), slice=((n, n + 1, 1),))
        members.append(scope.add("reshape", scalar, (one,)))
    return members


@converts("stablehlo.dynamic_broadcast_in_dim")
def _dynamic_broadcast(scope: Scope, op: MlirOp) -> HloInstruction:
    operand, _ = scope.operands(op, 2)
    dims = reading.ints(op, "broadcast_dimensions")
    return broadcast_in_dim(scope, op, operand, static_shape(op), dims)


@converts("stablehlo.dynamic_iota")
def _dynamic_iota(scope: Scope, op: MlirOp) -> HloInstruction:
    dim = reading.integer(op, "iota_dimension")
    return scope.add("iota", static_shape(op), (), iota_dimension=dim)


@converts("stablehlo.dynamic_pad")
def _dynamic_pad(scope: Scope, op: MlirOp) -> HloInstruction:
    operand, value = scope.operands(op, 5)[:2]
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    lists = [sizes(scope, op, 2 + i, name) for i, name in enumerate(names)]
    padding = tuple(zip(*lists, strict=True))
    return scope.add("pad", static_shape(op), (operand, value), padding=padding)


@converts("stablehlo.real_dynamic_slice")
def _real_dynamic_slice(scope: Scope, op: MlirOp) -> HloInstruction:
    operand = scope.operands(op, 4)[0]
    shape = static_shape(op)
    starts, strides = known(scope.operand(op, 1)), known(scope.operand(op, 3))
    if strides is None:
        reading.unimplemented(op, "the strides must be constants: dynamic shapes are not executed")
    steps = [int(s) for s in strides.reshape(-1)]
    if starts is not None:
        first = [int(s) for s in starts.reshape(-1)]
        ranges = tuple(
            (s, min(s + (n - 1) * t + 1, limit) if n else s, t)
            for s, n, t, limit in zip(first, shape.dims, steps, operand.shape.dims)
        )
        return scope.add("slice", shape, (operand,), slice=ranges)
    if any(s != 1 for s in steps):
        reading.unimplemented(op, "a start that is not constant goes with strides of 1 only")
    indices = _members(scope, scope.operand(op, 1))
    return scope.add("dynamic-slice", shape, (operand, *indices), dynamic_slice_sizes=shape.dims)


@converts("stablehlo.dynamic_gather")
def _dynamic_gather(scope: Scope, op: MlirOp) -> HloInstruction:
    operands = scope.operands(op, 3)[:2]
    static_shape(op)
    return gather(scope, op, operands, sizes(scope, op, 2, "slice_sizes"))


@converts("stablehlo.dynamic_conv")
def _dynamic_conv(scope: Scope, op: MlirOp) -> HloInstruction:
    operands = scope.operands(op, 3)[:2]
    static_shape(op)
    flat = sizes(scope, op, 2, "the padding")
    pairs = [(flat[i], flat[i + 1]) for i in range(0, len(flat) - 1, 2)]
    return convolution(scope, op, operands, pairs)
