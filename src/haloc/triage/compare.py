"""How far two results are apart, and whether that is more than rounding explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from haloc.ir.dtype import DType, dtype_from_numpy

TOLERANCE = {"f64": 1e-10, "c128": 1e-10, "f32": 1e-4, "c64": 1e-4, "f16": 5e-3, "bf16": 3e-2}
"""Largest error accepted, relative to the largest finite value of the result. Sums in another
order, over some thousands of terms, stay well within it; wrong answers do not. Integers and
booleans must be equal; narrower floats may be one step apart (0.25 of the largest value)."""

_NARROW_FLOAT = 0.25


@dataclass(frozen=True, slots=True)
class Difference:
    """max_error: largest |got - wanted| where both are finite. ok: within `tolerance` of the
    largest value, and NaN and infinities in the same places. max_ulps: numbers of the type that
    lie between the two where they are farthest apart, of elements that are finite in both. at: the
    index of the element that is farthest off, one where only one is finite first; None if all are
    equal."""

    max_error: float
    tolerance: float
    ok: bool
    max_ulps: int = 0
    at: tuple[int, ...] | None = None


def compare(got: np.ndarray, wanted: np.ndarray) -> Difference:
    """Compare arrays of one shape and dtype."""
    dtype = dtype_from_numpy(wanted.dtype)
    if not dtype.is_float and not dtype.is_complex:
        equal = np.array_equal(got, wanted)
        error = _distance(got, wanted)
        return Difference(error, 0.0, equal, int(error), None if equal else _first(got != wanted))
    ulps = _ulps(got, wanted, dtype)
    wide = np.complex128 if dtype.is_complex else np.float64
    got, wanted = got.astype(wide), wanted.astype(wide)
    tolerance = TOLERANCE.get(dtype.name, _NARROW_FLOAT)
    finite = np.isfinite(wanted) & np.isfinite(got)
    special = ~finite
    same = np.array_equal(got[special], wanted[special], equal_nan=True)
    error = _distance(got[finite], wanted[finite])
    scale = float(np.abs(wanted[finite]).max(initial=0.0))
    ok = same and error <= tolerance * scale
    return Difference(error, tolerance, ok, ulps, _farthest(got, wanted, finite, same, error))


def _distance(got: np.ndarray, wanted: np.ndarray) -> float:
    if not got.size:
        return 0.0
    if got.dtype.kind not in "fc":
        pairs = zip(got.reshape(-1).tolist(), wanted.reshape(-1).tolist(), strict=True)
        return float(max(abs(int(a) - int(b)) for a, b in pairs))
    return float(np.abs(got - wanted).max())


def _farthest(
    got: np.ndarray, wanted: np.ndarray, finite: np.ndarray, same: bool, error: float
) -> tuple[int, ...] | None:
    if not same:
        equal = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        return _first(~finite & ~equal)
    if not error:
        return None
    apart = np.zeros(got.shape)
    apart[finite] = np.abs(got[finite] - wanted[finite])
    return tuple(int(k) for k in np.unravel_index(int(np.argmax(apart)), got.shape))


def _first(wrong: np.ndarray) -> tuple[int, ...]:
    return tuple(int(k) for k in np.argwhere(wrong)[0])


def _ulps(got: np.ndarray, wanted: np.ndarray, dtype: DType) -> int:
    """The largest distance in numbers of the type; of complex numbers, of their parts."""
    if dtype.is_complex:
        part = dtype_from_numpy(got.real.dtype)
        return max(_ulps(got.real, wanted.real, part), _ulps(got.imag, wanted.imag, part))
    finite = np.isfinite(got.astype(np.float64)) & np.isfinite(wanted.astype(np.float64))
    a, b = _ordered(got[finite], dtype), _ordered(wanted[finite], dtype)
    low, high = np.minimum(a, b), np.maximum(a, b)
    # The distance of two 64-bit numbers may not fit into a signed one.
    return int((high.view(np.uint64) - low.view(np.uint64)).max(initial=0))


def _ordered(values: np.ndarray, dtype: DType) -> np.ndarray:
    """Integers in the order of the numbers, neighbours for neighbours, +0 and -0 the same."""
    bits = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}").astype(np.uint64)
    if dtype.name == "f8e8m0fnu":  # has no sign
        return bits.view(np.int64)
    sign = np.uint64(1 << (dtype.bits - 1))
    magnitude = (bits & (sign - np.uint64(1))).view(np.int64)
    return np.where(bits & sign, -magnitude, magnitude)
