"""power, cbrt and rsqrt."""

from __future__ import annotations

import math

from haloc.codegen.math.coefficients import (
    CBRT_F64,
    EXP2_F64,
    EXP2_SHORT_F64,
    LOG2_SHORT_F64,
    POW_LOG_F64,
)
from haloc.codegen.math.format import (
    fast_two_sum,
    format_of,
    is_float,
    polynomial,
    round_to_integer,
    times_power_of_two,
    two_product,
    two_sum,
)
from haloc.codegen.math.logarithm import split_exponent
from haloc.codegen.scalar_expr import Expr

_LOG2E = (1.4426950408889634, 2.0355273740931033e-17)


def power(x: Expr, y: Expr) -> Expr:
    """x^y as C has it: 2^(y log2|x|), the exponent carried with enough bits beyond the result's."""
    size = _power_float(x.abs(), y) if is_float(x) else _power_double(x.abs(), y)
    return _power_edges(x, y, size)


def _power_float(a: Expr, y: Expr) -> Expr:
    """In double: an error of 2^-45 there is none in float."""
    wide, exponent = a.cast("fpext", "double"), y.cast("fpext", "double")
    bits = wide.bits()  # every float is a normal double
    root_half = wide.like(math.sqrt(0.5)).bits()
    offset = bits - root_half
    m = ((offset & ((1 << 52) - 1)) + root_half).as_float()
    e = offset.ashr(52).cast("sitofp", "double")
    s = (m - 1.0) / (m + 1.0)
    log2 = s.fma(polynomial(s * s, LOG2_SHORT_F64), e)
    product = (log2 * exponent).at_most(200.0).at_least(-200.0)
    k, n = round_to_integer(product)
    r = product - k
    p = r.fma(polynomial(r, EXP2_SHORT_F64), 1.0)
    return (p.bits() + n.shl(52)).as_float().cast("fptrunc", "float")


def _power_double(a: Expr, y: Expr) -> Expr:
    """log2 a as a sum of two doubles, good to some 2^-66."""
    high, low = _log2(a)
    y = y.at_most(2.0**80).at_least(-(2.0**80))  # past any finite result, and no inf - inf below
    product, error = two_product(high, y)
    low = low.fma(y, error)
    product, low = fast_two_sum(product, low)
    is_over = product.abs().gt(1100.0)
    product = product.at_most(1100.0).at_least(-1100.0)
    low = is_over.choose(0.0, low)
    k, n = round_to_integer(product)
    r = (product - k) + low
    p = r.fma(polynomial(r, EXP2_F64), 1.0)
    return times_power_of_two(p, n)


def _log2(a: Expr) -> tuple[Expr, Expr]:
    """log m = 2s + s t (2/3 + t p(t)), s = (m - 1) / (m + 1), t = s^2, in pairs of doubles."""
    m, e = split_exponent(a)
    top, bottom = m - 1.0, m + 1.0
    bottom_low = m - (bottom - 1.0)
    s = top / bottom
    # What s * bottom misses of top, the bottom's own rounding included.
    s_low = ((-s).fma(bottom, top) - s * bottom_low) / bottom
    t, t_low = two_product(s, s)
    t_low = s.fma(2.0 * s_low, t_low)
    # u = 2/3 + t p
    u, u_low = fast_two_sum(t.like(2.0 / 3.0), t * polynomial(t, POW_LOG_F64))
    u_low = u_low + 3.700743415417188e-17
    # v = t u; w = 2 + v; log m = s w
    v, v_low = two_product(t, u)
    v_low = v_low + t.fma(u_low, t_low * u)
    w, w_low = fast_two_sum(v.like(2.0), v)
    w_low = w_low + v_low
    log, log_low = two_product(s, w)
    log_low = log_low + s.fma(w_low, s_low * w)
    high, low = two_product(log, log.like(_LOG2E[0]))
    low = low + log.fma(_LOG2E[1], log_low * _LOG2E[0])
    total, rest = two_sum(e, high)
    return fast_two_sum(total, rest + low)


def _power_edges(x: Expr, y: Expr, size: Expr) -> Expr:
    """Signs, and what C's pow says of zeros, ones, infinities and NaN."""
    f = format_of(x)
    a, b = x.abs(), y.abs()
    one, infinity = x.like(1.0), math.inf
    is_integer = y.call("trunc").eq(y) & b.lt(infinity)
    half = y * 0.5
    is_odd = is_integer & half.call("trunc").ne(half) & b.lt(2.0 ** (f.mantissa_bits + 1))
    is_growing = a.gt(1.0) ^ y.lt(0.0)  # for a or b extreme: towards infinity, else to zero
    is_extreme = a.eq(0.0) | a.eq(infinity) | b.eq(infinity)
    size = is_extreme.choose(is_growing.choose(infinity, x.like(0.0)), size)
    is_unit = y.eq(0.0) | x.eq(1.0) | (a.eq(1.0) & b.eq(infinity))
    signed = is_odd.choose(size.copysign(x), size)
    is_bad = x.lt(0.0) & ~is_integer & a.lt(infinity) & b.lt(infinity)
    result = (is_bad | x.compare("uno", y)).choose(math.nan, signed)
    return is_unit.choose(one, result)


def rsqrt(x: Expr) -> Expr:
    return 1.0 / x.sqrt()


def cbrt(x: Expr) -> Expr:
    """A cubic's guess for the mantissa, a Halley step; double: a Newton step on the exact rest."""
    a = x.abs()
    if is_float(x):
        wide = a.cast("fpext", "double")
        root = _halley(wide, _cbrt_guess(wide)).cast("fptrunc", "float")
    else:
        is_small, is_large = a.lt(2.0**-1000), a.gt(2.0**1000)
        wide = a * is_small.choose(2.0**60, is_large.choose(2.0**-60, a.like(1.0)))
        root = _halley(wide, _cbrt_guess(wide))
        square, square_error = two_product(root, root)
        cube, cube_error = two_product(square, root)
        rest = ((wide - cube) - cube_error) - square_error * root
        root = root + rest / (3.0 * square)
        root = root * is_small.choose(2.0**-20, is_large.choose(2.0**20, a.like(1.0)))
    is_itself = a.eq(0.0) | x.is_nan() | a.eq(math.inf)
    return is_itself.choose(x, root.copysign(x))


def _cbrt_guess(a: Expr) -> Expr:
    """For normal a = 2^(3k + j) m: 2^k 2^(j/3) p(m)."""
    bits = a.bits()
    m = ((bits & ((1 << 52) - 1)) | (1023 << 52)).as_float()
    exponent = bits.lshr(52)  # 1023 = 3 * 341
    third = (exponent * 43691).lshr(17)  # exponent / 3, for exponents below 2^16
    j = exponent - third * 3
    factor = j.eq(1).choose(2 ** (1 / 3), j.eq(2).choose(2 ** (2 / 3), a.like(1.0)))
    power_of_two = (third + (1023 - 341)).shl(52).as_float()
    return polynomial(m, CBRT_F64) * factor * power_of_two


def _halley(a: Expr, t: Expr) -> Expr:
    """t (t^3 + 2a) / (2t^3 + a), as a correction to t."""
    cube = t * t * t
    return t + t * ((a - cube) / (cube + cube + a))
