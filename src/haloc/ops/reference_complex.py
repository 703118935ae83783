"""The NumPy meaning of functions of complex numbers; operands and results are c128 arrays.

Special values follow C99's annex G where NumPy and XLA agree on it. Multiplication is the plain
formula, as in XLA: an infinite operand may give NaN parts.
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
    return 1 / (1 + np.exp(-z))


def rsqrt(z: Array) -> Array:
    """1/sqrt(z) by argument and size; of 0: (inf, NaN)."""
    return np.divide(1, np.sqrt(z))


def power(x: Array, y: Array) -> Array:
    """exp(y log x); x^0 = 1; 0^y = 0 for a positive real part of y."""
    x, y = np.broadcast_arrays(x, y)
    result = np.exp(y * np.log(x))
    result = np.where((x == 0) & (y.real > 0), 0, result)
    return np.where(y == 0, 1, result)


def atan2(y: Array, x: Array) -> Array:
    """-i log((x + iy) / sqrt(x^2 + y^2))."""
    return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))


def multiply(x: Array, y: Array) -> Array:
    return join(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)


def clamp(low: Array, x: Array, high: Array) -> Array:
    return minimum(maximum(x, low), high)
