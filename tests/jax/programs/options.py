"""JAX's own options."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax, random

from tests.jax.programs.table import normal, program


@program
def sixty_four_bits():
    with jax.enable_x64(True):
        x = jnp.linspace(0.0, 2.0, 9)
        assert x.dtype == jnp.float64
        big = jnp.array([2**62, -(2**53) - 1])
        z = x + 1j * x
        return [
            jnp.sin(x) ** 2,
            big // 3,
            jnp.exp(z),
            jnp.linalg.solve(jnp.eye(3) * 4 + 1, jnp.arange(3.0)),
            random.normal(random.key(1), (5,), jnp.float64),
            jax.grad(lambda v: jnp.log1p(v).sum())(x),
            jnp.cumsum(jnp.arange(5, dtype=jnp.uint64) << 40),
            jnp.sort(-x),
        ]


@program
def debug_nans():
    x = jnp.array([1.0, -1.0])
    with jax.debug_nans(True):
        with pytest.raises(FloatingPointError, match="nan"):
            jax.jit(jnp.log)(x)
        with pytest.raises(FloatingPointError, match="nan"):
            jax.grad(lambda v: jnp.sqrt(v).sum())(x)
        fine = jnp.log(jnp.abs(x))
    with jax.debug_infs(True), pytest.raises(FloatingPointError, match="inf"):
        jax.jit(lambda v: 1 / (v - 1))(x)
    return [fine, jnp.log(x)]


@program
def without_jit():
    def body(i, x):
        return x + jnp.sin(i * x)

    with jax.disable_jit():
        found = [
            jax.jit(lambda v: lax.fori_loop(0, 3, body, v))(normal(4)),
            jax.vmap(jnp.dot)(normal(3, 4), normal(3, 4, seed=1)),
            jax.grad(lambda v: lax.cond(v > 0, jnp.sin, jnp.cos, v))(0.5),
        ]
    return found


@program
def eight_devices():
    assert jax.device_count() == jax.local_device_count() == 8
    assert [d.id for d in jax.local_devices()] == list(range(8))
    assert jax.process_index() == 0
    return jnp.arange(8)


@program
def matmul_precision():
    a, b = normal(16, 16), normal(16, 16, seed=1)
    with jax.default_matmul_precision("highest"):
        exact = a @ b
    return [exact, jnp.dot(a, b, preferred_element_type=jnp.float32)]


@program
def numpy_promotion_and_keys():
    with jax.numpy_dtype_promotion("strict"), pytest.raises(jax.dtypes.TypePromotionError):
        jnp.ones(2, jnp.float32) + jnp.ones(2, jnp.bfloat16)
    found = []
    for name in ("threefry2x32", "rbg", "unsafe_rbg"):
        key = random.key(3, impl=name)
        found += [random.bits(key, (4,)), random.uniform(random.split(key)[1], (3,))]
    return found
