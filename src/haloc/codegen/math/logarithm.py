"""log and log1p.

x = 2^e m, m in [sqrt 1/2, sqrt 2); log x = e ln2 + log(1 + f), f = m - 1.
"""

from __future__ import annotations

import math

from haloc.codegen.math.coefficients import LOG_ATANH_F64, LOG_F32
from haloc.codegen.math.format import format_of, is_float, polynomial, two_sum
from haloc.codegen.scalar_expr import Expr


def split_exponent(x: Expr) -> tuple[Expr, Expr]:
    """(m in [sqrt 1/2, sqrt 2), e as float) of a positive finite x, subnormal or not."""
    f = format_of(x)
    is_small = x.lt(f.smallest_normal)
    grown = is_small.choose(x * 2.0 ** (f.mantissa_bits + 1), x)
    extra = is_small.choose(float(-(f.mantissa_bits + 1)), x.like(0.0))
    root_half = x.like(math.sqrt(0.5)).bits()
    offset = grown.bits() - root_half
    m = ((offset & f.mantissa_mask) + root_half).as_float()
    return m, offset.ashr(f.mantissa_bits).cast("sitofp", x.element) + extra


def _log(x: Expr, correction: Expr | None = None) -> Expr:
    """log x + correction for positive finite x."""
    f = format_of(x)
    m, e = split_exponent(x)
    d = m - 1.0
    half_square = d * d * 0.5
    low = e * f.ln2_rest
    if correction is not None:
        low = low + correction
    if is_float(x):
        tail = (d * d * d).fma(polynomial(d, LOG_F32), low) - half_square
    else:
        s = d / (d + 2.0)
        t = s * s
        tail = s.fma(half_square + t * polynomial(t, LOG_ATANH_F64), low) - half_square
    return e.fma(f.ln2_exact, d + tail)


def _with_edges(x: Expr, result: Expr, zero: float) -> Expr:
    """log's values at `zero` (-inf), below (NaN) and at infinity."""
    outside = x.eq(zero).choose(-math.inf, x.like(math.nan))
    result = x.gt(zero).choose(result, outside)
    return x.eq(math.inf).choose(math.inf, result)


def log(x: Expr) -> Expr:
    return _with_edges(x, _log(x), 0.0)


def log_plus_one(x: Expr) -> Expr:
    """log(1 + x) = log u + c / u, with u + c = 1 + x exactly."""
    u, c = two_sum(x.like(1.0), x)
    result = _with_edges(x, _log(u, c / u), -1.0)
    tiny = 2.0 ** -(format_of(x).mantissa_bits + 2)
    return x.abs().lt(tiny).choose(x, result)
