"""Gather, scatter, slices at places known at run time."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from bench.cases.case import BF16, Family, M, integers, normal
from jax import lax

FAMILY = Family("indexing")
add = FAMILY.add

TABLE, ROWS = normal(65536, 128), integers(0, 65536, 65536)


def take(t, x, i):
    return x.index_select(0, i)


add(
    "gather 64K rows of 128",
    lambda x, i: x[i],
    TABLE,
    ROWS,
    torch=take,
    numpy=lambda x, i: x[i],
    error=0,
)
add(
    "embedding bf16: 8K rows of 768",
    lambda x, i: x[i],
    normal(32000, 768, dtype=BF16),
    integers(0, 32000, 8192),
    torch=take,
    error=0,
)
add(
    "gather 1M elements",
    lambda x, i: x[i],
    normal(M),
    integers(0, M, M),
    torch=take,
    numpy=lambda x, i: x[i],
    error=0,
)
add(
    "take along rows 4096x1024",
    lambda x, i: jnp.take_along_axis(x, i, 1),
    normal(4096, 1024),
    integers(0, 1024, 4096, 1024),
    torch=lambda t, x, i: x.gather(1, i.long()),
    numpy=lambda x, i: np.take_along_axis(x, i, 1),
    error=0,
)


def scatter_add(x, i, v):
    y = x.copy()
    np.add.at(y, i, v)
    return y


add(
    "scatter-add 1M into 64K",
    lambda x, i, v: x.at[i].add(v),
    normal(65536),
    integers(0, 65536, M),
    normal(M),
    torch=lambda t, x, i, v: x.index_add(0, i, v),
    numpy=scatter_add,
    error=1e-4,
)
add(
    "embedding gradient: 16K rows of 256 into 32K",
    lambda x, i, v: jnp.zeros_like(x).at[i].add(v),
    normal(32768, 256),
    integers(0, 32768, 16384),
    normal(16384, 256),
    torch=lambda t, x, i, v: t.zeros_like(x).index_add(0, i, v),
    error=1e-4,
)
add(
    "sum of segments 1M x 8 into 1000",
    lambda v, i: jax.ops.segment_sum(v, i, 1000),
    normal(M, 8),
    integers(0, 1000, M),
    torch=lambda t, v, i: t.zeros(1000, 8).index_add(0, i, v),
    error=1e-3,
)
add(
    "histogram 1M into 256",
    lambda i: jnp.zeros(256, np.int32).at[i].add(1),
    integers(0, 256, M),
    torch=lambda t, i: t.bincount(i, minlength=256),
    numpy=lambda i: np.bincount(i, minlength=256),
    error=0,
)
add(
    "update 128 rows of 4096² in place of a copy",
    lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 0)),
    normal(4096, 4096),
    normal(128, 4096),
    integers(0, 3900),
    torch=lambda t, x, u, i: t.cat((x[: int(i)], u, x[int(i) + 128 :])),
    error=0,
)
