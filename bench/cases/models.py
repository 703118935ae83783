"""Whole models: forward, decoding, gradients, training steps; programs of very many operations."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from bench.cases import torch_models
from bench.cases.case import BF16, Case, Family, integers, normal
from jax import lax
from tests.conformance import models

FAMILY = Family("models")

# The conformance tests' models at a realistic size: they read these numbers when they are called.
models.LAYERS, models.HEADS, models.WIDTH, models.VOCABULARY, models.LENGTH = 4, 8, 256, 1024, 128
models.STAGES = ((3, 16), (4, 32), (6, 64), (3, 128))
BATCH, TOKENS = 4, 4 * models.LENGTH
GPT_FLOPS = (
    TOKENS
    * 2.0
    * (
        models.LAYERS * (12 * models.WIDTH**2 + 2 * models.LENGTH * models.WIDTH)
        + models.VOCABULARY * models.WIDTH
    )
)


def add(name: str, function: Any, arguments: Any, **facts: Any) -> None:
    """arguments: makes all of them."""
    FAMILY.cases.append(Case("models", name, function, arguments, **({"error": 1e-4} | facts)))


# --- GPT -----------------------------------------------------------------------------------------


def gpt_arguments(dtype: Any = np.float32) -> Any:
    tokens = integers(0, models.VOCABULARY, BATCH, models.LENGTH)
    return lambda rng: (models.gpt_parameters(dtype), tokens(rng))


def train_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    parameters, tokens = gpt_arguments()(rng)
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    return parameters, zeros, zeros, tokens


add(
    "GPT forward",
    models.gpt_forward,
    gpt_arguments(),
    torch=torch_models.gpt_forward,
    flops=GPT_FLOPS,
)
add(
    "GPT forward bf16",
    models.gpt_forward,
    gpt_arguments(BF16),
    torch=torch_models.gpt_forward,
    flops=GPT_FLOPS,
    dtype="bf16",
    error=5e-2,
    peer_error=5e-2,
)
add(
    "GPT training step",
    lambda *a: models.adam(models.gpt_loss, *a),
    train_arguments,
    torch=torch_models.gpt_train,
    flops=3 * GPT_FLOPS,
    error=1e-3,
    peer_error=1e-2,
)


def decode(p, keys, values, token, place):
    """The next token's logits, and the caches with one entry more."""
    x = p["embed"][token] + p["place"][place]
    heads = lambda t: t.reshape(BATCH, models.HEADS, -1)  # noqa: E731
    seen = jnp.arange(models.LENGTH) <= place
    for number, block in enumerate(p["blocks"]):
        q, k, v = jnp.split(models.layer_norm(x, block["norm1"]) @ block["qkv"], 3, -1)
        keys = keys.at[number, :, :, place].set(heads(k))
        values = values.at[number, :, :, place].set(heads(v))
        scores = jnp.einsum("bhd,bhkd->bhk", heads(q), keys[number]) / np.sqrt(32)
        weights = jax.nn.softmax(jnp.where(seen, scores, -1e9))
        y = jnp.einsum("bhk,bhkd->bhd", weights, values[number]).reshape(BATCH, -1)
        x = x + y @ block["out"]
        y = models.layer_norm(x, block["norm2"]) @ block["up"]
        x = x + jax.nn.gelu(y) @ block["down"]
    return x @ p["embed"].T, keys, values


def decode_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    size = (models.LAYERS, BATCH, models.HEADS, models.LENGTH, models.WIDTH // models.HEADS)
    tokens = integers(0, models.VOCABULARY, BATCH)(rng)
    caches = normal(*size)(rng), normal(*size)(rng)
    return models.gpt_parameters(np.float32), *caches, tokens, jnp.int32(77)


add("GPT decoding of a token", decode, decode_arguments, flops=GPT_FLOPS / models.LENGTH)

# --- ResNet --------------------------------------------------------------------------------------


def resnet_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    return models.resnet_parameters(np.float32), normal(4, 64, 64, 3)(rng)


add(
    "ResNet-50 forward, a quarter as wide",
    models.resnet_forward,
    resnet_arguments,
    torch=torch_models.resnet_forward,
    floor=False,
    error=1e-3,
)
add(
    "ResNet-50 gradient, a quarter as wide",
    jax.grad(lambda p, x: jnp.mean(models.resnet_forward(p, x) ** 2)),
    resnet_arguments,
    floor=False,
    error=1e-2,
)

# --- Small models --------------------------------------------------------------------------------


def mlp(x, *weights):
    for w in weights:
        x = jax.nn.gelu(x @ w)
    return x


def torch_mlp(t, x, *weights):
    for w in weights:
        x = t.nn.functional.gelu(x @ w, approximate="tanh")
    return x


def mlp_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    return normal(32, 256)(rng), *[normal(256, 256, scale=0.06)(rng) for _ in range(3)]


MLP_FLOPS = 3 * 32 * 256 * 256 * 2.0
add("MLP 32x256, 3 layers", mlp, mlp_arguments, torch=torch_mlp, flops=MLP_FLOPS)


def mlp_step(x, *weights):
    """The weights after one step of gradient descent towards equal inputs and outputs."""
    gradient = jax.grad(lambda w: jnp.mean((mlp(x, *w) - x) ** 2))(weights)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradient)


add("MLP training step", mlp_step, mlp_arguments, flops=3 * MLP_FLOPS)


def k_means(points, centres):
    distance = jnp.sum((points[:, None] - centres[None]) ** 2, -1)
    nearest = jnp.argmin(distance, 1)
    total = jnp.zeros_like(centres).at[nearest].add(points)
    count = jnp.zeros(len(centres)).at[nearest].add(1)
    return total / jnp.maximum(count, 1)[:, None]


add(
    "k-means step, 20K points, 50 centres",
    k_means,
    lambda rng: (normal(20_000, 8)(rng), normal(50, 8)(rng)),
    floor=False,
)


def gravity(x):
    """Accelerations of 2048 bodies."""
    apart = x[:, None] - x[None]
    near = (apart**2).sum(-1) + 0.01
    return -(apart * (near**-1.5)[..., None]).sum(1)


add(
    "n-body 2048",
    gravity,
    lambda rng: (normal(2048, 3)(rng),),
    torch=lambda t, x: gravity(x),
    floor=False,
)


def black_scholes(spot, strike, years):
    rate, spread = 0.03, 0.2
    root = spread * jnp.sqrt(years)
    d = (jnp.log(spot / strike) + (rate + spread**2 / 2) * years) / root
    cdf = jax.scipy.stats.norm.cdf
    return spot * cdf(d) - strike * jnp.exp(-rate * years) * cdf(d - root)


add(
    "Black-Scholes with gradients 1M",
    jax.vmap(jax.value_and_grad(black_scholes, (0, 1, 2))),
    lambda rng: tuple(jnp.asarray(rng.random(1 << 20, np.float32) + 0.5) for _ in range(3)),
)

# --- Very many operations ------------------------------------------------------------------------


def many(x, pairs):
    """Pairs of small operations, each on the results of others."""
    values = [x, x * 0.5]
    for k in range(pairs):
        a, b = values[-1], values[-2 - k % 2]
        values.append(jnp.tanh(a + b * (0.01 * k)))
        values.append(a - jnp.roll(values[-1], 1) * 0.1)
    return sum(values[:: pairs // 5])


add("500 small operations", lambda x: many(x, 250), lambda rng: (normal(64)(rng),), floor=False)
# jaxlib compiles the gradient of 80 operations for 13 s, that of 500 for minutes.
add(
    "gradient of 40 small operations",
    jax.grad(lambda x: many(x, 20).sum()),
    lambda rng: (normal(64)(rng),),
    floor=False,
    error=1e-3,
)


def rigid_body(angles, speeds):
    """A chain of 12 joints: many 3x3 products of sines and cosines, as simulators of robots do."""
    rotation, place, parts = jnp.eye(3), jnp.zeros(3), []
    for k in range(12):
        c, s = jnp.cos(angles[k]), jnp.sin(angles[k])
        zero, one = jnp.zeros(()), jnp.ones(())
        rows = [[c, -s, zero], [s, c, zero], [zero, zero, one]]
        turn = jnp.stack([jnp.stack(r) for r in rows])
        rotation = rotation @ (turn if k % 2 else turn.T)
        place = place + rotation @ jnp.array([0.1, 0.2, 0.3])
        parts.append(jnp.cross(rotation[0], place) * speeds[k])
    return jnp.stack(parts)


add(
    "chain of rigid bodies, Jacobian",
    jax.jacfwd(lambda a, s: rigid_body(a, s).sum(0)),
    lambda rng: (normal(12)(rng), normal(12)(rng)),
    floor=False,
)
add(
    "hidden Markov model, 500 steps of 32 states",
    lambda start, move, seen: lax.scan(
        lambda p, x: (jax.nn.logsumexp(p[:, None] + move, 0) + x, None), start, seen
    )[0],
    lambda rng: (normal(32)(rng), normal(32, 32)(rng), normal(500, 32)(rng)),
    floor=False,
)
