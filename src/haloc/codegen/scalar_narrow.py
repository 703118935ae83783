"""Floats narrower than 32 bits: rounding an f32 register to the type, and the type's bit codes.

A value is held as float, always one the type can represent. `round_to` gives that from any float
(nearest, ties to even, one rounding); `encode` gives its bits for memory, `decode` reads them.
Overflow and NaN go where the type says: infinity, NaN, or the largest number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import ml_dtypes
import numpy as np

from haloc.codegen.scalar_expr import Expr
from haloc.codegen.target import Target
from haloc.ir.dtype import BF16, F8E8M0FNU, F16, DType

_QUIET = 0x00400000


@dataclass(frozen=True, slots=True)
class NarrowFormat:
    """A type of at most 16 bits: sign, exponent with bias 1 - min_exponent, mantissa_bits.

    infinity, nan: their codes, or None if the type has none. nan is the code ml_dtypes writes;
    codes above infinity (without sign) are NaN too. largest: the largest finite number.
    has_negative_zero: False for the fnuz types, whose code for it means NaN.
    """

    bits: int
    mantissa_bits: int
    min_exponent: int
    largest: float
    infinity: int | None
    nan: int | None
    has_negative_zero: bool

    @property
    def magnitude_mask(self) -> int:
        return (1 << (self.bits - 1)) - 1

    @property
    def smallest(self) -> float:
        """The smallest subnormal."""
        return math.ldexp(1.0, self.min_exponent - self.mantissa_bits)


_HALF = NarrowFormat(16, 10, -14, 65504.0, 0x7C00, 0x7E00, True)


def has_half(target: Target) -> bool:
    """Whether f16 converts in hardware. (LLVM would call functions that no process has, else.)"""
    return not target.triple.startswith(("x86_64", "i686")) or target.has("f16c")


@cache
def narrow_format(dtype: DType) -> NarrowFormat:
    """The format, as ml_dtypes has it."""
    if dtype is F16:
        return _HALF
    info = ml_dtypes.finfo(dtype.numpy)
    with np.errstate(all="ignore"):
        probe = np.array([np.inf, np.nan, -0.0], np.float32).astype(dtype.numpy)
    infinity, nan, zero = (int(c) for c in probe.view(np.uint8))
    values = probe.astype(np.float32)
    return NarrowFormat(
        bits=dtype.bits,
        mantissa_bits=int(info.nmant),
        min_exponent=int(info.minexp),
        largest=float(info.max),
        infinity=infinity if np.isinf(values[0]) else None,
        nan=nan if np.isnan(values[1]) else None,
        has_negative_zero=zero != 0,
    )


def round_to(x: Expr, dtype: DType, target: Target) -> Expr:
    """A float register rounded to the narrow type, still a float register."""
    if dtype is F16 and has_half(target):
        return x.cast("fptrunc", "half").cast("fpext", "float")
    if dtype is BF16:
        return _round_bf16(x)
    if dtype is F8E8M0FNU:
        return _round_e8m0(x)
    return _round_small(x, narrow_format(dtype))


def _round_bf16(x: Expr) -> Expr:
    bits = x.bits()
    rounded = bits + ((bits.lshr(16) & 1) + 0x7FFF)
    return (x.is_nan().choose(bits | _QUIET, rounded) & 0xFFFF0000).as_float()


def _round_e8m0(x: Expr) -> Expr:
    """Powers of two from 2^-127 (a subnormal float) to 2^127; all else that is left is NaN.

    As ml_dtypes does: ties go up, and so does all between the two smallest powers.
    """
    bits = x.bits()
    normal = (bits + 0x400000) & 0x7F800000
    subnormal = bits.compare("ugt", 0x00400000).choose(0x00800000, bits.like(0x00400000))
    rounded = bits.ult(0x00800000).choose(subnormal, normal)
    is_valid = (bits - 1).ult(0x7F800000 - 1) & rounded.ult(0x7F800000)
    return is_valid.choose(rounded, 0x7FC00000).as_float()


def _round_small(x: Expr, form: NarrowFormat) -> Expr:
    """Adding and subtracting 2^k, k chosen so that the sum's last bit is the type's last bit."""
    m = form.mantissa_bits
    magnitude = x.abs().at_most(2 * form.largest)
    exponent = magnitude.bits() & 0x7F800000
    lowest = exponent.like((form.min_exponent + 127) << 23)
    magic = (exponent.ult(lowest).choose(lowest, exponent) + ((23 - m) << 23)).as_float()
    rounded = (magnitude + magic) - magic
    if form.infinity is not None:
        overflow = math.inf
    elif form.nan is not None:
        overflow = math.nan
    else:
        overflow = form.largest
    result = rounded.gt(form.largest).choose(overflow, rounded).copysign(x)
    if form.nan is None:  # NaN of either sign becomes -0, as in XLA
        result = x.is_nan().choose(-0.0, result)
    if not form.has_negative_zero:
        result = result + 0.0
    return result


def encode(x: Expr, dtype: DType, target: Target) -> Expr:
    """The bits (i16 or i8) of a float register that is rounded to the type."""
    if dtype is F16 and has_half(target):
        return x.cast("fptrunc", "half").bits()
    if dtype is BF16:
        return x.bits().lshr(16).cast("trunc", "i16")
    if dtype is F8E8M0FNU:
        return x.is_nan().choose(0xFF, x.bits().lshr(23)).cast("trunc", "i8")
    return _encode_small(x, narrow_format(dtype))


def _encode_small(x: Expr, form: NarrowFormat) -> Expr:
    m = form.mantissa_bits
    magnitude = x.abs()
    normal = magnitude.bits().lshr(23 - m) - ((form.min_exponent + 126) << m)
    magic = x.like(math.ldexp(form.smallest, 23))
    subnormal = (magnitude + magic).bits() - magic.bits()
    code = magnitude.lt(math.ldexp(1.0, form.min_exponent)).choose(subnormal, normal)
    if form.infinity is not None:
        code = magnitude.gt(form.largest).choose(form.infinity, code)
    sign = x.bits().lshr(31).shl(form.bits - 1)
    if form.nan is not None:
        if form.nan > form.magnitude_mask:  # fnuz: one NaN, without a sign
            code = x.is_nan().choose(form.nan, code | sign)
        else:
            code = x.is_nan().choose(form.nan, code) | sign
    else:
        code = code | sign
    return code.cast("trunc", "i16" if form.bits == 16 else "i8")


def decode(code: Expr, dtype: DType, target: Target) -> Expr:
    """The float register for bits (i16 or i8); bits above a sub-byte type's are ignored."""
    if dtype is F16 and has_half(target):
        return code.as_float().cast("fpext", "float")
    if dtype is BF16:
        return code.cast("zext", "i32").shl(16).as_float()
    wide = code.cast("zext", "i32")
    if dtype is F8E8M0FNU:
        finite = wide.eq(0).choose(0x00400000, wide.shl(23))
        return wide.eq(0xFF).choose(0x7FC00000, finite).as_float()
    return _decode_small(wide, narrow_format(dtype))


def _decode_small(code: Expr, form: NarrowFormat) -> Expr:
    m = form.mantissa_bits
    magnitude = code & form.magnitude_mask
    normal = magnitude.shl(23 - m) + ((form.min_exponent + 126) << 23)
    subnormal = (magnitude.cast("uitofp", "float") * form.smallest).bits()
    bits = magnitude.ult(1 << m).choose(subnormal, normal)
    if form.infinity is not None:
        bits = magnitude.eq(form.infinity).choose(0x7F800000, bits)
        bits = magnitude.compare("ugt", form.infinity).choose(0x7FC00000, bits)
    elif form.nan is not None and form.nan <= form.magnitude_mask:
        bits = magnitude.eq(form.nan).choose(0x7FC00000, bits)
    bits = bits | (code & (form.magnitude_mask + 1)).shl(32 - form.bits)
    if form.nan is not None and form.nan > form.magnitude_mask:
        bits = (code & 0xFF).eq(form.nan).choose(0x7FC00000, bits)
    return bits.as_float()
