"""exp, expm1 and logistic.

exp: x = k ln2 + r, |r| <= ln2 / 2; e^x = 2^k e^r.
"""

from __future__ import annotations

from haloc.codegen.math.coefficients import EXP_F32, EXP_F64, EXPM1_F32, EXPM1_F64
from haloc.codegen.math.format import (
    format_of,
    is_float,
    polynomial,
    scaled_to_integer,
    times_power_of_two,
)
from haloc.codegen.scalar_expr import Expr

_LOG2E = 1.4426950408889634


def _reduced(x: Expr, beyond: float = 1.0) -> tuple[Expr, Expr]:
    """(r, k as integer), x clamped to where k fits; NaN stays in r.

    beyond: how far above the largest argument with a finite e^x to clamp.
    """
    low, high = (-104.0, 89.0) if is_float(x) else (-746.0, 710.0)
    x = x.at_most(high + beyond).at_least(low)
    f = format_of(x)
    k, n = scaled_to_integer(x, _LOG2E)
    return k.fma(-f.ln2_low, k.fma(-f.ln2, x)), n


def exponential(x: Expr, halvings: int = 0) -> Expr:
    """e^x / 2^halvings: an e^x beyond the range is then still within.

    What comes to 0 is not computed: its last step would be in subnormals, which CPUs take ten times
    as long for, and masked softmax is full of it.
    """
    vanishes = x.lt(-104.0 if is_float(x) else -746.0)
    r, n = _reduced(vanishes.choose(x.like(0.0), x))
    p = polynomial(r, EXP_F32 if is_float(x) else EXP_F64)
    result = times_power_of_two((r * r).fma(p, r) + 1.0, n - halvings if halvings else n)
    return vanishes.choose(x.like(0.0), result)


def exponential_minus_one(x: Expr) -> Expr:
    """2^k (e^r - 1) + (2^k - 1), all at half size so that 2^k does not overflow."""
    r, n = _reduced(x, beyond=0.0)
    p = polynomial(r, EXPM1_F32 if is_float(x) else EXPM1_F64)
    small = (r * r).fma(p, r)
    f = format_of(x)
    # Below -2^6 the result is -1 already; this keeps the scale a normal number.
    n = n.call("smax", -64)
    half_scale = (n + (f.bias - 1)).shl(f.mantissa_bits).as_float()
    result = small.fma(half_scale, half_scale - 0.5) * 2.0
    return n.eq(0).choose(x.eq(0.0).choose(x, small), result)


def logistic(x: Expr) -> Expr:
    """1 / (1 + e^-x), written with e^-|x| so that small results keep their digits."""
    e = exponential(-x.abs())
    return x.lt(0.0).choose(e, e.like(1.0)) / (e + 1.0)
