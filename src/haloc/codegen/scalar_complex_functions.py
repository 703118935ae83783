"""Elementary functions of complex numbers, on registers of the real and the imaginary part.

z = a + bi throughout. Principal branches, cut where C99 cuts; the sign of a zero chooses the side.
"""

from __future__ import annotations

import math

from haloc.codegen.math import exponential as real_exponential
from haloc.codegen.math import hyperbolic, trigonometric
from haloc.codegen.math import logarithm as real_logarithm
from haloc.codegen.math.format import format_of, is_float, two_product, two_sum
from haloc.codegen.math.inverse_trigonometric import atan2 as real_atan2
from haloc.codegen.scalar_complex import Pair, complex_divide, complex_magnitude, complex_multiply
from haloc.codegen.scalar_expr import Expr

_LARGE_EXPONENT = {"float": 88.0, "double": 709.0}


def _bounded_exponential(a: Expr) -> tuple[Expr, Expr]:
    """e^a as a product of two factors, both finite for any a with a use."""
    large = _LARGE_EXPONENT[a.element]
    is_large = a.gt(large)
    e = real_exponential.exponential(is_large.choose(a - large, a))
    return e, is_large.choose(math.exp(large), e.like(1.0))


def _times(e: tuple[Expr, Expr], factor: Expr) -> Expr:
    return factor * e[0] * e[1]


def exponential(a: Expr, b: Expr) -> Pair:
    """e^a (cos b + i sin b)"""
    e = _bounded_exponential(a)
    real, imag = _times(e, trigonometric.cosine(b)), _times(e, trigonometric.sine(b))
    vanishes = a.eq(-math.inf)
    real = vanishes.choose(0.0, b.eq(0.0).choose(_times(e, b.like(1.0)), real))
    return real, vanishes.choose(b.like(0.0).copysign(b), b.eq(0.0).choose(b, imag))


def exponential_minus_one(a: Expr, b: Expr) -> Pair:
    """(expm1 a cos b - 2 sin^2(b/2), e^a sin b)"""
    half = trigonometric.sine(b * 0.5)
    real = real_exponential.exponential_minus_one(a).fma(
        trigonometric.cosine(b), -2.0 * (half * half)
    )
    full_real, imag = exponential(a, b)
    return a.gt(_LARGE_EXPONENT[a.element]).choose(full_real, real), imag


def log(a: Expr, b: Expr) -> Pair:
    """(log |z|, atan2(b, a))"""
    return _log_magnitude(a, b), real_atan2(b, a)


def _log_magnitude(a: Expr, b: Expr) -> Expr:
    """log |z|: near |z| = 1 as log1p(a^2 + b^2 - 1) / 2, the difference formed exactly."""
    ax, bx = a.abs(), b.abs()
    swap = bx.gt(ax)
    large, small = swap.choose(bx, ax), swap.choose(ax, bx)
    bias = format_of(a).bias
    scale = large.gt(2.0 ** (bias - 2)).choose(
        0.25, large.lt(2.0 ** (bias // 2 - bias)).choose(2.0 ** (bias // 2), a.like(1.0))
    )
    shift = scale.eq(0.25).choose(
        math.log(4.0), scale.eq(1.0).choose(0.0, a.like(-(bias // 2) * math.log(2.0)))
    )
    far = real_logarithm.log(complex_magnitude(a * scale, b * scale)) + shift
    square, square_error = two_product(large, large)
    other, other_error = two_product(small, small)
    total, total_error = two_sum(square - 1.0, other)
    near = 0.5 * real_logarithm.log_plus_one(total + (total_error + (square_error + other_error)))
    size = square + other
    return (size.gt(0.5) & size.lt(2.0)).choose(near, far)


def log_plus_one(a: Expr, b: Expr) -> Pair:
    """For small z: (log1p(2a + a^2 + b^2) / 2, atan2(b, 1 + a))"""
    square, square_error = two_product(a, a)
    other, other_error = two_product(b, b)
    total, error = two_sum(a + a, square)
    total, second_error = two_sum(total, other)
    sum_of_errors = (error + second_error) + (square_error + other_error)
    near = 0.5 * real_logarithm.log_plus_one(total + sum_of_errors)
    far = _log_magnitude(a + 1.0, b)
    is_near = a.abs().lt(0.5) & b.abs().lt(0.5)
    return is_near.choose(near, far), real_atan2(b, a + 1.0)


def logistic(a: Expr, b: Expr) -> Pair:
    """1 / (1 + e^-z); e^z / (1 + e^z) on the left, where e^-z would overflow."""
    is_left = a.lt(0.0)
    e = exponential(is_left.choose(a, -a), is_left.choose(b, -b))
    one, zero = a.like(1.0), a.like(0.0)
    top = is_left.choose(e[0], one), is_left.choose(e[1], zero)
    return complex_divide(top, (e[0] + 1.0, e[1]))


def sqrt(a: Expr, b: Expr) -> Pair:
    """t = sqrt((|a| + |z|) / 2): (t, b / 2t), or (|b| / 2t, t with b's sign) on the left."""
    f = format_of(a)
    top = a.abs().call("maxnum", b.abs())
    is_large, is_small = top.gt(2.0 ** (f.bias - 3)), top.lt(2.0 ** (30 - f.bias + 1))
    scale = is_large.choose(2.0**-4, is_small.choose(2.0**60, a.like(1.0)))
    unscale = is_large.choose(2.0**2, is_small.choose(2.0**-30, a.like(1.0)))
    sa, sb = a * scale, b * scale
    t = ((sa.abs() + complex_magnitude(sa, sb)) * 0.5).sqrt()
    other = sb / (t + t)
    is_left = a.bits().lt(0)
    real = is_left.choose(other.abs(), t) * unscale
    imag = is_left.choose(t.copysign(b), other) * unscale
    is_zero = a.eq(0.0) & b.eq(0.0)
    real, imag = is_zero.choose(0.0, real), is_zero.choose(b, imag)
    # Infinities: inf + i inf for any a beside an infinite b; an infinite a keeps b's part 0 or NaN.
    a_infinite, b_infinite = a.abs().eq(math.inf), b.abs().eq(math.inf)
    small_part = b.is_nan().choose(b, b.like(0.0))
    real = a_infinite.choose(is_left.choose(small_part.abs(), math.inf), real)
    imag = a_infinite.choose(
        is_left.choose(a.like(math.inf).copysign(b), small_part.copysign(b)), imag
    )
    return b_infinite.choose(math.inf, real), b_infinite.choose(b, imag)


def rsqrt(a: Expr, b: Expr) -> Pair:
    return complex_divide((a.like(1.0), a.like(0.0)), sqrt(a, b))


def power(a: Expr, b: Expr, c: Expr, d: Expr) -> Pair:
    """e^((c + di) log z); z^0 = 1; 0 to a power with positive real part is 0."""
    real, imag = exponential(*complex_multiply(log(a, b), (c, d)))
    is_zero, is_one = a.eq(0.0) & b.eq(0.0), c.eq(0.0) & d.eq(0.0)
    vanishes = is_zero & c.gt(0.0)
    real = is_one.choose(1.0, vanishes.choose(0.0, real))
    return real, (is_one | vanishes).choose(0.0, imag)


# --- Trigonometric and hyperbolic ----------------------------------------------------------------


def _sinh_and_cosh(a: Expr) -> tuple[tuple[Expr, Expr], tuple[Expr, Expr]]:
    """sinh a and cosh a, each as two factors that do not overflow one by one."""
    large = _LARGE_EXPONENT[a.element]
    is_large = a.abs().gt(large)
    e = real_exponential.exponential(a.abs() - large) * 0.5
    factor = is_large.choose(math.exp(large), a.like(1.0))
    sinh = is_large.choose(e.copysign(a), hyperbolic.sinh(a))
    cosh = is_large.choose(e, hyperbolic.cosh(a))
    return (sinh, factor), (cosh, factor)


def sinh(a: Expr, b: Expr) -> Pair:
    """(sinh a cos b, cosh a sin b)"""
    s, c = _sinh_and_cosh(a)
    real = a.eq(0.0).choose(a, _times(s, trigonometric.cosine(b)))
    return real, b.eq(0.0).choose(b, _times(c, trigonometric.sine(b)))


def cosh(a: Expr, b: Expr) -> Pair:
    """(cosh a cos b, sinh a sin b)"""
    s, c = _sinh_and_cosh(a)
    imag = _times(s, trigonometric.sine(b))
    real = _times(c, trigonometric.cosine(b))
    is_real = a.eq(0.0) | b.eq(0.0)
    sign = (a.bits() ^ b.bits()).as_float()
    return real, is_real.choose(a.like(0.0).copysign(sign), imag)


def sine(a: Expr, b: Expr) -> Pair:
    """sin z = -i sinh(iz)"""
    u, v = sinh(-b, a)
    return v, -u


def cosine(a: Expr, b: Expr) -> Pair:
    """cos z = cosh(iz)"""
    return cosh(-b, a)


def tanh(a: Expr, b: Expr) -> Pair:
    """Kahan: t = tan b, s = sinh a: (s sqrt(1 + s^2) (1 + t^2) + it) / (1 + (1 + t^2) s^2)."""
    bound = 11.0 if is_float(a) else 22.0
    is_far = a.abs().gt(bound)
    near = is_far.choose(0.0, a)
    t, s = trigonometric.tan(b), hyperbolic.sinh(near)
    beta = t.fma(t, 1.0)
    below = (beta * s).fma(s, 1.0)
    real = s * (beta * s.fma(s, 1.0).sqrt() / below)
    imag = t / below
    # Beyond: tanh z = +-1 + 4i sin b cos b e^-2|a|.
    decay = real_exponential.exponential(-2.0 * a.abs())
    far = 4.0 * (trigonometric.sine(b) * trigonometric.cosine(b)) * decay
    far = b.abs().lt(math.inf).choose(far, (a.abs().eq(math.inf)).choose(b.like(0.0), far))
    return is_far.choose(a.like(1.0).copysign(a), real), is_far.choose(far, imag)


def tan(a: Expr, b: Expr) -> Pair:
    """tan z = -i tanh(iz)"""
    u, v = tanh(-b, a)
    return v, -u


# --- Inverses, after Kahan: "Much ado about nothing's sign bit" ----------------------------------


def _roots(a: Expr, b: Expr) -> tuple[Pair, Pair]:
    """sqrt(1 - z) and sqrt(1 + z)."""
    return sqrt(1.0 - a, -b), sqrt(a + 1.0, b)


def _is_large(a: Expr, b: Expr) -> Expr:
    """Where |z|^2 would overflow."""
    return a.abs().call("maxnum", b.abs()).gt(2.0 ** (format_of(a).bias // 2))


def asin(a: Expr, b: Expr) -> Pair:
    (mr, mi), (pr, pi) = _roots(a, b)
    is_large = _is_large(a, b)
    scale = is_large.choose(0.25, a.like(1.0))
    real = real_atan2(a * scale, mr * scale * pr - mi * scale * pi)
    far = (_log_magnitude(a, b) + math.log(2.0)).copysign(b)
    return real, is_large.choose(far, hyperbolic.asinh(mr * pi - mi * pr))


def acos(a: Expr, b: Expr) -> Pair:
    (mr, mi), (pr, pi) = _roots(a, b)
    far = (_log_magnitude(a, b) + math.log(2.0)).copysign(-b)
    imag = _is_large(a, b).choose(far, hyperbolic.asinh(pr * mi - pi * mr))
    return 2.0 * real_atan2(mr, pr), imag


def asinh(a: Expr, b: Expr) -> Pair:
    """asinh z = i asin(-iz)"""
    u, v = asin(b, -a)
    return -v, u


def acosh(a: Expr, b: Expr) -> Pair:
    (mr, mi), (pr, pi) = sqrt(a - 1.0, b), sqrt(a + 1.0, b)
    far = _log_magnitude(a, b) + math.log(2.0)
    real = _is_large(a, b).choose(far, hyperbolic.asinh(mr * pr + mi * pi))
    return real, 2.0 * real_atan2(mi, pr)


def atan2(a: Expr, b: Expr, c: Expr, d: Expr) -> Pair:
    """-i log((x + iy) / sqrt(x^2 + y^2)), y = a + bi, x = c + di; the branch of atan2 for reals."""
    squares = [complex_multiply(z, z) for z in ((c, d), (a, b))]
    root = sqrt(squares[0][0] + squares[1][0], squares[0][1] + squares[1][1])
    real, imag = log(*complex_divide((c - b, d + a), root))
    return imag, -real


def atanh(a: Expr, b: Expr) -> Pair:
    """(log1p(4a / ((1 - a)^2 + b^2)) / 4, atan2(2b, (1 - a)(1 + a) - b^2) / 2)"""
    x = a.abs()
    beside = 1.0 - x
    real = real_logarithm.log_plus_one(4.0 * x / (beside * beside + b * b)) * 0.25
    imag = real_atan2(b + b, beside * (x + 1.0) - b * b) * 0.5
    is_large, size = _is_large(a, b), complex_magnitude(a, b)  # there: 1/z, with i pi/2
    real = is_large.choose(x / size / size, real).copysign(a)
    return real, is_large.choose(b.like(math.pi / 2).copysign(b), imag)
