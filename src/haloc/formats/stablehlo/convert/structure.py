"""Tuples, tokens, barriers, ids, and transfers with the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from haloc.formats.stablehlo.convert import reading
from haloc.formats.stablehlo.convert.context import Scope, converts, result_shape
from haloc.formats.stablehlo.convert.shapes import shape_of
from haloc.formats.stablehlo.convert.sharding import annotate
from haloc.formats.stablehlo.mlir import MlirOp
from haloc.ir.dtype import TOKEN, U32
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.codec import format_int_lists
from haloc.ops.participants import TRANSFER_PAIRS


@converts("stablehlo.tuple")
def _tuple(scope: Scope, op: MlirOp) -> HloInstruction:
    return scope.tuple(scope.operands(op))


@converts("stablehlo.get_tuple_element")
def _get_tuple_element(scope: Scope, op: MlirOp) -> HloInstruction:
    (operand,) = scope.operands(op, 1)
    index = reading.integer(op, "index")
    if not operand.shape.is_tuple or not 0 <= index < len(operand.shape.elements):
        reading.fail(op, f"{operand.shape.to_string(False)} has no element {index}")
    return scope.element(operand, index)


@converts("stablehlo.optimization_barrier")
def _barrier(scope: Scope, op: MlirOp) -> None:
    operands = scope.operands(op)
    if not operands:
        return
    operand = operands[0] if len(operands) == 1 else scope.tuple(operands)
    scope.results(op, scope.add("opt-barrier", operand.shape, (operand,)))


@converts("stablehlo.after_all", "stablehlo.create_token")
def _after_all(scope: Scope, op: MlirOp) -> HloInstruction:
    return scope.add("after-all", Shape(TOKEN), scope.operands(op))


# --- The host ------------------------------------------------------------------------------------


@converts("stablehlo.infeed")
def _infeed(scope: Scope, op: MlirOp) -> list[HloInstruction]:
    """HLO gives (data, token), where several arrays make one tuple."""
    (token,) = scope.operands(op, 1)
    data = tuple_shape(*(shape_of(r.type) for r in op.results[:-1]))
    shape = tuple_shape(data, Shape(TOKEN))
    made = scope.add("infeed", shape, (token,))
    if config := reading.text(op, "infeed_config", ""):
        made.attrs["infeed_config"] = config
    return [*scope.elements(scope.element(made, 0)), scope.element(made, 1)]


@converts("stablehlo.outfeed")
def _outfeed(scope: Scope, op: MlirOp) -> HloInstruction:
    *values, token = scope.operands(op)
    data = scope.tuple(values)
    made = scope.add("outfeed", Shape(TOKEN), (data, token), outfeed_shape=data.shape)
    if config := reading.text(op, "outfeed_config", ""):
        made.attrs["outfeed_config"] = config
    return made


def channel(op: MlirOp) -> dict[str, Any]:
    """channel_id, where a channel is given."""
    if "channel_handle" not in op.attributes:
        return {}
    handle = reading.struct(op, "channel_handle", "channel_handle").get("handle", 0)
    return {"channel_id": handle} if handle else {}


def _transfer(scope: Scope, op: MlirOp) -> Callable[..., HloInstruction]:
    """Adds a half of a transfer: with its channel and, of device to device, its pairs."""
    attrs = channel(op)
    if reading.flag(op, "is_host_transfer"):
        attrs["is_host_transfer"] = True
    pairs = ""
    if "source_target_pairs" in op.attributes:
        pairs = format_int_lists(reading.pairs(op, "source_target_pairs"))

    def add(opcode: str, shape: Shape, operands: Sequence[HloInstruction]) -> HloInstruction:
        made = scope.add(opcode, shape, operands, **attrs)
        annotate(scope, made, op)
        if pairs:
            made.frontend_attributes = {**made.frontend_attributes, TRANSFER_PAIRS: pairs}
        return made

    return add


@converts("stablehlo.send")
def _send(scope: Scope, op: MlirOp) -> HloInstruction:
    *values, token = scope.operands(op)
    data = values[0] if len(values) == 1 else scope.tuple(values)
    add = _transfer(scope, op)
    sent = add("send", tuple_shape(data.shape, Shape(U32), Shape(TOKEN)), (data, token))
    return add("send-done", Shape(TOKEN), (sent,))


@converts("stablehlo.recv")
def _recv(scope: Scope, op: MlirOp) -> list[HloInstruction]:
    (token,) = scope.operands(op, 1)
    shapes = [shape_of(r.type) for r in op.results[:-1]]
    data = shapes[0] if len(shapes) == 1 else tuple_shape(*shapes)
    add = _transfer(scope, op)
    begun = add("recv", tuple_shape(data, Shape(U32), Shape(TOKEN)), (token,))
    done = add("recv-done", tuple_shape(data, Shape(TOKEN)), (begun,))
    value = scope.element(done, 0)
    values = [value] if len(shapes) == 1 else scope.elements(value)
    return [*values, scope.element(done, 1)]


@converts("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize")
def _quantize(scope: Scope, op: MlirOp) -> HloInstruction:
    """Refused by the name of the quantized type."""
    for value in (*op.operands, *op.results):
        shape_of(value.type)
    return reading.unimplemented(op, f"quantized types, here {result_shape(op)}")
