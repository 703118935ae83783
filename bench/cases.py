"""What is measured: JAX functions at sizes that matter, their arguments, their operation counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from tests.conformance import models

M = 1 << 20


@dataclass(frozen=True)
class Case:
    """arguments: made from a random generator. flops: multiplications and additions that the
    answer needs (0: bytes decide alone). floor: whether bytes and flops bound the time at all.
    error: accepted ||haloc - jaxlib|| / ||jaxlib||; 0 for equal."""

    name: str
    function: Callable[..., Any]
    arguments: Callable[[np.random.Generator], tuple[Any, ...]]
    flops: float = 0.0
    dtype: str = "f32"
    floor: bool = True
    error: float = 1e-5


CASES: list[Case] = []


def case(name: str, function: Callable[..., Any], arguments: Any, **facts: Any) -> None:
    CASES.append(Case(name, function, arguments, **facts))


def normal(*dims: int, dtype: Any = np.float32, scale: float = 1.0) -> Callable[..., Any]:
    """A maker of one random array."""
    return lambda rng: jnp.asarray((rng.normal(size=dims) * scale).astype(np.float32)).astype(dtype)


def integers(high: int, *dims: int, dtype: Any = np.int32) -> Callable[..., Any]:
    return lambda rng: jnp.asarray(rng.integers(0, high, dims).astype(dtype))


def each(*makers: Callable[..., Any]) -> Callable[..., Any]:
    return lambda rng: tuple(make(rng) for make in makers)


# --- Memory --------------------------------------------------------------------------------------

BIG, SQUARE = (16 * M,), (4096, 4096)
case("add 16M", lambda x, y: x + y, each(normal(*BIG), normal(*BIG)))
case("exp 16M", jnp.exp, each(normal(*BIG)))
case("gelu 16M", jax.nn.gelu, each(normal(*BIG)))
case("sin 4M", jnp.sin, each(normal(4 * M, scale=10.0)))
case("add bf16 16M", lambda x, y: x + y, each(*[normal(*BIG, dtype=jnp.bfloat16)] * 2), error=1e-2)
case("sum of rows 4096²", lambda x: x.sum(1), each(normal(*SQUARE)), error=1e-4)
case("sum of columns 4096²", lambda x: x.sum(0), each(normal(*SQUARE)), error=1e-4)
case("sum 4096²", lambda x: jnp.sum(x * x), each(normal(*SQUARE)), error=1e-4)
case("argmax of rows 4096²", lambda x: jnp.argmax(x, 1), each(normal(*SQUARE)), error=0)
case("softmax 4096²", jax.nn.softmax, each(normal(*SQUARE)))
case("layer norm 4096²", models.layer_norm, each(normal(*SQUARE), normal(4096)))
case("transpose 4096²", lambda x: x.T.copy(), each(normal(*SQUARE)), error=0)
case(
    "max pool 2x2 8x112x112x64",
    lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
    each(normal(8, 112, 112, 64)),
    error=0,
)

# --- Contractions --------------------------------------------------------------------------------

for n in (512, 1024, 2048):
    case(f"matmul f32 {n}", jnp.matmul, each(normal(n, n), normal(n, n)), flops=2.0 * n**3)
for n in (512, 1024, 2048):
    square = normal(n, n, dtype=jnp.bfloat16)
    facts = {"flops": 2.0 * n**3, "dtype": "bf16", "error": 1e-2}
    case(f"matmul bf16 {n}", jnp.matmul, each(square, square), **facts)
case(
    "batched matmul 64x128x128",
    jnp.matmul,
    each(normal(64, 128, 128), normal(64, 128, 128)),
    flops=64 * 2.0 * 128**3,
)
case("matvec 4096", jnp.matmul, each(normal(*SQUARE), normal(4096)), flops=2.0 * 4096**2)
case(
    "conv 3x3 8x56x56x64",
    models.conv,
    each(normal(8, 56, 56, 64), normal(3, 3, 64, 64)),
    flops=8 * 56 * 56 * 64 * 64 * 9 * 2.0,
)


def depthwise(x, w):
    labels = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=labels, feature_group_count=64
    )


case(
    "depthwise conv 3x3 8x56x56x64",
    depthwise,
    each(normal(8, 56, 56, 64), normal(3, 3, 1, 64)),
    flops=8 * 56 * 56 * 64 * 9 * 2.0,
)

# --- Indices, order, bits ------------------------------------------------------------------------

case("sort 1M", jnp.sort, each(normal(M)), floor=False, error=0)
case("argsort 1M", jnp.argsort, each(normal(M)), floor=False, error=0)
case("cumsum 1M", jnp.cumsum, each(normal(M)), error=1e-4)
case(
    "scatter-add 1M into 64K",
    lambda x, i, v: x.at[i].add(v),
    each(normal(65536), integers(65536, M), normal(M)),
    error=1e-4,
)
case(
    "gather 64K rows of 128",
    lambda x, i: x[i],
    each(normal(65536, 128), integers(65536, 65536)),
    error=0,
)
case(
    "threefry 1M",
    lambda key: jax.random.bits(key, (M,)),
    lambda rng: (jax.random.key_data(jax.random.key(7)),),
    floor=False,
    error=0,
)
case("fft 1M", jnp.fft.fft, lambda rng: (normal(M)(rng) + 1j * normal(M)(rng),), floor=False)

# --- Control -------------------------------------------------------------------------------------

case(
    "while 10k steps",
    lambda x: lax.fori_loop(0, 10_000, lambda i, s: s * 0.999 + jnp.float32(1) / (i + 1), x),
    each(normal()),
    floor=False,
    error=1e-4,
)


def rnn(w, u, xs, h):
    def step(h, x):
        h = jnp.tanh(h @ w + x @ u)
        return h, h

    return lax.scan(step, h, xs)[1]


case(
    "scan RNN 200 x (16,128)",
    rnn,
    each(
        normal(128, 128, scale=0.05),
        normal(64, 128, scale=0.1),
        normal(200, 16, 64),
        normal(16, 128),
    ),
    flops=200 * 16 * 128 * (128 + 64) * 2.0,
    error=1e-4,
)
case("tiny add (dispatch)", lambda x, y: x + y, each(normal(4), normal(4)), floor=False)

# --- Models --------------------------------------------------------------------------------------

# The conformance tests' GPT at a realistic size: they read these numbers when they are called.
models.LAYERS, models.HEADS, models.WIDTH, models.VOCABULARY, models.LENGTH = 4, 8, 256, 1024, 128
BATCH = 4


def gpt_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    return models.gpt_parameters(np.float32), integers(1024, BATCH, models.LENGTH)(rng)


def gpt_train_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    parameters = models.gpt_parameters(np.float32)
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    return parameters, zeros, zeros, integers(1024, BATCH, models.LENGTH)(rng)


TOKENS = BATCH * models.LENGTH
FORWARD = (
    TOKENS
    * 2.0
    * (
        models.LAYERS * (12 * models.WIDTH**2 + 2 * models.LENGTH * models.WIDTH)
        + models.VOCABULARY * models.WIDTH
    )
)
case("GPT forward", models.gpt_forward, gpt_arguments, flops=FORWARD, error=1e-4)
case(
    "GPT train step",
    lambda *a: models.adam(models.gpt_loss, *a),
    gpt_train_arguments,
    flops=3 * FORWARD,
    error=1e-3,
)


def mlp(x, *weights):
    for w in weights:
        x = jax.nn.gelu(x @ w)
    return x


case(
    "MLP 32x256, 3 layers",
    mlp,
    each(normal(32, 256), *[normal(256, 256, scale=0.06)] * 3),
    flops=3 * 32 * 256 * 256 * 2.0,
    error=1e-4,
)
