"""Whole JAX programs: the interpreter agrees with jax.

Tolerances: f32 programs whose sums are ordered differently; relative to the largest magnitude.
"""

from collections.abc import Callable

import numpy as np
import pytest

from haloc import interpreter
from haloc.formats.hlo_text import parse_module
from haloc.verifier import verify
from tests.ops_structured.against_jaxlib import assert_close, leaves

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

RNG = np.random.default_rng(0)


def normal(*dims: int) -> np.ndarray:
    return RNG.standard_normal(dims).astype(np.float32)


def cnn_loss(w, x):
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    y = lax.reduce_window(jax.nn.relu(y), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
    return jnp.sum(y**2)


def attention(x, w):
    q, k, v = jnp.split(x @ w, 3, -1)
    scores = jnp.where(jnp.tril(jnp.ones((6, 6), bool)), q @ k.T, -jnp.inf)
    return jnp.sum(jax.nn.softmax(scores) @ v)


PROGRAMS: dict[str, tuple[Callable, tuple]] = {
    "softmax": (jax.nn.softmax, (normal(8, 16),)),
    "cumulative": (
        lambda x: (jnp.cumsum(x, 0), lax.cumprod(x, 1), lax.cummax(x, reverse=True)),
        (normal(9, 17),),
    ),
    "ordering": (
        lambda x: (jnp.sort(x, 1), jnp.argsort(x), jnp.median(x), lax.top_k(x, 3)),
        (normal(5, 13),),
    ),
    "cnn gradient": (jax.grad(cnn_loss, argnums=(0, 1)), (normal(3, 3, 2, 4), normal(2, 8, 8, 2))),
    "attention gradient": (jax.grad(attention, argnums=(0, 1)), (normal(6, 8), normal(8, 24))),
    "random": (
        lambda k: (jax.random.normal(k, (20,)), jax.random.permutation(k, 9)),
        (np.array([1, 2], np.uint32),),
    ),
    "linear algebra": (
        lambda x: (jnp.linalg.inv(x), jnp.linalg.eigvalsh(x @ x.T), jnp.linalg.det(x)),
        (normal(5, 5) + 3 * np.eye(5, dtype=np.float32),),
    ),
    "rnn by scan": (
        lambda w, h, xs: lax.scan(lambda c, x: (jnp.tanh(c @ w + x), c), h, xs),
        (normal(8, 8) * 0.3, normal(4, 8), normal(30, 4, 8)),
    ),
    "indexing": (
        lambda x, i: (x.at[i].add(1.0), x.at[i].max(0.0), x[i], jax.ops.segment_sum(x, i, 4)),
        (normal(6, 6), np.array([0, 5, 2, 2, 9, -1], np.int32)),
    ),
    "signals": (
        lambda x: (jnp.fft.rfft(x), jnp.convolve(x, x), jnp.interp(x, jnp.sort(x), x)),
        (normal(20),),
    ),
    "switch": (
        lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x * 2], x),
        (np.int32(2), normal(4)),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_agrees_with_jax(name):
    function, arguments = PROGRAMS[name]
    jitted = jax.jit(function)
    parsed = parse_module(jitted.lower(*arguments).as_text(dialect="hlo"))
    verify(parsed)
    given = leaves(interpreter.run(parsed, arguments))
    for a, b in zip(given, jax.tree.leaves(jitted(*arguments)), strict=True):
        assert_close(a, np.asarray(b), 1e-4)
