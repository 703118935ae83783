"""Elements that only change their place."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from bench.cases.case import BF16, Family, M, normal

FAMILY = Family("data movement")


def add(name, function, *makers, **facts):
    FAMILY.add(name, function, *makers, error=0, peer_error=0, **facts)


SQUARE = normal(4096, 4096)
add(
    "transpose 4096²",
    lambda x: x.T.copy(),
    SQUARE,
    torch=lambda t, x: x.T.contiguous(),
    numpy=lambda x: x.T.copy(),
)
add(
    "transpose bf16 64x512x512",
    lambda x: x.transpose(0, 2, 1),
    normal(64, 512, 512, dtype=BF16),
    torch=lambda t, x: x.transpose(1, 2).contiguous(),
)
add(
    "NCHW to NHWC 16x64x112x112",
    lambda x: x.transpose(0, 2, 3, 1),
    normal(16, 64, 112, 112),
    torch=lambda t, x: x.permute(0, 2, 3, 1).contiguous(),
    numpy=lambda x: x.transpose(0, 2, 3, 1).copy(),
)
add(
    "heads: (8,512,16,64) to (8,16,512,64)",
    lambda x: x.transpose(0, 2, 1, 3),
    normal(8, 512, 16, 64),
    torch=lambda t, x: x.transpose(1, 2).contiguous(),
    numpy=lambda x: x.transpose(0, 2, 1, 3).copy(),
)
add(
    "concatenate 4 of 4M",
    lambda *x: jnp.concatenate(x),
    *[normal(4 * M)] * 4,
    torch=lambda t, *x: t.cat(x),
    numpy=lambda *x: np.concatenate(x),
)
add(
    "pad 4096² by 3",
    lambda x: jnp.pad(x, 3),
    SQUARE,
    torch=lambda t, x: t.nn.functional.pad(x, (3, 3, 3, 3)),
    numpy=lambda x: np.pad(x, 3),
)
add(
    "reverse 16M",
    lambda x: x[::-1],
    normal(16 * M),
    torch=lambda t, x: x.flip(0),
    numpy=lambda x: x[::-1].copy(),
)
add(
    "every second column 4096²",
    lambda x: x[:, ::2],
    SQUARE,
    torch=lambda t, x: x[:, ::2].contiguous(),
    numpy=lambda x: x[:, ::2].copy(),
)
add(
    "roll 16M",
    lambda x: jnp.roll(x, 12345),
    normal(16 * M),
    torch=lambda t, x: x.roll(12345),
    numpy=lambda x: np.roll(x, 12345),
)
