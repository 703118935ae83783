"""Arithmetic and functions of each element."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from bench.cases.case import BF16, F16, F64, Family, M, complexes, integers, normal, positive
from scipy import special

FAMILY = Family("elementwise")
add = FAMILY.add


def plus(t, x, y):
    return x + y


for label, dtype, error in (
    ("", np.float32, 0),
    (" bf16", BF16, 0),
    (" f16", F16, 0),
    (" int8", np.int8, 0),
):
    count = (64 if dtype is np.int8 else 16) * M
    make = integers(-60, 60, count, dtype=dtype) if dtype is np.int8 else normal(count, dtype=dtype)
    plain = None if dtype is BF16 else np.add
    add(f"add{label} {count // M}M", jnp.add, make, make, torch=plus, numpy=plain, error=error)
big = normal(8 * M, dtype=F64)
add("add f64 8M", jnp.add, big, big, torch=plus, numpy=np.add, error=0, x64=True)
add("add 4 (dispatch)", jnp.add, normal(4), normal(4), torch=plus, numpy=np.add, floor=False)
add("add 10K", jnp.add, normal(10_000), normal(10_000), torch=plus, numpy=np.add, floor=False)

add("exp 16M", jnp.exp, normal(16 * M), torch=lambda t, x: x.exp(), numpy=np.exp)
add(
    "gelu 16M",
    jax.nn.gelu,
    normal(16 * M),
    torch=lambda t, x: t.nn.functional.gelu(x, approximate="tanh"),
)
add(
    "sin 4M",
    jnp.sin,
    normal(4 * M, scale=10.0),
    torch=lambda t, x: x.sin(),
    numpy=np.sin,
)
add("tanh bf16 4M", jnp.tanh, normal(4 * M, dtype=BF16), torch=lambda t, x: x.tanh(), error=1e-2)
add(
    "silu f16 4M",
    jax.nn.silu,
    normal(4 * M, dtype=F16),
    torch=lambda t, x: t.nn.functional.silu(x),
    error=2e-3,
    peer_error=2e-3,
)
add(
    "log f64 2M",
    jnp.log,
    positive(2 * M, dtype=F64),
    torch=lambda t, x: x.log(),
    numpy=np.log,
    x64=True,
)
add(
    "power 4M",
    jnp.power,
    positive(4 * M),
    normal(4 * M),
    torch=lambda t, x, y: x**y,
    numpy=np.power,
)
add("erf 4M", jax.lax.erf, normal(4 * M), torch=lambda t, x: x.erf(), numpy=special.erf)
add(
    "int32 division 4M",
    jax.lax.div,
    integers(0, 1 << 30, 4 * M),
    integers(1, 1000, 4 * M),
    torch=lambda t, x, y: t.div(x, y, rounding_mode="trunc"),
    numpy=np.floor_divide,
    error=0,
)
add(
    "where(x > y, x * y, x - y) 4M",
    lambda x, y: jnp.where(x > y, x * y, x - y),
    normal(4 * M),
    normal(4 * M),
    torch=lambda t, x, y: t.where(x > y, x * y, x - y),
    numpy=lambda x, y: np.where(x > y, x * y, x - y),
)
add(
    "f32 to bf16 16M",
    lambda x: x.astype(BF16),
    normal(16 * M),
    torch=lambda t, x: x.to(t.bfloat16),
    error=0,
)
add(
    "complex multiply 4M",
    jnp.multiply,
    complexes(4 * M),
    complexes(4 * M),
    torch=lambda t, x, y: x * y,
    numpy=np.multiply,
)


def polynomial(x):
    """Sixteen multiplications and additions."""
    y = x
    for k in range(16):
        y = y * x + (0.1 * k - 0.7)
    return y


for count, label in ((1000, "1K"), (4 * M, "4M")):
    add(
        f"polynomial of degree 17, {label}",
        polynomial,
        normal(count, scale=0.5),
        torch=lambda t, x: polynomial(x),
        numpy=polynomial,
        floor=count > M,
    )
