"""What results should be, and how far they are from it.

References of f32 and f64 functions are NumPy's long double ones (64-bit mantissa on x86: 11 more
bits than f64) and the C library's erfl.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable

import numpy as np

Long = np.longdouble
HAS_WIDE_LONG_DOUBLE = np.finfo(Long).nmant >= 63


def _erf(x: np.ndarray) -> np.ndarray:
    erfl = ctypes.CDLL(ctypes.util.find_library("m")).erfl
    erfl.restype, erfl.argtypes = ctypes.c_longdouble, [ctypes.c_longdouble]
    return np.array([erfl(v) for v in x.reshape(-1)], Long).reshape(x.shape)


def _logistic(x: np.ndarray) -> np.ndarray:
    e = np.exp(-abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


UNARY: dict[str, Callable[..., np.ndarray]] = {
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log": np.log,
    "log_plus_one": np.log1p,
    "logistic": _logistic,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "sine": np.sin,
    "cosine": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _erf,
}
BINARY: dict[str, Callable[..., np.ndarray]] = {"atan2": np.arctan2, "power": np.power}

MAX_ULP = {
    ("exponential", 32): 1.1, ("exponential", 64): 1.1, ("exponential_minus_one", 32): 1.5,
    ("exponential_minus_one", 64): 2.0, ("logistic", 32): 2.5, ("logistic", 64): 2.5,
    ("log", 32): 0.9, ("log", 64): 0.9, ("log_plus_one", 32): 0.9, ("log_plus_one", 64): 0.9,
    ("sqrt", 32): 0.5, ("sqrt", 64): 0.5, ("rsqrt", 32): 1.6, ("rsqrt", 64): 1.6,
    ("cbrt", 32): 0.51, ("cbrt", 64): 0.51, ("power", 32): 0.51, ("power", 64): 1.1,
    ("sine", 32): 0.85, ("sine", 64): 0.85, ("cosine", 32): 0.85, ("cosine", 64): 0.85,
    ("tan", 32): 2.3, ("tan", 64): 2.3, ("asin", 32): 2.3, ("asin", 64): 2.3,
    ("acos", 32): 1.3, ("acos", 64): 1.3, ("atan2", 32): 2.3, ("atan2", 64): 2.3,
    ("tanh", 32): 1.5, ("tanh", 64): 2.7, ("acosh", 32): 2.2, ("acosh", 64): 2.2,
    ("erf", 32): 1.3, ("erf", 64): 1.3,
}  # fmt: skip
"""Bounds the tests hold by function and bits, a little over what docs/ulp.md measures; else 2.0."""


def max_ulp(name: str, bits: int) -> float:
    return MAX_ULP.get((name, bits), 2.0)


def reference(name: str, operands: list[np.ndarray]) -> np.ndarray:
    """The long double result."""
    function = UNARY.get(name) or BINARY[name]
    with np.errstate(all="ignore"):
        return np.asarray(function(*[a.astype(Long) for a in operands]))


def ulp_error(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """|got - want| in units of the last place of got's type at want (subnormals: their spacing).

    inf where one is NaN and the other not, or an infinity or the sign of a zero is wrong.
    """
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        nearest = want.astype(got.dtype)
        size = np.maximum(abs(want), Long(info.tiny))
        unit = np.exp2(np.floor(np.log2(size)) - info.nmant)
        error = np.asarray(abs(got.astype(Long) - want) / unit)
    same = (got == nearest) | (np.isnan(got) & np.isnan(nearest))
    error[same & ~(np.isfinite(nearest) & np.isfinite(want))] = 0.0
    error[np.isinf(got) & ~np.isinf(nearest) & (abs(want) > Long(info.max))] = 0.0
    error[np.isnan(got) != np.isnan(nearest)] = np.inf
    error[(got == 0) & (nearest == 0) & (np.signbit(got) != np.signbit(nearest))] = np.inf
    error[np.isnan(error)] = np.inf
    return error


def edge_values(dtype: type) -> np.ndarray:
    """Numbers where functions change their ways, with their neighbours."""
    info = np.finfo(dtype)
    values = [0.0, np.inf, np.nan, 0.5, 0.625, 1, 1.5, 2, 2.5, 3, 4, 6, 1e-5, 100, 88.72284, 103.9,
              709.78, 745.1, info.max, info.tiny, info.smallest_subnormal, info.tiny * dtype(0.7),
              2.0**17, 2.0**22, np.pi / 4, np.pi / 2, np.pi, 1e10, 1e22]  # fmt: skip
    edges = np.array(values + [-v for v in values], dtype)
    with np.errstate(all="ignore"):
        return np.concatenate(
            [edges, np.nextafter(edges, dtype(np.inf)), np.nextafter(edges, dtype(-np.inf))]
        )


def samples(name: str, dtype: type, count: int, seed: int = 3) -> list[np.ndarray]:
    """Operands: random bit patterns, ordinary numbers of several sizes, and edge values."""
    rng = np.random.default_rng(seed)
    unsigned = {4: np.uint32, 8: np.uint64}[np.dtype(dtype).itemsize]
    edges = edge_values(dtype)

    def patterns(n: int) -> np.ndarray:
        top = np.iinfo(unsigned).max
        return rng.integers(0, top, n, dtype=unsigned, endpoint=True).view(dtype)

    def ordinary(n: int) -> np.ndarray:
        scale = np.repeat([0.3, 1.0, 5.0, 30.0], n // 4)
        return (rng.standard_normal(len(scale)) * scale).astype(dtype)

    if name in UNARY:
        parts = [patterns(count // 2), ordinary(count // 2), edges]
        if name in ("asin", "acos", "atanh"):
            parts.append(rng.uniform(-1, 1, count).astype(dtype))
        if name in ("sine", "cosine", "tan"):
            parts.append((np.arange(1, 3000) * (np.pi / 2)).astype(dtype))
        if name == "acosh":
            parts.append((1 + np.exp2(rng.uniform(-30, 5, count))).astype(dtype))
        return [np.concatenate(parts)]
    n = count // 4
    left, right = np.meshgrid(edges, edges)
    if name == "power":
        near_one = (1 + rng.standard_normal(n) * 1e-3).astype(dtype)
        spread = np.exp(rng.standard_normal(n)).astype(dtype)
        integers = rng.integers(-20, 20, n).astype(dtype)
        x = [abs(patterns(n)), near_one, spread, ordinary(n), patterns(n)]
        y = [ordinary(n), ordinary(n) * dtype(100), ordinary(n) * dtype(10), integers, patterns(n)]
    else:
        x = [patterns(n), ordinary(n), ordinary(n) * dtype(1e-3)]
        y = [patterns(n), ordinary(n), ordinary(n)]
    return [
        np.concatenate([*(part[: n // 4 * 4] for part in p), e.reshape(-1)])
        for p, e in ((x, left), (y, right))
    ]


# --- Complex -----------------------------------------------------------------------------------

COMPLEX: dict[str, Callable[..., np.ndarray]] = {
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "sine": np.sin,
    "cosine": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "abs": np.abs,
    "sign": lambda z: z / abs(z),
    "multiply": np.multiply,
    "divide": np.divide,
}


def complex_numbers(dtype: type, seed: int = 0, count: int = 4000) -> np.ndarray:
    """Parts of ordinary size, and of sizes from 1e-4 to 10."""
    rng = np.random.default_rng(seed)
    part = np.float32 if dtype is np.complex64 else np.float64

    def one() -> np.ndarray:
        spread = rng.standard_normal(count) * 10.0 ** rng.integers(-4, 2, count)
        return np.where(rng.random(count) < 0.5, rng.standard_normal(count) * 3, spread).astype(
            part
        )

    z = np.empty(count, dtype)
    z.real, z.imag = one(), one()
    return z


def complex_error(name: str, operands: list[np.ndarray], got: np.ndarray) -> np.ndarray:
    """|got - want| / |want| in units of the type's epsilon; 0 where want is near overflow."""
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        want = COMPLEX[name](*[z.astype(np.clongdouble) for z in operands])
        error = np.asarray(abs(got - want) / abs(want) / info.eps)
    error[abs(want) > info.max / 4] = 0.0
    return error
