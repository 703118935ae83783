"""Special functions HLO has no op for, as formulas. Arguments are f32 or f64."""

from __future__ import annotations

from fractions import Fraction
from math import comb, factorial, log, pi, sqrt

from haloc.formats.stablehlo.convert.coefficients import (
    ERFCX,
    I0E_FAR,
    I0E_NEAR,
    I1E_FAR,
    I1E_NEAR,
    INV_CENTRE,
    INV_MIDDLE,
    INV_TAIL,
    LANCZOS,
    LANCZOS_G,
)
from haloc.formats.stablehlo.convert.expression import Expression, chebyshev
from haloc.ir.dtype import DType

INF = float("inf")
NAN = float("nan")


def erfc(x: Expression) -> Expression:
    """1 - erf(x) where that loses nothing, else exp(-x^2) times a series."""
    a = x.unary("abs")
    series = chebyshev((a - 3.75) / (a + 3.75), ERFCX) / (1.0 + 2.0 * a)
    # At infinity the series' argument is inf/inf.
    tail = (a > 40.0).select(0.0, _exp_minus_square(a) * series)
    far = (x < 0.0).select(2.0 - tail, tail)
    return (a < 0.5).select(1.0 - x.unary("erf"), x.differs(x).select(x, far))


def _exp_minus_square(a: Expression) -> Expression:
    """exp(-a^2) without the error of a^2: a = high + low, and high^2 is exact."""
    exponent, mantissa = {"f32": (8, 10), "f64": (11, 24)}[a.dtype.name]
    high = a.rounded_to(exponent, mantissa)
    rest = (a - high) * (a + high)
    return (-(high * high)).unary("exponential") * (-rest).unary("exponential")


def erf_inv(x: Expression) -> Expression:
    """Series in w = -log(1 - x^2), or in its square root where w is large."""
    # 1 - |x| is exact where x^2 would lose what distinguishes it from 1.
    a = x.unary("abs")
    w = -(a < 0.5).select((x * -x).unary("log-plus-one"), ((1.0 - a) * (1.0 + a)).unary("log"))
    root = w.unary("sqrt")
    near = chebyshev((w - 3.125) / 3.125, INV_CENTRE)
    middle = chebyshev((root - 3.25) / 0.75, INV_MIDDLE)
    tail = chebyshev((root - 5.1) / 1.1, INV_TAIL)
    series = (w < 6.25).select(near, (w < 16.0).select(middle, tail))
    return a.equals(1.0).select(x * INF, series * x)


def lgamma(x: Expression) -> Expression:
    """log |gamma(x)|: Lanczos' approximation, reflected for x < 0.5."""
    reflects = x < 0.5
    z = reflects.select(-x, x - 1.0)
    total = x.like(LANCZOS[0])
    for i, coefficient in enumerate(LANCZOS[1:], 1):
        total = total + coefficient / (z + float(i))
    g = LANCZOS_G + 0.5
    t = z + g
    log_t = (z / g).unary("log-plus-one") + log(g)
    # (z + 1/2) log t - t, with one rounding less.
    value = (z + 0.5 - t / log_t) * log_t + log(sqrt(2 * pi)) + total.unary("log")
    a = x.unary("abs")
    fraction = a - a.unary("floor")
    fraction = (fraction > 0.5).select(1.0 - fraction, fraction)
    log_sine = (fraction * pi).unary("sine").unary("log")
    # At the poles, 0 and the negative integers, log_sine is -inf and so the result is +inf.
    finite = log_sine.unary("is-finite", dtype=reflects.dtype)
    reflected = finite.select(log(pi) - log_sine - value, -log_sine)
    return a.equals(INF).select(INF, reflects.select(reflected, value))


def digamma(x: Expression) -> Expression:
    """The derivative of lgamma, by the derivative of Lanczos' sum."""
    reflects = x < 0.5
    z = reflects.select(-x, x - 1.0)
    total, slope = x.like(LANCZOS[0]), x.like(0.0)
    for i, coefficient in enumerate(LANCZOS[1:], 1):
        shifted = z + float(i)
        total = total + coefficient / shifted
        slope = slope - coefficient / (shifted * shifted)
    g = LANCZOS_G + 0.5
    t = z + g
    log_t = (z / g).unary("log-plus-one") + log(g)
    value = log_t + slope / total - LANCZOS_G / t
    # pi / tan(pi x), of x less its nearest integer.
    near = x + (x + 0.5).unary("floor").unary("abs")
    angle = near * pi
    reflected = value - pi * angle.unary("cosine") / angle.unary("sine")
    pole = (x <= 0.0) & x.equals(x.unary("floor"))
    return pole.select(NAN, reflects.select(reflected, value))


def bessel_i0e(x: Expression) -> Expression:
    """exp(-|x|) I0(x)."""
    a = x.unary("abs")
    near = chebyshev(a / 4.0 - 1.0, I0E_NEAR)
    far = chebyshev(16.0 / a - 1.0, I0E_FAR) / a.unary("sqrt")
    return (a <= 8.0).select(near, far)


def bessel_i1e(x: Expression) -> Expression:
    """exp(-|x|) I1(x)."""
    a = x.unary("abs")
    near = a * chebyshev(a / 4.0 - 1.0, I1E_NEAR)
    far = chebyshev(16.0 / a - 1.0, I1E_FAR) / a.unary("sqrt")
    value = (a <= 8.0).select(near, far)
    return value * x.unary("sign")


def _bernoulli(count: int) -> list[float]:
    """B_2k / (2k)! for k = 1 to count."""
    numbers = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        total = sum((Fraction(comb(m + 1, k)) * numbers[k] for k in range(m)), Fraction(0))
        numbers.append(-total / (m + 1))
    return [float(numbers[2 * k] / factorial(2 * k)) for k in range(1, count + 1)]


_EULER_MACLAURIN = _bernoulli(12)


def zeta(x: Expression, q: Expression) -> Expression:
    """Hurwitz' zeta function, sum over k of (q + k)^-x: nine terms, then Euler and Maclaurin."""
    a = q
    total = a.binary("power", -x)
    for _ in range(9):
        a = a + 1.0
        total = total + a.binary("power", -x)
    last = a.binary("power", -x)
    sum_of_ten = total + last
    total = total + last * a / (x - 1.0) - 0.5 * last
    factor, power, square = x, last / a, a * a
    for k, coefficient in enumerate(_EULER_MACLAURIN):
        total = total + coefficient * factor * power
        factor = factor * (x + (2.0 * k + 1.0)) * (x + (2.0 * k + 2.0))
        power = power / square
    # The correction of what overflows may hold 0 times infinity.
    total = sum_of_ten.equals(INF).select(INF, total)
    whole_q = q.equals(q.unary("floor"))
    whole_x = x.equals(x.unary("floor"))
    even_x = x.binary("remainder", 2.0).equals(0.0)
    total = ((q <= 0.0) & ~whole_q & ~whole_x).select(NAN, total)
    total = ((q <= 0.0) & whole_q).select((even_x & whole_x).select(x.like(INF), NAN), total)
    return x.equals(1.0).select(INF, (x < 1.0).select(NAN, total))


def polygamma(n: Expression, x: Expression) -> Expression:
    """The n-th derivative of digamma: (-1)^(n+1) n! zeta(n + 1, x)."""
    m = n + 1.0
    sign = m.binary("remainder", 2.0).equals(0.0).select(n.like(1.0), -1.0)
    value = sign * lgamma(m).unary("exponential") * zeta(m, x)
    value = n.equals(0.0).select(digamma(x), value)
    good = n.equals(n.unary("floor")) & (n >= 0.0)
    return good.select(value, NAN)


def next_after(x: Expression, y: Expression, signed: DType) -> Expression:
    """The neighbour of x in the direction of y, by its bit pattern; signed: integers as wide."""
    pattern, other = x.bitcast(signed), y.bitcast(signed)
    top = -(1 << signed.bits - 1)
    size, other_size = pattern & ~top, other & ~top
    # Towards zero when y is smaller in size or has the other sign.
    inwards = (size > other_size) | (pattern & top).differs(other & top)
    moved = pattern + inwards.select(pattern.like(-1), 1)
    from_zero = (other & top) | 1
    result = other_size.equals(0).select(other, from_zero)
    result = size.equals(0).select(result, moved)
    result = x.equals(y).select(other, result)
    nan = x.differs(x) | y.differs(y)
    return nan.select((x + y), result.bitcast(x.dtype))
