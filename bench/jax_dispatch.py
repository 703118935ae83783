"""JAX on haloc beside JAX on its own CPU client: what a call costs, and three whole programs.

    python bench/jax_dispatch.py [--rounds N]

Both are platforms of one process and take turns; times are the best of all rounds. Programs are
compiled before the clock starts.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src")]
os.environ["JAX_PLATFORMS"] = "haloc,cpu"

import jax  # noqa: E402 (the path and the platforms come first)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental.ode import odeint  # noqa: E402

import haloc.jax  # noqa: E402

haloc.jax.install()
PLATFORMS = ("haloc", "cpu")
Case = tuple[str, int, Callable[[], object]]
"""Name, calls between two readings of the clock, and what is called."""


def calls() -> list[Case]:
    """Cases on JAX's default device: arrays and programs are made there."""
    x, y = jnp.arange(8.0), jnp.ones(8)
    host = np.ones(8, np.float32)
    many = [x + k for k in range(20)]
    add = jax.jit(jnp.add)
    twenty = jax.jit(lambda *arrays: [a + 1 for a in arrays])
    return [
        ("jit(x + y), f32[8]", 2000, lambda: add(x, y)),
        ("the same, block_until_ready", 2000, lambda: add(x, y).block_until_ready()),
        ("the same, np.asarray", 1000, lambda: np.asarray(add(x, y))),
        ("20 arrays in, 20 out", 400, lambda: twenty(*many)),
        ("device_put of f32[8]", 400, lambda: jax.device_put(host)),
        ("jnp.asarray of f32[8]", 400, lambda: jnp.asarray(host)),
    ]


def mlp(parameters, x):
    *hidden, (w, b) = parameters
    for u, c in hidden:
        x = jax.nn.relu(x @ u + c)
    return x @ w + b


def programs() -> list[Case]:
    """A training step, inference and an ODE."""
    random = np.random.default_rng(0)

    def draw(*dims):
        return jnp.asarray(random.standard_normal(dims).astype(np.float32) / 16)

    sizes = (256, 512, 512, 10)
    parameters = [(draw(m, n), jnp.zeros(n)) for m, n in itertools.pairwise(sizes)]
    x, y = draw(128, 256), draw(128, 10)

    def loss(parameters, x, y):
        return ((mlp(parameters, x) - y) ** 2).mean()

    @jax.jit
    def step(parameters, x, y):
        gradients = jax.grad(loss)(parameters, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)

    infer, one = jax.jit(mlp), x[:1]

    @jax.jit
    def orbit(start):
        def motion(state, _):
            position, speed = state[:2], state[2:]
            return jnp.concatenate([speed, -position / jnp.linalg.norm(position) ** 3])

        return odeint(motion, start, jnp.linspace(0.0, 10.0, 50))

    start = jnp.array([1.0, 0.0, 0.0, 0.8])
    return [
        ("MLP training step, batch 128", 5, lambda: jax.block_until_ready(step(parameters, x, y))),
        ("MLP inference, batch 1", 50, lambda: infer(parameters, one).block_until_ready()),
        ("ODE, two bodies, 50 points", 5, lambda: orbit(start).block_until_ready()),
    ]


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """{case: {platform: microseconds a call}}."""
    cases: dict[str, list[Case]] = {}
    for platform in PLATFORMS:
        with jax.default_device(jax.devices(platform)[0]):
            cases[platform] = [*calls(), *programs()]
            for _, _, function in cases[platform]:
                jax.block_until_ready(function())
    best: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for platform in PLATFORMS:
            with jax.default_device(jax.devices(platform)[0]):
                for name, count, function in cases[platform]:
                    known = best.setdefault(name, {}).get(platform, float("inf"))
                    best[name][platform] = min(known, seconds(function, count) / count * 1e6)
    return best


def seconds(function: Callable[[], object], count: int) -> float:
    result = None
    started = time.perf_counter()
    for _ in range(count):
        result = function()
    ended = time.perf_counter()
    jax.block_until_ready(result)
    return ended - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    best = measure(parser.parse_args().rounds)
    print(f"jax {jax.__version__}, microseconds a call, best of all rounds\n")
    print("| | haloc | jaxlib | ratio |\n|---|---:|---:|---:|")
    for name, us in best.items():
        mine, theirs = us["haloc"], us["cpu"]
        print(f"| {name} | {mine:.1f} | {theirs:.1f} | {theirs / mine:.2f} |")


if __name__ == "__main__":
    main()
