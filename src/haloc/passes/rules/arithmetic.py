"""Rules of arithmetic: identities, annihilators, inverses.

Floats keep every bit that IEEE 754 defines: x + 0 is not x for x = -0, x * 0 is not 0 for NaN and
infinity, x - x is not 0 for infinity. Complex numbers are left alone where a component could be
NaN or infinite.
"""

from __future__ import annotations

import math

import numpy as np

from haloc.ir.module import HloInstruction
from haloc.ops.expand import Beside
from haloc.ops.table import OPS
from haloc.passes.rules.constants import (
    full,
    is_constant,
    is_number,
    is_value,
    scalar_value,
    widened,
)
from haloc.passes.simplify import RuleSet

ARITHMETIC = RuleSet()
rule = ARITHMETIC.rule

COMMUTATIVE = tuple(row.opcode for row in OPS.values() if row.commutative)


@rule(
    *COMMUTATIVE,
    example="""
  x = f32[4] parameter(0)
  c = f32[4] constant({1, 2, 3, 4})
  ROOT r = f32[4] multiply(c, x)""",
)
def constant_to_the_right(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """op(c, x) => op(x, c) for commutative op, constant c and other x"""
    left, right = x.operands
    if not is_constant(left) or is_constant(right):
        return None
    return b.add(x.opcode, x.shape, (right, left), **x.attrs)


@rule(
    "add",
    example="""
  x = f32[4] parameter(0)
  c = f32[] constant(-0.0)
  z = f32[4] broadcast(c), dimensions={}
  ROOT r = f32[4] add(x, z)""",
)
def add_zero(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """x + 0 => x for integers and pred;  x + (-0) => x for floats"""
    left, right = x.operands
    dtype = x.shape.dtype
    if dtype.is_complex:
        return None
    zero = -0.0 if dtype.is_float else 0
    return widened(b, left, x.shape) if is_value(right, zero) else None


@rule(
    "subtract",
    example="""
  x = f32[4] parameter(0)
  c = f32[] constant(0)
  z = f32[4] broadcast(c), dimensions={}
  ROOT r = f32[4] subtract(x, z)""",
)
def subtract_zero(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """x - 0 => x, with +0 for floats"""
    left, right = x.operands
    if x.shape.dtype.is_complex or not is_value(right, 0):
        return None
    return widened(b, left, x.shape)


@rule(
    "subtract",
    "xor",
    example="""
  x = s32[4] parameter(0)
  ROOT r = s32[4] subtract(x, x)""",
)
def cancel(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """x - x => 0 for integers;  xor(x, x) => 0"""
    left, right = x.operands
    dtype = x.shape.dtype
    if left is not right or not (dtype.is_integer or (dtype.is_pred and x.opcode == "xor")):
        return None
    return full(b, 0, x.shape)


@rule(
    "multiply",
    example="""
  x = f32[4] parameter(0)
  c = f32[] constant(1)
  z = f32[4] broadcast(c), dimensions={}
  ROOT r = f32[4] multiply(x, z)""",
)
def multiply_by_one(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """x * 1 => x, not for complex numbers"""
    left, right = x.operands
    if x.shape.dtype.is_complex or not is_value(right, 1):
        return None
    return widened(b, left, x.shape)


@rule(
    "multiply",
    "and",
    example="""
  x = s32[4] parameter(0)
  c = s32[] constant(0)
  z = s32[4] broadcast(c), dimensions={}
  ROOT r = s32[4] multiply(x, z)""",
)
def annihilate(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """x * 0 => 0 for integers and pred;  and(x, 0) => 0"""
    dtype = x.shape.dtype
    if not (dtype.is_integer or dtype.is_pred) or not is_value(x.operands[1], 0):
        return None
    return full(b, 0, x.shape)


@rule(
    "add",
    "multiply",
    "and",
    "or",
    "xor",
    example="""
  x = s32[4] parameter(0)
  c = s32[4] constant({1, 2, 3, 4})
  d = s32[4] constant({5, 6, 7, 8})
  y = s32[4] add(x, c)
  ROOT r = s32[4] add(y, d)""",
)
def reassociate_constants(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """(x op c) op d => x op (c op d) for integers and pred"""
    dtype = x.shape.dtype
    inner, d = x.operands
    if not (dtype.is_integer or dtype.is_pred) or inner.opcode != x.opcode or not is_constant(d):
        return None
    first, c = inner.operands
    if not is_constant(c) or is_constant(first):
        return None
    return b.add(x.opcode, x.shape, (first, b.add(x.opcode, x.shape, (c, d))))


@rule(
    "divide",
    example="""
  x = f32[4] parameter(0)
  c = f32[] constant(1)
  z = f32[4] broadcast(c), dimensions={}
  ROOT r = f32[4] divide(x, z)""",
)
def divide_by_one(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """x / 1 => x, not for complex numbers"""
    left, right = x.operands
    if x.shape.dtype.is_complex or not is_value(right, 1):
        return None
    return widened(b, left, x.shape)


@rule(
    "divide",
    example="""
  x = f32[4] parameter(0)
  c = f32[] constant(8)
  z = f32[4] broadcast(c), dimensions={}
  ROOT r = f32[4] divide(x, z)""",
)
def divide_by_power_of_two(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """x / 2^k => x * 2^-k for f16, bf16, f32, f64 where 2^-k is a normal number

    Both round the same exact quotient once, so no bit differs.
    """
    if x.shape.dtype.name not in ("f16", "bf16", "f32", "f64"):
        return None
    value = scalar_value(x.operands[1])
    if value is None or not np.isfinite(value) or value == 0 or abs(float(value)) == 1.0:
        return None
    mantissa, exponent = math.frexp(float(value))
    smallest = {"f16": -14, "bf16": -126, "f32": -126, "f64": -1022}[x.shape.dtype.name]
    if abs(mantissa) != 0.5 or not smallest <= 1 - exponent <= -smallest:
        return None
    inverse = full(b, 1.0 / float(value), x.shape)
    return b.add("multiply", x.shape, (x.operands[0], inverse))


@rule(
    "remainder",
    example="""
  x = u32[4] parameter(0)
  c = u32[] constant(1)
  z = u32[4] broadcast(c), dimensions={}
  ROOT r = u32[4] remainder(x, z)""",
)
def remainder_by_one(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """x % 1 => 0 for integers"""
    if not x.shape.dtype.is_integer or not is_value(x.operands[1], 1):
        return None
    return full(b, 0, x.shape)


@rule(
    "negate",
    "not",
    example="""
  x = f32[4] parameter(0)
  n = f32[4] negate(x)
  ROOT r = f32[4] negate(n)""",
)
def involution(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """-(-x) => x;  not(not(x)) => x"""
    inner = x.operands[0]
    return inner.operands[0] if inner.opcode == x.opcode else None


@rule(
    "abs",
    example="""
  x = f32[4] parameter(0)
  n = f32[4] negate(x)
  ROOT r = f32[4] abs(n)""",
)
def abs_of_sign_change(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """abs(-x) => abs(x) for real x;  abs(abs(x)) => abs(x)"""
    inner = x.operands[0]
    if inner.opcode == "abs" and not inner.shape.dtype.is_complex:
        return inner
    if inner.opcode == "negate" and not inner.shape.dtype.is_complex:
        return b.unary("abs", inner.operands[0])
    return None


@rule(
    "power",
    example="""
  x = f32[4] parameter(0)
  c = f32[] constant(2)
  z = f32[4] broadcast(c), dimensions={}
  ROOT r = f32[4] power(x, z)""",
)
def small_power(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """x^0 => 1;  x^1 => x;  x^2 => x * x;  x^-1 => 1 / x for floats; x^0, x^1, x^2 for integers"""
    base, exponent = x.operands
    dtype = x.shape.dtype
    if not (dtype.is_float or dtype.is_integer) or base.shape.dims != x.shape.dims:
        return None
    if is_value(exponent, 0):
        return full(b, 1, x.shape)
    if is_value(exponent, 1):
        return base
    if is_value(exponent, 2):
        return b.add("multiply", x.shape, (base, base))
    if dtype.is_float and is_value(exponent, -1):
        return b.add("divide", x.shape, (full(b, 1, x.shape), base))
    return None


@rule(
    "maximum",
    "minimum",
    "and",
    "or",
    example="""
  x = f32[4] parameter(0)
  ROOT r = f32[4] maximum(x, x)""",
)
def idempotent(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """op(x, x) => x for maximum, minimum, and, or"""
    left, right = x.operands
    return left if left is right else None


@rule(
    "maximum",
    "minimum",
    example="""
  x = f32[4] parameter(0)
  c = f32[] constant(-inf)
  z = f32[4] broadcast(c), dimensions={}
  ROOT r = f32[4] maximum(x, z)""",
)
def unbounded_maximum(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """maximum(x, smallest) => x;  minimum(x, largest) => x, for real x"""
    left, right = x.operands
    value, dtype = scalar_value(right), x.shape.dtype
    if value is None or not is_number(x) or dtype.is_complex or left.shape.dims != x.shape.dims:
        return None
    is_max = x.opcode == "maximum"
    if dtype.is_float:
        neutral = np.isinf(value) and (value < 0) == is_max
    else:
        low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
        high = (1 << (dtype.bits - 1 if dtype.is_signed else dtype.bits)) - 1
        neutral = int(value) == (low if is_max else high)
    return left if neutral else None


@rule(
    "and",
    "or",
    "xor",
    example="""
  x = pred[4] parameter(0)
  c = pred[] constant(true)
  z = pred[4] broadcast(c), dimensions={}
  ROOT r = pred[4] and(x, z)""",
)
def logic_identity(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """and(x, ones) => x;  or(x, 0) => x;  xor(x, 0) => x;  or(x, ones) => ones"""
    left, right = x.operands
    value, dtype = scalar_value(right), x.shape.dtype
    if value is None or not (dtype.is_integer or dtype.is_pred):
        return None
    ones = bool(value) if dtype.is_pred else int(value) in (-1, (1 << dtype.bits) - 1)
    zero = not bool(value)
    if (x.opcode == "and" and ones) or (x.opcode in ("or", "xor") and zero):
        return widened(b, left, x.shape)
    return widened(b, right, x.shape) if x.opcode == "or" and ones else None


@rule(
    "shift-left",
    "shift-right-arithmetic",
    "shift-right-logical",
    example="""
  x = s32[4] parameter(0)
  c = s32[] constant(0)
  z = s32[4] broadcast(c), dimensions={}
  ROOT r = s32[4] shift-left(x, z)""",
)
def shift_by_zero(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """shift(x, 0) => x"""
    return widened(b, x.operands[0], x.shape) if is_value(x.operands[1], 0) else None


@rule(
    "real",
    "imag",
    example="""
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  c = c64[4] complex(x, y)
  ROOT r = f32[4] imag(c)""",
)
def part_of_complex(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """real(complex(a, b)) => a;  imag(complex(a, b)) => b;  real(x) => x for real x"""
    inner = x.operands[0]
    if inner.opcode == "complex":
        return widened(b, inner.operands[x.opcode == "imag"], x.shape)
    if x.opcode == "real" and not inner.shape.dtype.is_complex:
        return inner
    return None


@rule(
    "complex",
    example="""
  x = c64[4] parameter(0)
  a = f32[4] real(x)
  b = f32[4] imag(x)
  ROOT r = c64[4] complex(a, b)""",
)
def complex_of_parts(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """complex(real(x), imag(x)) => x"""
    real, imag = x.operands
    if real.opcode != "real" or imag.opcode != "imag":
        return None
    source = real.operands[0]
    same = source is imag.operands[0] and source.shape.dtype is x.shape.dtype
    return source if same else None
