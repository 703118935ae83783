"""Sums and what is made of them: softmax, norms, pooling."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from bench.cases.case import BF16, F64, Family, M, integers, normal
from jax import lax
from scipy import special
from tests.conformance import models

FAMILY = Family("reductions")
add = FAMILY.add
SQUARE = normal(4096, 4096)

for name, axis in (("sum of rows 4096²", 1), ("sum of columns 4096²", 0)):
    add(
        name,
        lambda x, axis=axis: x.sum(axis),
        SQUARE,
        torch=lambda t, x, axis=axis: x.sum(axis),
        numpy=lambda x, axis=axis: x.sum(axis),
        error=1e-4,
    )
add(
    "sum of squares 4096²",
    lambda x: jnp.sum(x * x),
    SQUARE,
    torch=lambda t, x: (x * x).sum(),
    numpy=lambda x: np.vdot(x, x),
    error=1e-4,
)
add(
    "sum of the middle axis f64 64x1024x64",
    lambda x: x.sum(1),
    normal(64, 1024, 64, dtype=F64),
    torch=lambda t, x: x.sum(1),
    numpy=lambda x: x.sum(1),
    x64=True,
)
add(
    "sum int8 to int32 64M",
    lambda x: x.sum(dtype=np.int32),
    integers(-100, 100, 64 * M, dtype=np.int8),
    torch=lambda t, x: x.sum(dtype=t.int32),
    numpy=lambda x: x.sum(dtype=np.int32),
    error=0,
)
add(
    "argmax of rows 4096²",
    lambda x: jnp.argmax(x, 1),
    SQUARE,
    torch=lambda t, x: x.argmax(1),
    numpy=lambda x: x.argmax(1),
    error=0,
)
add(
    "softmax 4096²",
    jax.nn.softmax,
    SQUARE,
    torch=lambda t, x: x.softmax(-1),
    numpy=lambda x: special.softmax(x, -1),
)
add(
    "softmax bf16 4096x1024",
    jax.nn.softmax,
    normal(4096, 1024, dtype=BF16),
    torch=lambda t, x: x.softmax(-1),
    error=1e-2,
    peer_error=1e-2,
)
add(
    "log-sum-exp of rows 1024x32768",
    lambda x: jax.nn.logsumexp(x, 1),
    normal(1024, 32768),
    torch=lambda t, x: x.logsumexp(1),
    numpy=lambda x: special.logsumexp(x, 1),
)
add(
    "layer norm 4096²",
    models.layer_norm,
    SQUARE,
    normal(4096),
    torch=lambda t, x, g: t.nn.functional.layer_norm(x, (4096,), g),
    error=1e-4,
)
add(
    "variance of columns 4096²",
    lambda x: x.var(0),
    SQUARE,
    torch=lambda t, x: x.var(0, correction=0),
    numpy=lambda x: x.var(0),
    error=1e-4,
)
add(
    "norm of rows 64K x 128",
    lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True),
    normal(65536, 128),
    torch=lambda t, x: x / x.norm(dim=1, keepdim=True),
    numpy=lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
)
IMAGES = normal(8, 112, 112, 64)
add(
    "max pool 2x2 8x112x112x64",
    lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
    IMAGES,
    torch=lambda t, x: t.nn.functional.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1),
    error=0,
)
add(
    "average pool 3x3 8x112x112x64",
    lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / 9,
    IMAGES,
    torch=lambda t, x: t.nn.functional.avg_pool2d(x.permute(0, 3, 1, 2), 3, 1, 1).permute(
        0, 2, 3, 1
    ),
)
