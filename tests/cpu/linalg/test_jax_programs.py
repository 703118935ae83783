"""JAX's linear algebra, sorting and Fourier programs, from HLO text to native code, against jaxlib.

jaxlib calls the same LAPACK (SciPy's), so even eigenvectors agree in sign.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest
from jax import lax

import haloc.ops  # noqa: F401  (fills the table)
from haloc.cpu import pool
from haloc.cpu.compiler import compile_module
from haloc.formats.hlo_text import parse_module

RNG = np.random.default_rng(0)


def normal(*dims):
    return RNG.standard_normal(dims).astype(np.float32)


def positive(*dims):
    a = normal(*dims)
    return a @ a.swapaxes(-1, -2) + 4 * np.eye(dims[-1], dtype=np.float32)


def compile_native(function, *arguments):
    """(the native program as a function of nothing, jaxlib's results)."""
    lowered = jax.jit(function).lower(*arguments)
    program = compile_module(parse_module(lowered.compiler_ir("hlo").as_hlo_text()))
    inputs = [np.ascontiguousarray(x) for x in arguments]
    outputs = [np.empty(s.in_memory().dims, s.dtype.numpy) for s in program.results]
    orders = [np.argsort(s.major_to_minor) for s in program.results]
    arena = np.zeros(program.arena_bytes + 64, np.uint8)

    def run():
        aligned = arena.ctypes.data + -arena.ctypes.data % 64
        program.run([x.ctypes.data for x in inputs], [y.ctypes.data for y in outputs], aligned)
        return [y.transpose(order).copy() for y, order in zip(outputs, orders)]

    return run, [np.asarray(x) for x in jax.tree.leaves(lowered.compile()(*arguments))]


S = positive(2, 4, 4)
LINALG = {
    "cholesky": (jnp.linalg.cholesky, S),
    "qr complete": (lambda a: jnp.linalg.qr(a, mode="complete"), normal(4, 3)),
    "qr pivoted": (lambda a: jsl.qr(a, pivoting=True), normal(4, 4)),
    "svd": (lambda a: jnp.linalg.svd(a, full_matrices=False), normal(2, 4, 3)),
    "svd by qr": (lambda a: lax.linalg.svd(a, algorithm=lax.linalg.SvdAlgorithm.QR), normal(4, 3)),
    "eigh": (jnp.linalg.eigh, S),
    "eig": (jnp.linalg.eig, normal(3, 5, 5)),
    "solve": (jnp.linalg.solve, S, S),
    "solve triangular": (lambda a, b: jsl.solve_triangular(a, b, lower=True), S[0], S[1]),
    "schur": (jsl.schur, S[0]),
    "complex schur": (lambda a: jsl.schur(a, output="complex"), normal(4, 4)),
    "hessenberg": (lambda a: jsl.hessenberg(a, calc_q=True), normal(4, 4)),
    "tridiagonal": (lambda a: lax.linalg.tridiagonal(a, lower=True), S),
    "tridiagonal solve": (
        lax.linalg.tridiagonal_solve,
        *(normal(2, 4), normal(2, 4) + 5, normal(2, 4), normal(2, 4, 3)),
    ),
    "gradient of cholesky": (jax.grad(lambda x: jnp.sum(jnp.linalg.cholesky(x) ** 2)), S[0]),
}


@pytest.mark.parametrize("name", LINALG)
def test_linear_algebra(name):
    run, expected = compile_native(*LINALG[name])
    for actual, wanted in zip(run(), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-4)


SPECIAL = np.where(np.arange(40_000) % 7 == 0, np.nan, normal(40_000)).astype(np.float32)
SPECIAL[::11], SPECIAL[::13] = -0.0, 0.0
SORTS = {
    "one long line": (lax.sort, SPECIAL),
    "argsort rows, descending": (lambda x: jnp.argsort(x, 1, descending=True), normal(5, 300)),
    "complex": (lax.sort, (normal(100) + 1j * normal(100)).astype(np.complex64)),
    "bfloat16": (lambda x: lax.sort(x.astype(jnp.bfloat16)), SPECIAL[:500]),
    "two keys": (lambda x, y: lax.sort((x, y), num_keys=2), SPECIAL[:90] // 1, SPECIAL[5:95]),
    "median": (lambda x: jnp.median(x, axis=0), normal(9, 7)),
}


@pytest.mark.parametrize("name", SORTS)
def test_sorts_are_bitwise_equal_for_any_number_of_threads(name):
    run, expected = compile_native(*SORTS[name])
    for threads in (1, 2, 5):
        with pool.limit_threads(threads):
            for actual, wanted in zip(run(), expected, strict=True):
                assert actual.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("function", [jnp.fft.fft, jnp.fft.rfft2, jnp.fft.ifftn])
def test_fourier_transforms_do_not_depend_on_threads(function):
    run, expected = compile_native(function, normal(32, 64, 20))
    with pool.limit_threads(1):
        alone = run()
    with pool.limit_threads(4):
        together = run()
    assert alone[0].tobytes() == together[0].tobytes()
    np.testing.assert_allclose(alone[0], expected[0], rtol=1e-4, atol=1e-3)
