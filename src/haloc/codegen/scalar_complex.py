"""Complex arithmetic on (real, imaginary) pairs of registers."""

from __future__ import annotations

import math

from haloc.codegen.scalar_expr import Expr

Pair = tuple[Expr, Expr]


def complex_multiply(x: Pair, y: Pair) -> Pair:
    """(a + bi)(c + di), each product and the sum rounded: NaN and inf as they fall."""
    (a, b), (c, d) = x, y
    return a * c - b * d, a * d + b * c


def _scale_down(a: Expr, b: Expr) -> Expr:
    """2^-k with 2^k the order of max(|a|, |b|); 1 for zeros, infinities and NaN.

    Multiplying by it is exact, and neither squares nor sums of squares overflow afterwards.
    """
    top = a.abs().call("maxnum", b.abs())
    bits = top.bits()
    mantissa, bias = (23, 127) if top.element == "float" else (52, 1023)
    field = bits.lshr(mantissa)
    # 2^-k has the exponent field 2 * bias - field; keep it a normal number at both ends.
    lowest = field.ult(1).choose(1, field)
    highest = lowest.compare("ugt", 2 * bias - 1).choose(2 * bias - 1, lowest)
    scale = (highest.like(2 * bias) - highest).shl(mantissa).as_float()
    return (top.gt(0.0) & top.lt(math.inf)).choose(scale, 1.0)


def complex_divide(x: Pair, y: Pair) -> Pair:
    """x / y, the divisor scaled to order 1 first; with C99's answers for zeros and infinities."""
    (a, b), (c, d) = x, y
    scale = _scale_down(c, d)
    c, d = c * scale, d * scale
    # Keep the products of the numerator off both ends of the range.
    top = a.abs().call("maxnum", b.abs())
    far = 100 if a.element == "float" else 1000
    up, down = math.ldexp(1.0, far // 2), 1 / 16
    shift = top.gt(math.ldexp(1.0, far)).choose(
        down, top.lt(math.ldexp(1.0, -far // 2)).choose(up, top.like(1.0))
    )
    unshift = top.like(1.0) / shift
    sa, sb = a * shift, b * shift
    norm = c * c + d * d
    real = (sa * c + sb * d) / norm * scale * unshift
    imag = (sb * c - sa * d) / norm * scale * unshift
    return _recover((real, imag), x, (c, d), norm)


def _recover(quotient: Pair, x: Pair, y: Pair, norm: Expr) -> Pair:
    """Where both parts came out NaN: x/0, inf/finite and finite/inf as C99's Annex G has them."""
    (real, imag), (a, b), (c, d) = quotient, x, y
    lost = real.is_nan() & imag.is_nan()
    inf = math.inf
    by_zero = norm.eq(0.0) & ~(a.is_nan() & b.is_nan())
    unbounded = a.like(inf).copysign(c)
    real = (lost & by_zero).choose(unbounded * a, real)
    imag = (lost & by_zero).choose(unbounded * b, imag)
    x_infinite = a.abs().eq(inf) | b.abs().eq(inf)
    y_infinite = c.abs().eq(inf) | d.abs().eq(inf)
    x_finite = a.abs().lt(inf) & b.abs().lt(inf)
    y_finite = c.abs().lt(inf) & d.abs().lt(inf)
    grows, vanishes = lost & ~by_zero & x_infinite & y_finite, lost & y_infinite & x_finite
    ua, ub, uc, ud = (_unit(v) for v in (a, b, c, d))
    real = grows.choose((ua * c + ub * d) * inf, real)
    imag = grows.choose((ub * c - ua * d) * inf, imag)
    real = vanishes.choose((a * uc + b * ud) * 0.0, real)
    imag = vanishes.choose((b * uc - a * ud) * 0.0, imag)
    return real, imag


def _unit(v: Expr) -> Expr:
    """1 for an infinity, else 0, with v's sign."""
    return v.abs().eq(math.inf).choose(1.0, v.like(0.0)).copysign(v)


def complex_magnitude(a: Expr, b: Expr) -> Expr:
    """sqrt(a^2 + b^2) without overflow; inf if either is, even beside NaN."""
    scale = _scale_down(a, b)
    sa, sb = a * scale, b * scale
    size = sa.fma(sa, sb * sb).sqrt() / scale
    return (a.abs().eq(math.inf) | b.abs().eq(math.inf)).choose(math.inf, size)


def complex_sign(a: Expr, b: Expr) -> Pair:
    """z / |z|; 0 stays 0."""
    scale = _scale_down(a, b)
    sa, sb = a * scale, b * scale
    size = sa.fma(sa, sb * sb).sqrt()
    is_zero = a.eq(0.0) & b.eq(0.0)
    return is_zero.choose(a, sa / size), is_zero.choose(b, sb / size)
