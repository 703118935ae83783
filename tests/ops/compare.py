"""Comparing results with jaxlib's: exact where an op is exact, else in units of the last place."""

from __future__ import annotations

import ml_dtypes
import numpy as np

ULPS = {
    # XLA:CPU's polynomial approximations; ours are correctly rounded but for rare ties.
    "exponential": 2,
    "exponential-minus-one": 4,
    "log": 2,
    "log-plus-one": 4,
    "logistic": 4,
    "rsqrt": 2,
    "cbrt": 2,
    "sine": 4,
    "cosine": 4,
    "tan": 4,
    "tanh": 6,
    "erf": 4,
    "power": 8,
    "atan2": 4,
    "asin": 4,
    "acos": 4,
    "sinh": 4,
    "cosh": 4,
    "asinh": 4,
    "acosh": 4,
    "atanh": 4,
}
"""Largest difference from XLA in ULP of the result's type; ops not named are exact."""

COMPLEX_ULPS = 16
"""Of the whole number's size: XLA computes c64 in f32 with cancelling formulas."""


def mismatches(ours: np.ndarray, theirs: np.ndarray, ulps: float) -> np.ndarray:
    """True where two results differ: NaN equals NaN, -0 is not +0, finite numbers within `ulps`.

    Complex numbers differ where they are farther apart than `ulps` of the larger one's size.
    """
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    kind = ours.dtype.kind
    if kind == "c":
        eps = np.finfo(ours.dtype).eps
        a, b = ours.astype(np.complex128), theirs.astype(np.complex128)
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= ulps * eps * np.maximum(np.abs(a), np.abs(b))
        both_nan = np.isnan(a) & np.isnan(b)
        return ~(near | both_nan | (a == b))
    if not _is_float(ours.dtype):
        return np.asarray(ours != theirs)
    eps = float(ml_dtypes.finfo(ours.dtype).eps)
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    same = ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(a), np.abs(b))
        last = np.maximum(eps * size, float(ml_dtypes.finfo(ours.dtype).smallest_subnormal))
        near = np.isfinite(size) & (size > 0) & (np.abs(a - b) <= ulps * last)
    return ~(same | near)


def subnormal(x: np.ndarray) -> np.ndarray:
    """Where XLA:CPU, which computes with subnormals flushed, sees a zero: numbers below the
    smallest normal one of the type it computes in (f64 of f64, else f32), and that one itself,
    to which a flushed intermediate may round up."""
    if x.dtype.kind == "c":
        return subnormal(x.real) | subnormal(x.imag)
    if not _is_float(x.dtype):
        return np.zeros(x.shape, bool)
    tiny = np.finfo(np.float64 if x.dtype == np.float64 else np.float32).tiny
    size = np.abs(x.astype(np.float64))
    return (size > 0) & (size <= float(tiny))


def _is_float(dtype: np.dtype) -> bool:
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float"))
