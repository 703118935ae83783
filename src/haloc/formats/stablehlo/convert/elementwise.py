"""Ops that have an HLO op of the same operands: one row a name."""

from __future__ import annotations

from haloc.formats.stablehlo.convert import reading, rows
from haloc.formats.stablehlo.convert.context import (
    Scope,
    converts,
    result_shape,
    results_shape,
)
from haloc.formats.stablehlo.mlir import DenseElements, MlirOp, Struct
from haloc.ir.literal import Literal
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.table import OPS

_UNARY = """
abs cbrt ceil convert cosine exponential floor imag log logistic negate not popcnt real rsqrt
sign sine sqrt tan tanh bitcast_convert=bitcast-convert count_leading_zeros=count-leading-zeros
exponential_minus_one=exponential-minus-one is_finite=is-finite log_plus_one=log-plus-one
round_nearest_afz=round-nearest-afz round_nearest_even=round-nearest-even reshape
"""
_BINARY = """
add and atan2 complex divide maximum minimum multiply or power remainder subtract xor
shift_left=shift-left shift_right_arithmetic=shift-right-arithmetic
shift_right_logical=shift-right-logical
"""
_CHLO_UNARY = "acos acosh asin asinh atanh cosh erf sinh tan"


def _pairs(words: str, dialect: str) -> dict[str, str]:
    """Full name to HLO opcode; `a=b` where they differ."""
    found = {}
    for word in words.split():
        name, _, opcode = word.partition("=")
        found[f"{dialect}.{name}"] = opcode or name
    return found


OPCODES = {
    **_pairs(_UNARY, "stablehlo"),
    **_pairs(_BINARY, "stablehlo"),
    **_pairs(_CHLO_UNARY, "chlo"),
    "chlo.mulhi": "mulhi",
}
"""HLO's opcode for ops that differ in the name only."""


def _accuracy(op: MlirOp) -> str:
    """result_accuracy as HLO writes it; empty for the default."""
    value = op.attributes.get("result_accuracy")
    if not isinstance(value, Struct):
        return ""
    mode = value.fields.get("mode")
    word = getattr(mode, "value", "DEFAULT")
    if word == "HIGHEST":
        return "{mode=highest}"
    if word == "TOLERANCE":
        parts = [f"{k}={value.fields.get(k, 0)}" for k in ("atol", "rtol", "ulps")]
        return "{tolerance={" + ",".join(parts) + "}}"
    return ""


def _same(scope: Scope, op: MlirOp) -> HloInstruction:
    opcode = OPCODES[op.name]
    operands = scope.operands(op, len(OPS[opcode].operands))
    made = scope.add(opcode, result_shape(op), operands)
    if accuracy := _accuracy(op):
        made.attrs["result_accuracy"] = accuracy
    return made


converts(*OPCODES)(_same)


def _row(scope: Scope, op: MlirOp) -> None:
    row = rows.ROWS[op.name]
    names = OPS[row.opcode].operands
    count = None if OPS[row.opcode].is_variadic else len(names)
    attrs = {f.hlo: f.form.read(op, f.name, f.default) for f in row.fields}
    made = scope.add(row.opcode, results_shape(op), scope.operands(op, count), **attrs)
    scope.results(op, made)


converts(*(name for name, row in rows.ROWS.items() if row.reads))(_row)


_LARGEST_SPLAT = 64
"""Constants of one value repeated more often than this become broadcasts, which hold it once."""


@converts("stablehlo.constant", "chlo.constant", "sdy.constant")
def _constant(scope: Scope, op: MlirOp) -> HloInstruction:
    value = reading.get(op, "value")
    if not isinstance(value, DenseElements):
        reading.fail(op, "attribute value must be dense<...>")
    shape = result_shape(op)
    if value.array.shape != shape.dims or value.array.dtype != shape.dtype.numpy:
        reading.fail(op, f"the value is {value.type}, but the result {op.results[0].type}")
    if value.array.size > _LARGEST_SPLAT and not any(value.array.strides):
        one = scope.constant(value.array.flat[0], shape.dtype)
        return scope.add("broadcast", shape, (one,), dimensions=())
    return scope.add("constant", shape, (), literal=Literal(shape, value.array))


@converts("arith.constant")
def _arith_constant(scope: Scope, op: MlirOp) -> HloInstruction:
    value = reading.get(op, "value")
    shape = result_shape(op)
    array = value.array if isinstance(value, DenseElements) else getattr(value, "value", value)
    return scope.constant(array, shape.dtype)


@converts("stablehlo.compare")
def _compare(scope: Scope, op: MlirOp) -> HloInstruction:
    operands = scope.operands(op, 2)
    direction = reading.enum(op, "comparison_direction")
    attrs = {"direction": direction}
    kind = reading.enum(op, "compare_type", "")
    # The types that are the default of the element type are not kept, as XLA does.
    if kind == "TOTALORDER":
        attrs["type"] = kind
    return scope.add("compare", result_shape(op), operands, **attrs)


def broadcast_scalar(scope: Scope, value: HloInstruction, shape: Shape) -> HloInstruction:
    """A scalar as an array of `shape`'s dimensions; arrays are left alone."""
    if value.shape.dims == shape.dims:
        return value
    return scope.add("broadcast", shape.with_dtype(value.shape.dtype), (value,), dimensions=())


@converts("stablehlo.select")
def _select(scope: Scope, op: MlirOp) -> HloInstruction:
    pred, on_true, on_false = scope.operands(op, 3)
    shape = result_shape(op)
    if pred.shape.rank == 0:
        pred = broadcast_scalar(scope, pred, shape)
    return scope.add("select", shape, (pred, on_true, on_false))


@converts("stablehlo.rng")
def _rng(scope: Scope, op: MlirOp) -> HloInstruction:
    low, high, _ = scope.operands(op, 3)
    distribution = rows.DISTRIBUTION.read(op, "rng_distribution", rows.MISSING)
    return scope.add("rng", result_shape(op), (low, high), distribution=distribution)
