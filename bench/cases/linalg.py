"""Decompositions and solvers, large ones and many small ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from bench.cases.case import Family, Maker, normal

FAMILY = Family("linear algebra")


def add(name, function, *makers, **facts):
    FAMILY.add(name, function, *makers, **({"floor": False, "error": 1e-4} | facts))


def definite(*dims: int) -> Maker:
    """Symmetric positive definite matrices."""

    def make(rng: np.random.Generator) -> jax.Array:
        x = rng.standard_normal(dims, np.float32)
        made = x @ x.swapaxes(-1, -2) / dims[-1] + np.eye(dims[-1], dtype=np.float32)
        return jnp.asarray(made)

    return make


add(
    "Cholesky 512",
    jnp.linalg.cholesky,
    definite(512, 512),
    torch=lambda t, x: t.linalg.cholesky(x),
    numpy=np.linalg.cholesky,
)
add(
    "solve 512 for 64",
    jnp.linalg.solve,
    definite(512, 512),
    normal(512, 64),
    torch=lambda t, a, b: t.linalg.solve(a, b),
    numpy=np.linalg.solve,
)
add(
    "triangular solve 512 for 512",
    lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True),
    definite(512, 512),
    normal(512, 512),
    torch=lambda t, a, b: t.linalg.solve_triangular(a.tril(), b, upper=False),
    numpy=lambda a, b: scipy.linalg.solve_triangular(a, b, lower=True),
)
add(
    "R of QR 512",
    lambda x: jnp.abs(jnp.linalg.qr(x, mode="r")),
    normal(512, 512),
    torch=lambda t, x: t.linalg.qr(x, mode="r").R.abs(),
    numpy=lambda x: np.abs(np.linalg.qr(x, mode="r")),
)
add(
    "eigenvalues of symmetric 256",
    jnp.linalg.eigvalsh,
    definite(256, 256),
    torch=lambda t, x: t.linalg.eigvalsh(x),
    numpy=np.linalg.eigvalsh,
)
add(
    "singular values 256x128",
    lambda x: jnp.linalg.svd(x, compute_uv=False),
    normal(256, 128),
    torch=lambda t, x: t.linalg.svdvals(x),
    numpy=lambda x: np.linalg.svd(x, compute_uv=False),
)
add(
    "Cholesky of 4096 4x4",
    jnp.linalg.cholesky,
    definite(4096, 4, 4),
    torch=lambda t, x: t.linalg.cholesky(x),
    numpy=np.linalg.cholesky,
)
add(
    "solve of 1000 6x6",
    lambda a, b: jnp.linalg.solve(a, b[..., None])[..., 0],
    definite(1000, 6, 6),
    normal(1000, 6),
    torch=lambda t, a, b: t.linalg.solve(a, b),
    numpy=lambda a, b: np.linalg.solve(a, b[..., None])[..., 0],
)
add(
    "inverse of 1000 8x8",
    jnp.linalg.inv,
    definite(1000, 8, 8),
    torch=lambda t, x: t.linalg.inv(x),
    numpy=np.linalg.inv,
)
add(
    "determinant of 10K 3x3",
    jnp.linalg.det,
    definite(10_000, 3, 3),
    torch=lambda t, x: t.linalg.det(x),
    numpy=np.linalg.det,
)
