"""Rules of comparison, selection and conversion."""

from __future__ import annotations

from haloc.ir.dtype import DType
from haloc.ir.module import HloInstruction
from haloc.ops.expand import Beside
from haloc.ops.table import attr
from haloc.passes.rules.constants import full, is_constant, scalar_value, widened
from haloc.passes.simplify import RuleSet

CHOICE = RuleSet()
rule = CHOICE.rule

REVERSED = {"EQ": "EQ", "NE": "NE", "LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}
NEGATED = {"EQ": "NE", "NE": "EQ", "LT": "GE", "LE": "GT", "GT": "LE", "GE": "LT"}


@rule(
    "select",
    example="""
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  c = pred[] constant(true)
  p = pred[4] broadcast(c), dimensions={}
  ROOT r = f32[4] select(p, x, y)""",
)
def select_by_constant(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """select(true, x, y) => x;  select(false, x, y) => y;  select(p, x, x) => x"""
    pred, on_true, on_false = x.operands
    if on_true is on_false:
        return widened(b, on_true, x.shape)
    value = scalar_value(pred)
    return None if value is None else widened(b, on_true if value else on_false, x.shape)


@rule(
    "select",
    example="""
  p = pred[4] parameter(0)
  x = f32[4] parameter(1)
  y = f32[4] parameter(2)
  n = pred[4] not(p)
  ROOT r = f32[4] select(n, x, y)""",
)
def select_by_negation(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """select(not(p), x, y) => select(p, y, x)"""
    pred, on_true, on_false = x.operands
    if pred.opcode != "not":
        return None
    return b.add("select", x.shape, (pred.operands[0], on_false, on_true))


@rule(
    "select",
    example="""
  p = pred[4] parameter(0)
  t = pred[] constant(true)
  f = pred[] constant(false)
  x = pred[4] broadcast(t), dimensions={}
  y = pred[4] broadcast(f), dimensions={}
  ROOT r = pred[4] select(p, x, y)""",
)
def select_of_truths(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """select(p, true, false) => p;  select(p, false, true) => not(p)"""
    if not x.shape.dtype.is_pred:
        return None
    pred, on_true, on_false = x.operands
    true, false = scalar_value(on_true), scalar_value(on_false)
    if true is None or false is None or bool(true) == bool(false):
        return None
    pred = widened(b, pred, x.shape)
    return pred if true else b.unary("not", pred)


@rule(
    "compare",
    example="""
  x = s32[4] parameter(0)
  ROOT r = pred[4] compare(x, x), direction=GE""",
)
def compare_with_itself(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """x == x => true;  x < x => false, for integers and pred"""
    left, right = x.operands
    dtype = left.shape.dtype
    if left is not right or not (dtype.is_integer or dtype.is_pred):
        return None
    return full(b, attr(x, "direction") in ("EQ", "LE", "GE"), x.shape)


@rule(
    "compare",
    example="""
  x = f32[4] parameter(0)
  c = f32[] constant(2)
  z = f32[4] broadcast(c), dimensions={}
  ROOT r = pred[4] compare(z, x), direction=LT""",
)
def compare_constant_to_the_right(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """c < x => x > c"""
    left, right = x.operands
    if not is_constant(left) or is_constant(right):
        return None
    attrs = {**x.attrs, "direction": REVERSED[attr(x, "direction")]}
    return b.add("compare", x.shape, (right, left), **attrs)


@rule(
    "compare",
    example="""
  x = u32[4] parameter(0)
  c = u32[] constant(0)
  z = u32[4] broadcast(c), dimensions={}
  ROOT r = pred[4] compare(x, z), direction=LT""",
)
def compare_unsigned_with_zero(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """x < 0 => false;  x >= 0 => true, for unsigned x"""
    left, right = x.operands
    direction = attr(x, "direction")
    if not left.shape.dtype.is_unsigned or direction not in ("LT", "GE"):
        return None
    value = scalar_value(right)
    return full(b, direction == "GE", x.shape) if value is not None and int(value) == 0 else None


@rule(
    "not",
    example="""
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  c = pred[4] compare(x, y), direction=EQ
  ROOT r = pred[4] not(c)""",
)
def not_of_comparison(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """not(x < y) => x >= y for integers;  not(x == y) => x != y for all"""
    inner = x.operands[0]
    if inner.opcode != "compare" or len(inner.users) > 1:
        return None
    direction, dtype = attr(inner, "direction"), inner.operands[0].shape.dtype
    if direction not in ("EQ", "NE") and not (dtype.is_integer or dtype.is_pred):
        return None
    return b.add(
        "compare", x.shape, inner.operands, **{**inner.attrs, "direction": NEGATED[direction]}
    )


@rule(
    "convert",
    "bitcast-convert",
    example="""
  x = f32[4] parameter(0)
  ROOT r = f32[4] convert(x)""",
)
def convert_to_itself(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """convert(x) => x for x of the same type"""
    operand = x.operands[0]
    return operand if operand.shape.dtype is x.shape.dtype else None


@rule(
    "convert",
    example="""
  x = s8[4] parameter(0)
  c = s32[4] convert(x)
  ROOT r = f32[4] convert(c)""",
)
def convert_of_lossless_convert(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """convert(convert(x, S), T) => convert(x, T) when S holds every value of x's type

    Not for integer to float to integer: floats saturate, integers wrap.
    """
    inner = x.operands[0]
    if inner.opcode != "convert":
        return None
    source = inner.operands[0]
    if inner.shape.dtype.is_float and source.shape.dtype.is_integer and x.shape.dtype.is_integer:
        return None
    if not holds_all_of(inner.shape.dtype, source.shape.dtype):
        return None
    return b.convert(source, x.shape.dtype)


@rule(
    "bitcast-convert",
    example="""
  x = f32[4] parameter(0)
  c = s32[4] bitcast-convert(x)
  ROOT r = u32[4] bitcast-convert(c)""",
)
def bitcast_convert_of_bitcast_convert(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """bitcast-convert(bitcast-convert(x)) => bitcast-convert(x) between types of one width"""
    inner = x.operands[0]
    if inner.opcode != "bitcast-convert":
        return None
    source = inner.operands[0]
    if source.shape.dims != x.shape.dims or inner.shape.dims != x.shape.dims:
        return None
    if source.shape.dtype is x.shape.dtype:
        return source
    return b.bitcast_convert(source, x.shape)


_FLOATS = {
    "f16": (11, -24, 15),
    "bf16": (8, -133, 127),
    "f32": (24, -149, 127),
    "f64": (53, -1074, 1023),
}
"""Significand bits, exponents of the smallest and the largest number."""


def holds_all_of(wide: DType, narrow: DType) -> bool:
    """Every value of `narrow` is a value of `wide`: integers and the four usual floats."""
    if narrow.is_pred:
        return wide.is_integer or wide.is_float
    if narrow.is_integer:
        magnitude = narrow.bits - narrow.is_signed
        if wide.is_integer:
            if narrow.is_signed and not wide.is_signed:
                return False
            return wide.bits - wide.is_signed >= magnitude
        return wide.name in _FLOATS and _FLOATS[wide.name][0] >= magnitude
    if narrow.name in _FLOATS and wide.name in _FLOATS:
        (p, low, high), (q, lower, higher) = _FLOATS[narrow.name], _FLOATS[wide.name]
        return q >= p and lower <= low and higher >= high
    return False
