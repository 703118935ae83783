"""Products of matrices, attention."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from bench.cases.case import BF16, F16, F64, Family, Maker, complexes, integers, normal

FAMILY = Family("contractions")
add = FAMILY.add


def product(name: str, x: Maker, y: Maker, flops: float, **facts: Any) -> None:
    """x @ y, by all who can."""
    facts = {"torch": lambda t, x, y: x @ y, "numpy": np.matmul, "flops": flops} | facts
    add(name, jnp.matmul, x, y, **facts)


def square(name: str, n: int, **facts: Any) -> None:
    make = normal(n, n, dtype=facts.pop("type", np.float32))
    product(f"matmul {name} {n}", make, make, 2.0 * n**3, **facts)


square("f32", 64, floor=False)
for n in (512, 1024, 2048):
    square("f32", n)
for n in (512, 1024, 2048):
    square("bf16", n, type=BF16, dtype="bf16", numpy=None, error=1e-2, peer_error=1e-2)
# NumPy's loop over f16 takes seconds.
square("f16", 1024, type=F16, dtype="f16", numpy=None, error=3e-3, peer_error=3e-3)
square("f64", 1024, type=F64, dtype="f64", x64=True)

BYTES = integers(-100, 100, 1024, 1024, dtype=np.int8)
add(
    "matmul int8 to int32 1024",
    lambda x, y: jnp.matmul(x, y, preferred_element_type=np.int32),
    BYTES,
    BYTES,
    torch=lambda t, x, y: t._int_mm(x, y),
    flops=2.0 * 1024**3,
    dtype="int8",
    error=0,
)
WORDS = integers(-1000, 1000, 512, 512)
product("matmul int32 512", WORDS, WORDS, 2.0 * 512**3, dtype="int32", error=0)
WAVES = complexes(512, 512)
product("matmul complex 512", WAVES, WAVES, 8.0 * 512**3)
product("batched matmul 64x128³", normal(64, 128, 128), normal(64, 128, 128), 64 * 2.0 * 128**3)
product("batched matmul 8192x8³", normal(8192, 8, 8), normal(8192, 8, 8), 8192 * 2.0 * 8**3)
product(
    "batched matmul bf16 64x128³",
    normal(64, 128, 128, dtype=BF16),
    normal(64, 128, 128, dtype=BF16),
    64 * 2.0 * 128**3,
    dtype="bf16",
    numpy=None,
    error=1e-2,
    peer_error=1e-2,
)
product("matrix times vector 4096²", normal(4096, 4096), normal(4096), 2.0 * 4096**2, error=1e-4)
product("vector times matrix 4096²", normal(4096), normal(4096, 4096), 2.0 * 4096**2, error=1e-4)
product("skinny (8,4096)·(4096,4096)", normal(8, 4096), normal(4096, 4096), 16.0 * 4096**2)
product("tall (65536,64)·(64,16)", normal(65536, 64), normal(64, 16), 2.0 * 65536 * 64 * 16)
add(
    "A·Bᵀ 1024",
    lambda x, y: x @ y.T,
    normal(1024, 1024),
    normal(1024, 1024),
    torch=lambda t, x, y: x @ y.T,
    numpy=lambda x, y: x @ y.T,
    flops=2.0 * 1024**3,
)
add(
    "dense layer: gelu(x·w + b) 512x1024x1024",
    lambda x, w, b: jax.nn.gelu(x @ w + b),
    normal(512, 1024),
    normal(1024, 1024, scale=0.03),
    normal(1024),
    torch=lambda t, x, w, b: t.nn.functional.gelu(t.addmm(b, x, w), approximate="tanh"),
    flops=2.0 * 512 * 1024 * 1024,
)


def attention(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)


add(
    "attention 2x8x512x64",
    attention,
    *[normal(2, 8, 512, 64)] * 3,
    torch=lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v),
    flops=4.0 * 16 * 512 * 512 * 64,
)
