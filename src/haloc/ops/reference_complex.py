"""The NumPy meaning of functions of complex numbers; operands and results are c128 arrays.

Special values are those of C99's annex G: signed zeros and infinities of the parts count. XLA:CPU
departs from it in places (it loses -0 imaginary parts, and gives NaN for infinities). One
exception is multiplication, the plain formula as in XLA: an infinite operand may give NaN parts.
maximum and minimum order lexicographically, as StableHLO says; XLA looks at real parts only.
"""

from __future__ import annotations

import numpy as np

from haloc.ops.reference import Array


def join(real: Array, imag: Array) -> Array:
    """Complex numbers from parts; unlike real + 1j*imag, keeps infinities, NaN and -0."""
    real, imag = np.broadcast_arrays(real, imag)
    result = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    result.real, result.imag = real, imag
    return result


def _nan(z: Array) -> Array:
    return np.isnan(z.real) | np.isnan(z.imag)


def _less(x: Array, y: Array) -> Array:
    """Lexicographic order of (real, imaginary)."""
    return (x.real < y.real) | ((x.real == y.real) & (x.imag < y.imag))


def maximum(x: Array, y: Array) -> Array:
    """Lexicographic; an operand with a NaN part wins."""
    return np.where(_nan(x) | (_less(y, x) & ~_nan(y)), x, y)


def minimum(x: Array, y: Array) -> Array:
    """Lexicographic; an operand with a NaN part wins."""
    return np.where(_nan(x) | (_less(x, y) & ~_nan(y)), x, y)


def absolute(z: Array) -> Array:
    return np.hypot(z.real, z.imag)


def sign(z: Array) -> Array:
    """z / |z|; 0 of 0."""
    # Where |z| is out of range, half of it is not.
    z = np.where(np.isfinite(z) & np.isinf(np.hypot(z.real, z.imag)), z / 2, z)
    size = np.hypot(z.real, z.imag)
    safe = np.where(size == 0, 1, size)
    return np.where(size == 0, z, join(z.real / safe, z.imag / safe))


def exponential_minus_one(z: Array) -> Array:
    """exp(x)cos(y) - 1 = expm1(x)cos(y) - 2sin(y/2)^2, and exp(x)sin(y)."""
    x, y = z.real, z.imag
    real = np.expm1(x) * np.cos(y) - 2 * np.sin(y / 2) ** 2
    imag = np.where(y == 0, y, np.exp(x) * np.sin(y))
    return join(np.where(y == 0, np.expm1(x), real), imag)


def log_plus_one(z: Array) -> Array:
    """log|1+z| = log1p(x(2+x) + y^2)/2 near zero, where the plain form cancels."""
    x, y = z.real.astype(np.longdouble), z.imag.astype(np.longdouble)
    near = np.log1p(x * (2 + x) + y * y) / 2
    far = np.log(np.hypot(1 + x, y))
    real = np.where(np.hypot(z.real, z.imag) < 0.5, near, far)
    return join(real.astype(np.float64), np.arctan2(z.imag, 1 + z.real))


def logistic(z: Array) -> Array:
    """1 / (1 + exp(-z)), or exp(z) / (1 + exp(z)) where the real part is negative."""
    small = np.exp(np.where(z.real < 0, z, -z))
    return divide(np.where(z.real < 0, small, 1 + 0j), 1 + small)


def rsqrt(z: Array) -> Array:
    """1 / sqrt(z); conjugate operands give conjugate results, so the 1 has -0 as imaginary part."""
    return divide(join(np.ones(z.shape), -np.zeros(z.shape)), np.sqrt(z))


def divide(x: Array, y: Array) -> Array:
    """x / y, scaled against overflow, as C99's annex G writes it out: finite / inf = 0,
    nonzero / 0 = inf, inf / finite = inf."""
    x, y = np.broadcast_arrays(x, y)
    a, b, c, d = x.real, x.imag, y.real, y.imag
    size = np.fmax(np.abs(c), np.abs(d))
    scalable = np.isfinite(size) & (size > 0)
    shift = -np.frexp(np.where(scalable, size, 1))[1]
    c, d = np.ldexp(c, shift), np.ldexp(d, shift)
    norm = c * c + d * d
    real = np.ldexp((a * c + b * d) / norm, shift)
    imag = np.ldexp((b * c - a * d) / norm, shift)
    lost = np.isnan(real) & np.isnan(imag)

    by_zero = lost & (norm == 0) & ~(np.isnan(a) & np.isnan(b))
    infinity = np.copysign(np.inf, c)
    real, imag = np.where(by_zero, infinity * a, real), np.where(by_zero, infinity * b, imag)

    from_inf = lost & (np.isinf(a) | np.isinf(b)) & np.isfinite(c) & np.isfinite(d) & ~by_zero
    a1, b1 = np.copysign(np.isinf(a) * 1.0, a), np.copysign(np.isinf(b) * 1.0, b)
    real = np.where(from_inf, np.inf * (a1 * c + b1 * d), real)
    imag = np.where(from_inf, np.inf * (b1 * c - a1 * d), imag)

    to_zero = lost & np.isinf(size) & np.isfinite(a) & np.isfinite(b)
    c1, d1 = np.copysign(np.isinf(c) * 1.0, c), np.copysign(np.isinf(d) * 1.0, d)
    real = np.where(to_zero, 0.0 * (a * c1 + b * d1), real)
    imag = np.where(to_zero, 0.0 * (b * c1 - a * d1), imag)
    return join(real, imag)


def power(x: Array, y: Array) -> Array:
    """exp(y log x); x^0 = 1; 0^y = 0 for a positive real part of y."""
    x, y = np.broadcast_arrays(x, y)
    # Errors of the exponent grow with it: long double, where it is wider, hides them.
    long = np.clongdouble
    result = np.exp(y.astype(long) * np.log(x.astype(long))).astype(np.complex128)
    result = np.where((x == 0) & (y.real > 0), 0, result)
    return np.where(y == 0, 1, result)


def atan2(y: Array, x: Array) -> Array:
    """-i log((x + iy) / sqrt(x^2 + y^2))."""
    return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))


def multiply(x: Array, y: Array) -> Array:
    """The plain formula, in the operands' own precision."""
    return join(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)


def clamp(low: Array, x: Array, high: Array) -> Array:
    return minimum(maximum(x, low), high)
