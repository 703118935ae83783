"""Fits the polynomials of src/haloc/codegen/math and prints them as Python.

    python scripts/fit_polynomials.py exp_f32 log_f64 ...      (no names: all)

Remez exchange in 60-digit arithmetic (needs mpmath, which haloc itself does not): for f on [a, b]
and a weight w, the polynomial p with the least maximum of |w (f - p)|. Each coefficient is then
rounded to its type; with `t = x*x` forms the fit is in t.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp
import numpy as np

mp.mp.dps = 60
Real = mp.mpf
Function = Callable[[Real], Real]


@dataclass
class Fit:
    """p(x) ~ f(x) on [low, high], errors weighted by w. bits: 24 (f32) or 53 (f64)."""

    f: Function
    weight: Function
    low: float
    high: float
    degree: int
    bits: int


def remez(fit: Fit) -> tuple[list[Real], Real]:
    """Coefficients, lowest first, and the weighted error."""
    n = fit.degree + 2
    low, high = mp.mpf(fit.low), mp.mpf(fit.high)
    middle, half = (low + high) / 2, (high - low) / 2
    points = [middle - half * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    grid_size = 24 * n
    grid = [middle - half * mp.cos(mp.pi * (2 * i + 1) / (2 * grid_size)) for i in range(grid_size)]
    points, grid = ([x + mp.mpf("1e-9") * half for x in xs] for xs in (points, grid))  # avoid 0
    values = [fit.f(x) for x in grid]
    weights = [abs(fit.weight(x)) for x in grid]
    coefficients: list[Real] = []
    error = mp.mpf(0)
    for _ in range(12):
        rows = mp.matrix(n, n)
        right = mp.matrix(n, 1)
        for i, x in enumerate(points):
            for j in range(n - 1):
                rows[i, j] = x**j
            rows[i, n - 1] = (-1) ** i / abs(fit.weight(x))
            right[i] = fit.f(x)
        solved = mp.lu_solve(rows, right)
        coefficients = [solved[j] for j in range(n - 1)]
        residual = [
            w * (v - mp.polyval(coefficients[::-1], x))
            for w, v, x in zip(weights, values, grid, strict=True)
        ]
        points, error = _exchange(grid, residual, n)
        levelled = abs(solved[n - 1])
        if levelled and error / levelled < 1.02:
            break
    return coefficients, error


def _exchange(grid: list[Real], residual: list[Real], n: int) -> tuple[list[Real], Real]:
    """The n largest alternating extrema of the residual, in order."""
    extrema: list[int] = []
    for i, r in enumerate(residual):
        if extrema and (residual[extrema[-1]] > 0) == (r > 0):
            if abs(r) > abs(residual[extrema[-1]]):
                extrema[-1] = i
        else:
            extrema.append(i)
    while len(extrema) > n:
        smallest_end = 0 if abs(residual[extrema[0]]) < abs(residual[extrema[-1]]) else -1
        extrema.pop(smallest_end)
    if len(extrema) < n:
        raise ArithmeticError(f"only {len(extrema)} extrema for {n} points")
    return [grid[i] for i in extrema], max(abs(r) for r in residual)


def rounded(c: Real, bits: int) -> float:
    return float(np.float32(float(c))) if bits == 24 else float(c)


def one(_: Real) -> Real:
    return mp.mpf(1)


def root(t: Real) -> Real:
    return mp.sqrt(t)


def log1p_tail(f: Real) -> Real:
    """(log(1+f) - f + f^2/2) / f^3"""
    return (mp.log1p(f) - f + f * f / 2) / f**3


def atanh_tail(t: Real, terms: int) -> Real:
    """(2 atanh(s) / s - the first terms) / t^terms, t = s^2."""
    s = root(t)
    known = sum(2 * t**i / (2 * i + 1) for i in range(terms))
    return (2 * mp.atanh(s) / s - known) / t**terms


def log_erfc(x: Real) -> Real:
    return mp.log(mp.erfc(x))


LN2H = 0.34665
S = 0.0295  # ((sqrt2 - 1) / (sqrt2 + 1))^2 = 0.02944
Q = 0.6170  # (pi/4)^2 = 0.61685

FITS: dict[str, Fit] = {}


def fit(name: str, f: Function, w: Function, low: float, high: float, d32: int, d64: int) -> None:
    if d32:
        FITS[f"{name}_f32"] = Fit(f, w, low, high, d32, 24)
    if d64:
        FITS[f"{name}_f64"] = Fit(f, w, low, high, d64, 53)


# e^r = 1 + r + r^2 p(r)
fit("exp", lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2, -LN2H, LN2H, 4, 10)
# expm1(r) = r + r^2 p(r), relative to r
fit("expm1", lambda r: (mp.expm1(r) - r) / r**2, lambda r: r, -LN2H, LN2H, 5, 11)
# 2^r = 1 + r p(r)
fit("exp2", lambda r: (mp.power(2, r) - 1) / r, lambda r: r, -0.5001, 0.5001, 0, 12)
fit("exp2_short", lambda r: (mp.power(2, r) - 1) / r, lambda r: r, -0.5001, 0.5001, 0, 8)
# log(1+f) = f - f^2/2 + f^3 p(f)
fit("log", log1p_tail, lambda f: f**2, -0.2930, 0.4143, 8, 0)
# log(m) = s (2 + t p(t)), t = s^2, s = (m-1)/(m+1)
fit("log_atanh", lambda t: atanh_tail(t, 1), lambda t: t, 1e-12, S, 0, 7)
fit("log2_short", lambda t: 2 * mp.atanh(root(t)) / root(t) / mp.log(2), one, 1e-12, S, 0, 7)
# log(m) = s (2 + 2/3 t + t^2 p(t))
fit("pow_log", lambda t: atanh_tail(t, 2), lambda t: t**2, 1e-9, S, 0, 8)
# sin r = r + r t p(t); cos r = 1 - t/2 + t^2 p(t)
fit("sin", lambda t: (mp.sin(root(t)) / root(t) - 1) / t, lambda t: t, 1e-12, Q, 2, 6)
fit("cos", lambda t: (mp.cos(root(t)) - 1 + t / 2) / t**2, lambda t: t**2, 1e-9, Q, 2, 6)
# asin x = x + x t p(t)
fit("asin", lambda t: (mp.asin(root(t)) / root(t) - 1) / t, lambda t: t, 1e-12, 0.2501, 4, 12)
# atan x = x + x t p(t), |x| <= tan(pi/8)
fit("atan", lambda t: (mp.atan(root(t)) / root(t) - 1) / t, lambda t: t, 1e-12, 0.1716, 4, 10)
# sinh x = x + x t p(t), |x| <= 1
fit("sinh", lambda t: (mp.sinh(root(t)) / root(t) - 1) / t, lambda t: t, 1e-12, 1.0001, 3, 6)
# tanh x = x + x t p(t), |x| <= 0.625
fit("tanh", lambda t: (mp.tanh(root(t)) / root(t) - 1) / t, lambda t: t, 1e-12, 0.3907, 4, 0)
# erf x = x + x p(t), |x| <= 1
fit("erf", lambda t: mp.erf(root(t)) / root(t) - 1, one, 1e-12, 1.0001, 6, 13)
# erfc x = exp(p(x))
fit("erfc", log_erfc, mp.erfc, 0.999, 4.1, 7, 0)
fit("erfc", log_erfc, mp.erfc, 0.999, 6.1, 0, 22)
# cbrt m, m in [1, 2): a first guess
fit("cbrt", mp.cbrt, one, 1.0, 2.0, 0, 3)


def main(names: list[str]) -> None:
    for name in names or FITS:
        wanted = FITS[name]
        coefficients, error = remez(wanted)
        numbers = [rounded(c, wanted.bits) for c in coefficients]
        print(f"# weighted error 2^{float(mp.log(error, 2)):.1f}")
        print(f"{name.upper()} = (")
        for number in numbers:
            print(f"    {number!r},")
        print(")", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
