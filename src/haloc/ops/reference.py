"""The NumPy meaning of elementwise arithmetic on real numbers, integers and pred.

Functions here take arrays (any shapes that broadcast) of one HLO element type, as stored
(`DType.numpy`), and return an array of NumPy's choice of width; `store` gives it its final type.

Floats narrower than 32 bits are computed in f32 and rounded once. Transcendental functions of f32
are computed in f64, so they are correctly rounded but for rare ties. Sub-byte integers are computed
in eight bits and wrapped.
"""

from __future__ import annotations

from collections.abc import Callable
from math import erf as scalar_erf

import numpy as np

from haloc.ir.dtype import F4E2M1FN, F6E2M3FN, F6E3M2FN, DType

Array = np.ndarray
Reference = Callable[..., Array]


def store(result: object, dtype: DType) -> Array:
    """`result` as an array of `dtype`: floats are rounded to nearest even, integers wrap.

    In the formats of four and six bits, which have no NaN, it becomes -0 (as in XLA).
    """
    array = np.asarray(result)
    if array.dtype == dtype.numpy:
        return array
    if dtype.is_integer and dtype.bits < 8:
        return np.asarray(wrap(array, dtype)).astype(dtype.numpy)
    if dtype.is_float and dtype.bits < 32 and array.dtype == np.float64:
        array = array.astype(np.float32)
    if dtype in (F4E2M1FN, F6E2M3FN, F6E3M2FN) and array.dtype == np.float32:
        array = np.where(np.isnan(array), np.float32(-0.0), array)  # They have no NaN.
    return array.astype(dtype.numpy)


def wrap(array: Array, dtype: DType) -> Array:
    """Integers modulo 2^bits, as bytes in the range of a sub-byte `dtype`."""
    low = array.astype(np.uint8) & np.uint8(2**dtype.bits - 1)
    if dtype.is_unsigned:
        return low
    sign = np.uint8(2 ** (dtype.bits - 1))
    return ((low ^ sign) - sign).view(np.int8)


def wide(x: Array) -> Array:
    """A type NumPy computes in: f32 for narrower floats, bytes for sub-byte integers."""
    x = np.asarray(x)
    if x.dtype.isbuiltin == 1:  # NumPy's own, not one of ml_dtypes' (2).
        return x.astype(np.float32) if x.dtype == np.float16 else x
    if x.dtype.name.startswith("int"):
        return x.astype(np.int8)
    if x.dtype.name.startswith("uint"):
        return x.astype(np.uint8)
    return x.astype(np.float32)


def is_sub_byte(x: Array) -> bool:
    return x.dtype.name in ("int2", "int4", "uint2", "uint4")


def bit_width(x: Array) -> int:
    """Significant bits of an integer array's elements as HLO counts them."""
    name = x.dtype.name
    return int(name[-1]) if is_sub_byte(x) else x.dtype.itemsize * 8


# --- Lifting NumPy functions to HLO element types ----------------------------------------------


def arithmetic(fn: Reference) -> Reference:
    """`fn` on operands widened to a type NumPy computes in."""
    return lambda *xs: fn(*(wide(x) for x in xs))


def transcendental(fn: Reference) -> Reference:
    """`fn` on real operands widened to f64."""
    return lambda *xs: fn(*(np.asarray(x).astype(np.float64) for x in xs))


def by_kind(
    *,
    pred: Reference | None = None,
    integer: Reference | None = None,
    real: Reference | None = None,
    complex: Reference | None = None,
) -> Reference:
    """The reference for the kind of the last operand's type. Complex c64 is computed as c128."""

    def reference(*xs: Array) -> Array:
        x = wide(xs[-1])
        if x.dtype.kind == "c":
            assert complex is not None
            return complex(*(np.asarray(v).astype(np.complex128) for v in xs))
        chosen = {"b": pred, "i": integer, "u": integer, "f": real}[x.dtype.kind]
        assert chosen is not None, x.dtype
        return chosen(*xs)

    return reference


# --- Integers ----------------------------------------------------------------------------------


def integer_divide(x: Array, y: Array) -> Array:
    """Towards zero; x/0 has all bits set; INT_MIN/-1 = INT_MIN."""
    x, y = wide(x), wide(y)
    safe = _safe_divisor(y)
    quotient = (x - np.fmod(x, safe)) // safe
    if y.dtype.kind == "i":
        quotient = np.where(y == -1, -x, quotient)
    return np.where(y == 0, ~np.zeros_like(x), quotient).astype(x.dtype)


def integer_remainder(x: Array, y: Array) -> Array:
    """Sign of x; x%0 = x; INT_MIN%-1 = 0."""
    x, y = wide(x), wide(y)
    result = np.fmod(x, _safe_divisor(y))
    return np.where(y == 0, x, result).astype(x.dtype)


def _safe_divisor(y: Array) -> Array:
    """y with 0 and -1, which trap in C, replaced by 1."""
    unsafe = y == 0
    if y.dtype.kind == "i":
        unsafe = unsafe | (y == -1)
    return np.where(unsafe, np.ones_like(y), y)


def integer_power(x: Array, y: Array) -> Array:
    """By squaring, modulo 2^bits; a negative exponent gives 1 for 1, ±1 for -1 and 0 otherwise."""
    x, y = np.broadcast_arrays(wide(x), wide(y))
    result, base, exponent = np.ones_like(x), x.copy(), np.where(y < 0, np.zeros_like(y), y)
    while np.any(exponent):
        result = np.where(exponent & 1, result * base, result)
        base = base * base
        exponent = exponent >> 1
    if y.dtype.kind == "u":
        return result
    odd = (y & 1) == 1
    of_minus_one = np.where(odd, -np.ones_like(x), np.ones_like(x))
    inverse = np.where(x == -1, of_minus_one, np.where(x == 1, 1, 0))
    return np.where(y < 0, inverse, result).astype(x.dtype)


def mulhi(x: Array, y: Array) -> Array:
    """The high half of the product of double width."""
    bits = bit_width(x)
    x, y = wide(x), wide(y)
    if bits < 64:
        double = np.int64 if x.dtype.kind == "i" else np.uint64
        return ((x.astype(double) * y.astype(double)) >> double(bits)).astype(x.dtype)
    high = _mulhi_u64(x.astype(np.uint64), y.astype(np.uint64))
    if x.dtype.kind == "i":
        high = high - np.where(x < 0, y, 0).astype(np.uint64)
        high = high - np.where(y < 0, x, 0).astype(np.uint64)
    return high.astype(x.dtype)


def _mulhi_u64(x: Array, y: Array) -> Array:
    half, low = np.uint64(32), np.uint64(2**32 - 1)
    x_high, x_low, y_high, y_low = x >> half, x & low, y >> half, y & low
    middle = x_high * y_low + ((x_low * y_low) >> half)
    carry = (middle & low) + x_low * y_high
    return x_high * y_high + (middle >> half) + (carry >> half)


def unsigned_bits(x: Array) -> Array:
    """The bits of integers as u64; sub-byte types give their few bits."""
    array = wide(x)
    mask = np.uint64(2 ** bit_width(np.asarray(x)) - 1)
    return array.astype(np.uint64) & mask


def shift_left(x: Array, y: Array) -> Array:
    width, count = np.uint64(bit_width(x)), unsigned_bits(y)
    shifted = unsigned_bits(x) << np.minimum(count, np.uint64(63))
    return np.where(count >= width, np.uint64(0), shifted).astype(wide(x).dtype)


def shift_right_logical(x: Array, y: Array) -> Array:
    width, count = np.uint64(bit_width(x)), unsigned_bits(y)
    shifted = unsigned_bits(x) >> np.minimum(count, np.uint64(63))
    return np.where(count >= width, np.uint64(0), shifted).astype(wide(x).dtype)


def shift_right_arithmetic(x: Array, y: Array) -> Array:
    """Fills with the top bit, also of unsigned numbers."""
    dtype, bits = wide(x).dtype, bit_width(x)
    count = np.minimum(unsigned_bits(y), np.uint64(bits - 1)).astype(np.int64)
    up = np.int64(64 - bits)
    signed = (unsigned_bits(x).view(np.int64) << up) >> up
    return (signed >> count).astype(dtype)


def popcnt(x: Array) -> Array:
    bits = unsigned_bits(x)
    count = np.zeros_like(bits)
    for position in range(bit_width(x)):
        count = count + ((bits >> np.uint64(position)) & np.uint64(1))
    return count.astype(wide(x).dtype)


def count_leading_zeros(x: Array) -> Array:
    bits, width = unsigned_bits(x), bit_width(x)
    zeros = np.zeros_like(bits)
    for position in range(width):  # One more zero for each prefix that is still all zero.
        zeros = zeros + (bits >> np.uint64(width - 1 - position) == 0)
    return zeros.astype(wide(x).dtype)


# --- Floats ------------------------------------------------------------------------------------


def float_maximum(x: Array, y: Array) -> Array:
    """NaN if either is NaN; -0 < +0."""
    x, y = wide(x), wide(y)
    larger = np.where((x > y) | ((x == y) & np.signbit(y)), x, y)
    return np.where(np.isnan(x), x, np.where(np.isnan(y), y, larger))


def float_minimum(x: Array, y: Array) -> Array:
    """NaN if either is NaN; -0 < +0."""
    x, y = wide(x), wide(y)
    smaller = np.where((x < y) | ((x == y) & np.signbit(x)), x, y)
    return np.where(np.isnan(x), x, np.where(np.isnan(y), y, smaller))


def float_clamp(low: Array, x: Array, high: Array) -> Array:
    """min(max(x, low), high): `high` where low > high; NaN if any of the three is."""
    return float_minimum(float_maximum(x, low), high)


def float_sign(x: Array) -> Array:
    """-1, -0, +0, 1 or NaN."""
    x = wide(x)
    return np.where(np.isnan(x) | (x == 0), x, np.copysign(np.ones_like(x), x))


def round_nearest_afz(x: Array) -> Array:
    """To the nearest integer, halves away from zero; -0 and the sign of zero are kept."""
    x = wide(x)
    whole = np.trunc(x)
    up = np.abs(x - whole) >= 0.5
    return np.where(up, whole + np.copysign(np.ones_like(x), x), whole)


def logistic(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow on either side."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def erf(x: Array) -> Array:
    return np.vectorize(scalar_erf, otypes=[np.float64])(x)


def total_order_key(x: Array) -> Array:
    """Integers ordered as -NaN < -inf < ... < -0 < +0 < ... < inf < NaN, from floats' bits."""
    x = np.asarray(x)
    width = {"float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6}.get(
        x.dtype.name, x.dtype.itemsize * 8
    )
    bits = x.view(f"u{x.dtype.itemsize}").astype(np.uint64)
    if x.dtype.name == "float8_e8m0fnu":  # No sign bit.
        return bits.astype(np.int64)
    sign = np.uint64(2 ** (width - 1))
    magnitude = (bits & (sign - np.uint64(1))).astype(np.int64)
    if x.dtype.name.endswith("fnuz"):  # Their one NaN has the bits of -0: it comes first.
        magnitude = np.where(bits == sign, np.int64(sign), magnitude)
    return np.where(bits & sign, ~magnitude, magnitude)
