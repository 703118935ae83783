"""Elements of literals as text: exact both ways, in the digits XLA prints.

f32 and f64 print with 6 and 15 digits where that reads back as the same value, else with 9 and 17;
narrower floats with as many digits as any value of the type needs. NaNs keep sign and payload:
nan, -nan, nan(0x1). -0 prints as "-0.0", because XLA reads "-0" as the integer 0.
"""

from __future__ import annotations

import re
from functools import cache
from math import ceil, frexp, ldexp, log10

import ml_dtypes
import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.ir.dtype import F8E8M0FNU, F32, F64, DType

NUMBER = re.compile(
    r"(?:-?(?:\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+[eE][+-]?\d+|\d+(?:[eE][+-]?\d+)?|inf"
    r"|nan(?:\(0x[0-9a-fA-F]+\))?)|true|false)(?![\w.])"
)
"""A real number or truth value. A bare `.5` is refused, as in XLA."""

_INTEGER = re.compile(r"-?\d+")
_INFINITY = {"inf": np.inf, "-inf": -np.inf}
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class _FloatFormat:
    """Bit layout of a float type: which bits are the mantissa, and what NaN looks like."""

    def __init__(self, dtype: DType):
        info = ml_dtypes.finfo(dtype.numpy)
        assert dtype.numpy is not None
        self.dtype = dtype
        self.max = float(info.max)
        self.min = float(info.min)
        self.mantissa_bits = int(info.nmant)
        half_ulp = ldexp(1.0, frexp(self.max)[1] - self.mantissa_bits - 2)
        # What rounds to a finite value lies strictly between these.
        self.high = self.max + half_ulp
        self.low = self.min - half_ulp if self.min < 0 else self.min * 0.75
        self.sign_bit = 1 << (dtype.bits - 1)
        self.payload_mask = (1 << self.mantissa_bits) - 1
        self.quiet = 1 << (self.mantissa_bits - 1) if self.mantissa_bits else 0
        self.unsigned = _UNSIGNED[dtype.numpy.itemsize]
        every = np.arange(1 << min(dtype.bits, 8), dtype=np.uint8)
        with np.errstate(all="ignore"):
            small = every.view(dtype.numpy) if dtype.byte_size == 1 else np.zeros(1, dtype.numpy)
            nans = np.flatnonzero(np.isnan(small.astype(np.float64)))
            self.has_infinity = dtype.byte_size > 1 or bool(
                np.isinf(small.astype(np.float64)).any()
            )
        self.only_nans = [int(n) for n in nans]
        self.has_nan = dtype.byte_size > 1 or len(nans) > 0
        self.has_payloads = dtype.byte_size > 1 or len(nans) > 2
        self.digits = {"f32": 6, "f64": 15}.get(dtype.name) or self._enough_digits()

    def _enough_digits(self) -> int:
        return ceil(1 + (self.mantissa_bits + 1) * log10(2))

    def nan_bits(self, negative: bool, payload: int | None) -> int:
        """The bits of a NaN. Types with one or two NaNs have no payload to choose."""
        if not self.has_nan:
            raise InvalidArgumentError(f"{self.dtype} has no NaN")
        if not self.has_payloads:
            if payload is not None:
                raise InvalidArgumentError(f"a NaN of {self.dtype} has no payload")
            signed = [n for n in self.only_nans if bool(n & self.sign_bit) == negative]
            return (signed or self.only_nans)[0]
        payload = self.quiet if payload is None else payload
        if not 0 < payload <= self.payload_mask:
            raise InvalidArgumentError(
                f"NaN payload {payload:#x} is out of range for {self.dtype},"
                f" namely [0x1, {self.payload_mask:#x}]"
            )
        bits = self.sign_bit - (1 << self.mantissa_bits) | payload
        return bits | (self.sign_bit if negative else 0)

    def nan_text(self, bits: int) -> str:
        sign = "-" if bits & self.sign_bit and len(self.only_nans) != 1 else ""
        payload = bits & self.payload_mask
        if not self.has_payloads or payload == self.quiet:
            return sign + "nan"
        return f"{sign}nan({payload:#x})"


@cache
def _format(dtype: DType) -> _FloatFormat:
    return _FloatFormat(dtype)


def _numpy(dtype: DType) -> np.dtype:
    assert dtype.numpy is not None, dtype
    return dtype.numpy


# --- Reading -----------------------------------------------------------------------------------


def array_from_words(words: list[str], dtype: DType) -> np.ndarray:
    """A flat array of `dtype` from number texts (two per element for complex).

    Raises InvalidArgumentError naming the first word that is not a value of the type.
    """
    if dtype.is_pred:
        return np.array([_truth(w) for w in words], np.bool_)
    if dtype.is_integer:
        return _integers(words, dtype)
    real = _floats(words, dtype.real)
    return real.view(_numpy(dtype)) if dtype.is_complex else real


def _truth(word: str) -> bool:
    if word in ("true", "1"):
        return True
    if word in ("false", "0"):
        return False
    raise InvalidArgumentError(f"found {word!r}, expected true, false, 1 or 0 for pred")


def _integers(words: list[str], dtype: DType) -> np.ndarray:
    assert dtype.numpy is not None
    low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    high = low + (1 << dtype.bits) - 1
    try:
        numbers = list(map(int, words))
    except ValueError:
        wrong = next(w for w in words if not _INTEGER.fullmatch(w))
        raise InvalidArgumentError(f"found {wrong!r}, expected an integer for {dtype}") from None
    if numbers and not (low <= min(numbers) and max(numbers) <= high):
        wrong_number = next(n for n in numbers if not low <= n <= high)
        raise InvalidArgumentError(
            f"value {wrong_number} is out of range for {dtype}, namely [{low}, {high}]"
        )
    wide = np.array(numbers, np.int64 if dtype.is_signed else np.uint64)
    return wide.astype(dtype.numpy)


def _floats(words: list[str], dtype: DType) -> np.ndarray:
    """Decimal to f64, then to the type, as XLA does."""
    try:
        wide = np.array(list(map(float, words)), np.float64)
    except ValueError:
        return _floats_one_by_one(words, dtype)
    form = _format(dtype)
    with np.errstate(all="ignore"):
        array = _narrow(wide, dtype)
        odd = ~np.isfinite(wide)
        # Values that are finite as f64 and rounded to infinity, NaN or (no infinity) clipped.
        bad = ~odd & ((wide > form.max) | (wide < form.min))
    if odd.any() or bad.any():
        return _floats_one_by_one(words, dtype)
    return array


def _floats_one_by_one(words: list[str], dtype: DType) -> np.ndarray:
    out = np.empty(len(words), dtype.numpy)
    form = _format(dtype)
    bits = out.view(form.unsigned)
    for i, word in enumerate(words):
        plain = word.removeprefix("-")
        if plain.startswith("nan"):
            payload = int(plain[4:-1], 16) if len(plain) > 3 else None
            bits[i] = form.nan_bits(word[0] == "-", payload)
        else:
            out[i] = _narrow(np.array(_one_float(word, form)), dtype)
    return out


def _narrow(wide: np.ndarray, dtype: DType) -> np.ndarray:
    """f64 values rounded to `dtype`."""
    if dtype is F8E8M0FNU:
        # ml_dtypes rounds what is just above 2^-127 to 2^-126. Such a value is an exponent only.
        mantissa, exponent = np.frexp(wide)
        return (exponent + 126 + (mantissa >= 0.75)).astype(np.uint8).view(dtype.numpy)
    with np.errstate(all="ignore"):
        return wide.astype(dtype.numpy)


def _one_float(word: str, form: _FloatFormat) -> float:
    dtype = form.dtype
    if word in _INFINITY:
        if not form.has_infinity or (word == "-inf" and form.min >= 0):
            raise InvalidArgumentError(f"{dtype} has no {word}")
        return float(_INFINITY[word])
    if word in ("true", "false"):
        raise InvalidArgumentError(f"found {word!r}, expected a number for {dtype}")
    number = float(word)
    if not form.low < number < form.high:
        raise InvalidArgumentError(
            f"value {word} is out of range for {dtype}, namely [{form.min:g}, {form.max:g}]"
        )
    return number


def elided(shape_count: int, dtype: DType) -> np.ndarray:
    """What `constant({...})` stands for: memory filled with the 32-bit words 0, 1, 2, ...

    Never a meaningful value: the text has lost it. Elements narrower than a byte keep their low
    bits; pred is all false.
    """
    assert dtype.numpy is not None
    size = shape_count * dtype.byte_size
    raw = np.arange((size + 3) // 4, dtype="<u4").view(np.uint8)[:size]
    if dtype.is_pred:
        return np.zeros(shape_count, np.bool_)
    if dtype.bits >= 8:
        return raw.view(dtype.numpy)
    low = raw & ((1 << dtype.bits) - 1)
    if dtype.is_float:
        return low.view(dtype.numpy)
    wrapped = low.astype(np.int8)
    if dtype.is_signed:
        wrapped[wrapped >= 1 << (dtype.bits - 1)] -= np.int8(1 << dtype.bits)
    return wrapped.astype(dtype.numpy)


# --- Writing -----------------------------------------------------------------------------------


def words_from_array(array: np.ndarray, dtype: DType, truth_words: bool = False) -> list[str]:
    """The text of each element of an array, in row-major order.

    truth_words: pred as true and false (XLA's scalars) instead of 1 and 0 (its arrays).
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    if dtype.is_pred:
        names = ("false", "true") if truth_words else ("0", "1")
        return [names[bool(v)] for v in flat.tolist()]
    if dtype.is_integer:
        wide = flat.astype(np.int64) if dtype.is_signed else flat.astype(np.uint64)
        return list(map(str, wide.tolist()))
    if dtype.is_complex:
        parts = words_from_array(flat.view(_numpy(dtype.real)), dtype.real)
        return [f"({re}, {im})" for re, im in zip(parts[::2], parts[1::2], strict=True)]
    return _float_words(flat, dtype)


def _float_words(flat: np.ndarray, dtype: DType) -> list[str]:
    form = _format(dtype)
    with np.errstate(all="ignore"):
        wide = flat.astype(np.float64)
    values = wide.tolist()
    pattern = f"%.{form.digits}g"
    words = [pattern % v for v in values]
    if dtype in (F32, F64):
        with np.errstate(all="ignore"):
            back = np.array([float(w) for w in words]).astype(dtype.numpy)
        longer = "%.9g" if dtype is F32 else "%.17g"
        for i in np.flatnonzero(back != flat):
            words[i] = longer % values[i]
    for i in np.flatnonzero(wide == 0):
        if np.signbit(wide[i]):
            words[i] = "-0.0"
    for i in np.flatnonzero(np.isnan(wide)):
        words[i] = form.nan_text(int(flat.view(form.unsigned)[i]))
    return words
