"""asin, acos and atan2."""

from __future__ import annotations

import math

from haloc.codegen.math.coefficients import ASIN_F32, ASIN_F64, ATAN_F32, ATAN_F64
from haloc.codegen.math.format import format_of, is_float, polynomial
from haloc.codegen.scalar_expr import Expr

PI_4 = {"float": (0.7853981852531433, -2.1855694143368964e-08),
        "double": (0.7853981633974483, 3.061616997868383e-17)}  # fmt: skip


def _quarter_pi(x: Expr) -> tuple[float, float]:
    return PI_4[x.element]


def _asin_core(x: Expr) -> tuple[Expr, Expr, Expr]:
    """(s, rest, is_big): asin|x| = s + rest, or pi/2 - 2 (s + rest) where |x| > 1/2.

    s = |x| or sqrt((1 - |x|) / 2); rest = s^3 p(s^2).
    """
    a = x.abs()
    is_big = a.gt(0.5)
    t = is_big.choose((1.0 - a) * 0.5, a * a)
    s = is_big.choose(t.sqrt(), a)
    return s, s * t * polynomial(t, ASIN_F32 if is_float(x) else ASIN_F64), is_big


def asin(x: Expr) -> Expr:
    s, rest, is_big = _asin_core(x)
    high, low = _quarter_pi(x)
    far = (2.0 * high - 2.0 * s) - (2.0 * rest - 2.0 * low)
    return is_big.choose(far, s + rest).copysign(x)


def acos(x: Expr) -> Expr:
    s, rest, is_big = _asin_core(x)
    q = s + rest
    high, low = _quarter_pi(x)
    half = 2.0 * high - (is_big.choose(q, q.copysign(x)) - 2.0 * low)  # pi/2 - q
    return is_big.choose(x.lt(0.0).choose(2.0 * half, 2.0 * q), half)


def atan2(y: Expr, x: Expr) -> Expr:
    """Angle = m pi/4 + s atan(u): u = low/high, or (low - high)/(high + low) above tan(pi/8)."""
    ax, ay = x.abs(), y.abs()
    swap = ay.gt(ax)
    low, high = swap.choose(ax, ay), swap.choose(ay, ax)
    # Keep low + high in range, and the comparison below out of the subnormals.
    f = format_of(x)
    is_tiny = high.lt(2.0 ** (f.mantissa_bits + 2 - f.bias))
    grow = is_tiny.choose(2.0 ** (f.mantissa_bits + 2), x.like(1.0))
    scale = high.gt(2.0 ** (f.bias - 1)).choose(0.25, grow)
    low, high = low * scale, high * scale
    both_infinite = low.eq(math.inf)
    low, high = both_infinite.choose(1.0, low), both_infinite.choose(1.0, high)
    high = high.eq(0.0).choose(1.0, high)
    is_mid = low.gt(high * (math.sqrt(2) - 1))
    u = is_mid.choose(low - high, low) / is_mid.choose(low + high, high)
    t = u * u
    angle = (u * t).fma(polynomial(t, ATAN_F32 if is_float(x) else ATAN_F64), u)
    m = is_mid.choose(1.0, x.like(0.0))
    angle, m = swap.choose(-angle, angle), swap.choose(2.0 - m, m)
    is_left = x.bits().lt(0)
    angle, m = is_left.choose(-angle, angle), is_left.choose(4.0 - m, m)
    quarter, rest = _quarter_pi(x)
    result = m.fma(quarter, m.fma(rest, angle)).copysign(y)
    return x.compare("uno", y).choose(math.nan, result)
