"""Whole models, written plainly in JAX: (name, function, arguments, tolerance scale).

Sizes are small enough for the interpreter; structure is that of the real thing.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def normal(rng, *dims, scale=1.0, dtype=np.float32):
    return jnp.asarray((rng.normal(size=dims) * scale).astype(np.float32)).astype(dtype)


def adam(loss, p, m, v, *batch):
    """One step; moments m, v are trees like p."""
    value, g = jax.value_and_grad(loss)(p, *batch)
    m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
    v = jax.tree.map(lambda a, b: 0.99 * a + 0.01 * b * b, v, g)
    p = jax.tree.map(lambda a, b, c: a - 1e-3 * b / (jnp.sqrt(c) + 1e-3), p, m, v)
    return p, m, v, value


# --- MLP, CNN ----------------------------------------------------------------------------------


def mlp(dtype):
    rng = np.random.default_rng(1)
    sizes = (20, 32, 32, 5)
    p = [
        (normal(rng, a, b, scale=a**-0.5, dtype=dtype), jnp.zeros(b, dtype))
        for a, b in zip(sizes, sizes[1:])
    ]

    def forward(p, x):
        for w, b in p[:-1]:
            x = jax.nn.gelu(x @ w + b)
        return jax.nn.softmax(x @ p[-1][0] + p[-1][1])

    return forward, (p, normal(rng, 16, 20, dtype=dtype))


def mlp_train(dtype):
    forward, (p, x) = mlp(dtype)
    y = jnp.asarray(np.random.default_rng(2).integers(0, 5, 16), jnp.int32)

    def loss(p, x, y):
        return -jnp.mean(jnp.log(jnp.take_along_axis(forward(p, x), y[:, None], 1)))

    zeros = jax.tree.map(jnp.zeros_like, p)
    return (lambda *a: adam(loss, *a)), (p, zeros, zeros, x, y)


def conv(x, w, stride=1, padding="SAME"):
    return lax.conv_general_dilated(
        x, w, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def cnn(dtype):
    rng = np.random.default_rng(3)
    p = {
        "a": normal(rng, 3, 3, 3, 8, scale=0.3, dtype=dtype),
        "b": normal(rng, 3, 3, 8, 16, scale=0.15, dtype=dtype),
        "w": normal(rng, 4 * 4 * 16, 10, scale=0.06, dtype=dtype),
    }

    def forward(p, x):
        x = jax.nn.relu(conv(x, p["a"]))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = jax.nn.relu(conv(x, p["b"], 2))
        return jax.nn.log_softmax(x.reshape(x.shape[0], -1) @ p["w"])

    return forward, (p, normal(rng, 4, 16, 16, 3, dtype=dtype))


# --- GPT ---------------------------------------------------------------------------------------

LAYERS, HEADS, WIDTH, VOCABULARY, LENGTH = 4, 4, 32, 50, 12


def gpt_parameters(dtype):
    rng = np.random.default_rng(4)
    block = lambda: {  # noqa: E731
        "qkv": normal(rng, WIDTH, 3 * WIDTH, scale=0.1, dtype=dtype),
        "out": normal(rng, WIDTH, WIDTH, scale=0.1, dtype=dtype),
        "up": normal(rng, WIDTH, 4 * WIDTH, scale=0.1, dtype=dtype),
        "down": normal(rng, 4 * WIDTH, WIDTH, scale=0.1, dtype=dtype),
        "norm1": jnp.ones(WIDTH, dtype),
        "norm2": jnp.ones(WIDTH, dtype),
    }
    return {
        "embed": normal(rng, VOCABULARY, WIDTH, scale=0.1, dtype=dtype),
        "place": normal(rng, LENGTH, WIDTH, scale=0.1, dtype=dtype),
        "blocks": [block() for _ in range(LAYERS)],
    }


def layer_norm(x, g):
    x32 = x.astype(jnp.float32)
    mean = x32.mean(-1, keepdims=True)
    var = ((x32 - mean) ** 2).mean(-1, keepdims=True)
    return ((x32 - mean) * lax.rsqrt(var + 1e-5)).astype(x.dtype) * g


def gpt_forward(p, tokens):
    b, n = tokens.shape
    x = p["embed"][tokens] + p["place"][:n]
    mask = jnp.tril(jnp.ones((n, n), bool))
    for block in p["blocks"]:
        q, k, v = jnp.split(layer_norm(x, block["norm1"]) @ block["qkv"], 3, -1)
        heads = lambda t: t.reshape(b, n, HEADS, -1).transpose(0, 2, 1, 3)  # noqa: E731
        scores = jnp.einsum("bhqd,bhkd->bhqk", heads(q), heads(k)) / np.sqrt(WIDTH // HEADS).astype(
            np.float32
        )
        scores = jnp.where(mask, scores.astype(jnp.float32), -1e9)
        attention = jax.nn.softmax(scores).astype(x.dtype)
        y = jnp.einsum("bhqk,bhkd->bhqd", attention, heads(v))
        x = x + y.transpose(0, 2, 1, 3).reshape(b, n, WIDTH) @ block["out"]
        x = x + jax.nn.gelu(layer_norm(x, block["norm2"]) @ block["up"]) @ block["down"]
    return (x @ p["embed"].T).astype(jnp.float32)


def gpt_loss(p, tokens):
    log_p = jax.nn.log_softmax(gpt_forward(p, tokens[:, :-1]))
    return -jnp.mean(jnp.take_along_axis(log_p, tokens[:, 1:, None], -1))


def gpt(dtype):
    tokens = jnp.asarray(np.random.default_rng(5).integers(0, VOCABULARY, (2, LENGTH)), jnp.int32)
    return gpt_forward, (gpt_parameters(dtype), tokens)


def gpt_train(dtype):
    p = gpt_parameters(dtype)
    zeros = jax.tree.map(jnp.zeros_like, p)
    tokens = jnp.asarray(np.random.default_rng(6).integers(0, VOCABULARY, (2, LENGTH)), jnp.int32)
    return (lambda *a: adam(gpt_loss, *a)), (p, zeros, zeros, tokens)


# --- ResNet-50 ---------------------------------------------------------------------------------

STAGES = ((3, 4), (4, 8), (6, 16), (3, 32))
"""(blocks, width): ResNet-50's stages at a sixteenth of its width."""


def resnet_parameters(dtype):
    rng = np.random.default_rng(7)

    def unit(k, a, b, gain=1.0):
        return {
            "w": normal(rng, k, k, a, b, scale=(k * k * a) ** -0.5, dtype=dtype),
            "g": jnp.full(b, gain, dtype),
            "b": jnp.zeros(b, dtype),
        }

    p = {"stem": unit(7, 3, 4), "blocks": []}
    features = 4
    for count, width in STAGES:
        for number in range(count):
            block = {
                "a": unit(1, features, width),
                "b": unit(3, width, width),
                "c": unit(1, width, 4 * width, 0.05),
            }
            if number == 0:
                block["skip"] = unit(1, features, 4 * width)
            p["blocks"].append(block)
            features = 4 * width
    p["head"] = normal(rng, features, 10, scale=0.1, dtype=dtype)
    return p


def resnet_forward(p, x):
    def unit(x, u, stride=1):
        x = conv(x, u["w"], stride)
        x32 = x.astype(jnp.float32)
        mean = x32.mean((0, 1, 2))
        var = x32.var((0, 1, 2))
        return ((x32 - mean) * lax.rsqrt(var + 0.1)).astype(x.dtype) * u["g"] + u["b"]

    x = jax.nn.relu(unit(x, p["stem"], 2))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    blocks = iter(p["blocks"])
    for stage, (count, _) in enumerate(STAGES):
        for number in range(count):
            block = next(blocks)
            stride = 2 if number == 0 and stage else 1
            y = jax.nn.relu(unit(x, block["a"]))
            y = jax.nn.relu(unit(y, block["b"], stride))
            y = unit(y, block["c"])
            x = jax.nn.relu(y + (unit(x, block["skip"], stride) if "skip" in block else x))
    return x.mean((1, 2)) @ p["head"]


def resnet(dtype):
    return resnet_forward, (
        resnet_parameters(dtype),
        normal(np.random.default_rng(8), 4, 64, 64, 3, dtype=dtype),
    )


def resnet_gradient(dtype):
    forward, (p, x) = resnet(dtype)
    return jax.grad(lambda p, x: jnp.mean(forward(p, x).astype(jnp.float32) ** 2)), (p, x)


# --- Loops -------------------------------------------------------------------------------------


def rnn(dtype):
    rng = np.random.default_rng(9)
    w, u = (normal(rng, 16, 16, scale=0.2, dtype=dtype) for _ in range(2))

    def forward(w, u, h, xs):
        def step(h, x):
            h = jnp.tanh(h @ w + x @ u)
            return h, h

        return lax.scan(step, h, xs)

    return forward, (w, u, normal(rng, 4, 16, dtype=dtype), normal(rng, 20, 4, 16, dtype=dtype))


def rnn_gradient(dtype):
    forward, (w, u, h, xs) = rnn(dtype)
    return jax.grad(
        lambda w, u: jnp.sum(forward(w, u, h, xs)[0].astype(jnp.float32) ** 2), (0, 1)
    ), (w, u)


def ode(dtype):
    """Lotka-Volterra by Runge-Kutta of order 4, until t = 5."""

    def rate(y):
        a, b = y
        return jnp.stack([1.1 * a - 0.4 * a * b, 0.1 * a * b - 0.4 * b]).astype(y.dtype)

    def step(state):
        t, y = state
        h = jnp.asarray(0.05, dtype)
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        k3 = rate(y + h / 2 * k2)
        k4 = rate(y + h * k3)
        return t + 1, (y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)).astype(dtype)

    def solve(y):
        return lax.while_loop(lambda s: s[0] < 100, step, (jnp.int32(0), y))

    return solve, (jnp.asarray([10.0, 5.0], dtype),)


def k_means(dtype):
    rng = np.random.default_rng(10)

    def step(points, centres):
        distance = jnp.sum((points[:, None] - centres[None]) ** 2, -1)
        nearest = jnp.argmin(distance, 1)
        total = jnp.zeros_like(centres).at[nearest].add(points)
        count = jnp.zeros(len(centres), points.dtype).at[nearest].add(1)
        return total / jnp.maximum(count, 1)[:, None], nearest

    return step, (normal(rng, 60, 3, dtype=dtype), normal(rng, 5, 3, dtype=dtype))


MODELS: dict[str, tuple[Callable, float, float]] = {
    "mlp": (mlp, 1e-6, 1e-2),
    "mlp_train": (mlp_train, 1e-4, 2e-2),
    "cnn": (cnn, 1e-5, 2e-2),
    "gpt": (gpt, 1e-5, 3e-2),
    "gpt_train": (gpt_train, 1e-4, 5e-2),
    "resnet": (resnet, 1e-4, 5e-2),
    "resnet_gradient": (resnet_gradient, 1e-3, 3e-1),
    "rnn": (rnn, 1e-5, 3e-2),
    "rnn_gradient": (rnn_gradient, 1e-5, 5e-2),
    "ode": (ode, 1e-5, 1e-1),
    "k_means": (k_means, 1e-6, 2e-2),
}
"""name -> (maker of (function, arguments) for a dtype, relative error allowed in f32, in bf16).

The error is ||got - wanted|| / ||wanted||: of each result in f32, of all together in bf16. bf16
keeps 8 bits, XLA keeps more between the operations it fuses, and a chain of layers multiplies the
difference."""
