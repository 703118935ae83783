"""How far two results are apart, and whether that is more than rounding explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from haloc.ir.dtype import dtype_from_numpy

TOLERANCE = {"f64": 1e-10, "c128": 1e-10, "f32": 1e-4, "c64": 1e-4, "f16": 5e-3, "bf16": 3e-2}
"""Largest error accepted, relative to the largest finite value of the result. Sums in another
order, over some thousands of terms, stay well within it; wrong answers do not. Integers and
booleans must be equal; narrower floats may be one step apart (0.25 of the largest value)."""

_NARROW_FLOAT = 0.25


@dataclass(frozen=True, slots=True)
class Difference:
    """max_error: largest |got - wanted| where both are finite. ok: within `tolerance` of the
    largest value, and NaN and infinities in the same places."""

    max_error: float
    tolerance: float
    ok: bool


def compare(got: np.ndarray, wanted: np.ndarray) -> Difference:
    """Compare arrays of one shape and dtype."""
    dtype = dtype_from_numpy(wanted.dtype)
    if not dtype.is_float and not dtype.is_complex:
        equal = np.array_equal(got, wanted)
        return Difference(_distance(got, wanted), 0.0, equal)
    wide = np.complex128 if dtype.is_complex else np.float64
    got, wanted = got.astype(wide), wanted.astype(wide)
    tolerance = TOLERANCE.get(dtype.name, _NARROW_FLOAT)
    finite = np.isfinite(wanted) & np.isfinite(got)
    special = ~finite
    same = np.array_equal(got[special], wanted[special], equal_nan=True)
    error = _distance(got[finite], wanted[finite])
    scale = float(np.abs(wanted[finite]).max(initial=0.0))
    return Difference(error, tolerance, same and error <= tolerance * scale)


def _distance(got: np.ndarray, wanted: np.ndarray) -> float:
    if not got.size:
        return 0.0
    if got.dtype.kind not in "fc":
        pairs = zip(got.reshape(-1).tolist(), wanted.reshape(-1).tolist(), strict=True)
        return float(max(abs(int(a) - int(b)) for a, b in pairs))
    return float(np.abs(got - wanted).max())
