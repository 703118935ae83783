"""Sorting and sums so far."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from bench.cases.case import BF16, F64, Family, M, integers, normal, positive
from jax import lax

FAMILY = Family("sorting and scans")
add = FAMILY.add

for name, make, wide in (
    ("sort 1M", normal(M), False),
    ("sort int32 1M", integers(-(1 << 31), (1 << 31) - 1, M), False),
    ("sort f64 1M", normal(M, dtype=F64), True),
    ("sort 10", normal(10), False),
    ("sort rows 16384x64", normal(16384, 64), False),
):
    add(
        name,
        jnp.sort,
        make,
        torch=lambda t, x: x.sort().values,
        numpy=np.sort,
        floor=False,
        error=0,
        x64=wide,
    )
for name, make in (("argsort 1M", normal(M)), ("argsort rows 256x4096", normal(256, 4096))):
    add(
        name,
        jnp.argsort,
        make,
        torch=lambda t, x: x.argsort(stable=True),
        numpy=lambda x: x.argsort(kind="stable"),
        floor=False,
        error=0,
    )
add(
    "sort by key 256K, two operands",
    lambda k, v: lax.sort((k, v), num_keys=1),
    integers(0, 1 << 30, M // 4),
    normal(M // 4),
    floor=False,
    error=0,
)
add(
    "top 16 of rows 256x4096",
    lambda x: lax.top_k(x, 16),
    normal(256, 4096),
    torch=lambda t, x: tuple(t.topk(x, 16)),
    floor=False,
    error=0,
)
add(
    "median of rows 1024x1024",
    lambda x: jnp.median(x, axis=1),
    normal(1024, 1024),
    numpy=lambda x: np.median(x, axis=1),
    floor=False,
)

ROWS = normal(4096, 4096)
add(
    "cumsum 1M",
    jnp.cumsum,
    normal(M),
    torch=lambda t, x: x.cumsum(0),
    numpy=np.cumsum,
    floor=False,
    error=1e-4,
)
add(
    "cumsum of rows 4096²",
    lambda x: jnp.cumsum(x, 1),
    ROWS,
    torch=lambda t, x: x.cumsum(1),
    numpy=lambda x: np.cumsum(x, 1),
    error=1e-4,
)
add(
    "cumsum of columns 4096²",
    lambda x: jnp.cumsum(x, 0),
    ROWS,
    torch=lambda t, x: x.cumsum(0),
    numpy=lambda x: np.cumsum(x, 0),
    error=1e-4,
)
add(
    "cumulative maximum bf16 1024x4096",
    lambda x: lax.cummax(x, 1),
    normal(1024, 4096, dtype=BF16),
    torch=lambda t, x: x.cummax(1).values,
    error=0,
)
add(
    "cumulative product of rows 256x512",
    lambda x: jnp.cumprod(x, 1),
    lambda rng: positive(256, 512)(rng) * 0.02 + 0.98,
    torch=lambda t, x: x.cumprod(1),
    numpy=lambda x: np.cumprod(x, 1),
    error=1e-4,
)


def decay(a, b):
    """A linear recurrence x[n] = a[n] x[n-1] + b[n], as state-space models run it."""
    return lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (a, b))[1]


add(
    "associative scan of a recurrence 1024x256",
    decay,
    positive(1024, 256),
    normal(1024, 256),
    floor=False,
    error=1e-4,
)
