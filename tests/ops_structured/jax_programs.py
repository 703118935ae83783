"""Small jax.lax.linalg programs, lowered to HLO and run by jax: one for each LAPACK routine."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

Program = tuple[str, tuple[int, ...], Callable[[Any, Any], Any]]
"""(kind of matrix, dims, function of (jax.lax.linalg, x))"""

PROGRAMS: dict[str, Program] = {
    "cholesky": ("definite", (3, 4, 4), lambda la, x: la.cholesky(x)),
    "cholesky complex": ("complex definite", (4, 4), lambda la, x: la.cholesky(x)),
    "cholesky indefinite": ("real", (3, 4, 4), lambda la, x: la.cholesky(x)),
    "qr": ("real", (5, 3), lambda la, x: la.qr(x, full_matrices=False)),
    "qr full": ("real", (2, 5, 3), lambda la, x: la.qr(x, full_matrices=True)),
    "qr complex": ("complex", (4, 4), lambda la, x: la.qr(x, full_matrices=False)),
    "qr pivoting": ("real", (5, 3), lambda la, x: la.qr(x, pivoting=True)),
    "svd": ("real", (2, 5, 3), lambda la, x: la.svd(x, full_matrices=False)),
    "svd full": ("real", (3, 5), lambda la, x: la.svd(x, full_matrices=True)),
    "svd values": ("complex", (4, 4), lambda la, x: la.svd(x, compute_uv=False)),
    "svd nan": ("nan", (3, 3), lambda la, x: la.svd(x)),
    "eigh": ("definite", (3, 4, 4), lambda la, x: la.eigh(x)),
    "eigh complex": ("complex definite", (4, 4), lambda la, x: la.eigh(x, lower=False)),
    "eig": ("real", (3, 4, 4), lambda la, x: la.eig(x)),
    "eig complex": ("complex", (4, 4), lambda la, x: la.eig(x, compute_left_eigenvectors=False)),
    "eig nan": ("nan", (3, 3), lambda la, x: la.eig(x)),
    "lu": ("real", (3, 4, 4), lambda la, x: la.lu(x)),
    "lu wide": ("complex", (3, 5), lambda la, x: la.lu(x)),
    "lu singular": ("zero", (3, 3), lambda la, x: la.lu(x)),
    "trsm": (
        "real",
        (2, 4, 4),
        lambda la, x: la.triangular_solve(x[0], x[1], left_side=True, lower=True, transpose_a=True),
    ),
    "trsm right adjoint": (
        "complex",
        (4, 4),
        lambda la, x: la.triangular_solve(
            x, x, conjugate_a=True, transpose_a=True, unit_diagonal=True
        ),
    ),
    "trsm singular": (
        "zero",
        (3, 3),
        lambda la, x: la.triangular_solve(x, x + 1, left_side=True, lower=True),
    ),
    "schur": ("real", (3, 4, 4), lambda la, x: la.schur(x)),
    "schur values": ("complex", (4, 4), lambda la, x: la.schur(x, compute_schur_vectors=False)),
    "hessenberg": ("real", (3, 4, 4), lambda la, x: la.hessenberg(x)),
    "hessenberg complex": ("complex", (4, 4), lambda la, x: la.hessenberg(x)),
    "tridiagonal solve": (
        "real",
        (4, 4),
        lambda la, x: la.tridiagonal_solve(x[0], x[1] + 5, x[2], x),
    ),
    "tridiagonal": ("definite", (3, 4, 4), lambda la, x: la.tridiagonal(x)),
    "tridiagonal complex": (
        "complex definite",
        (4, 4),
        lambda la, x: la.tridiagonal(x, lower=False),
    ),
}


def matrix(kind: str, dims: tuple[int, ...], bits: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(dims)
    if "complex" in kind:
        x = x + 1j * rng.standard_normal(dims)
    if "definite" in kind:
        x = x @ x.swapaxes(-1, -2).conj() + np.eye(dims[-1])
    if kind in ("nan", "zero"):
        x = np.full(dims, np.nan if kind == "nan" else 0.0)
    types = {32: (np.float32, np.complex64), 64: (np.float64, np.complex128)}
    return x.astype(types[bits]["complex" in kind])


@cache
def lowered(name: str, bits: int) -> tuple[str, np.ndarray, tuple[np.ndarray, ...]]:
    """(HLO text, argument, jax's results) of a program."""
    # jax is imported here so that collecting the tests stays fast.
    import jax  # noqa: PLC0415

    kind, dims, function = PROGRAMS[name]
    x = matrix(kind, dims, bits)
    with jax.enable_x64(True):
        jitted = jax.jit(lambda x: function(jax.lax.linalg, x))
        text = jitted.lower(x).as_text(dialect="hlo")
        results = tuple(np.asarray(r) for r in jax.tree.leaves(jitted(x)))
    return text, x, results
