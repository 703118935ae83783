"""Fourier transforms and random numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.fft
from bench.cases.case import BF16, Family, M, Maker, complexes, normal

FAMILY = Family("FFT and random")
add = FAMILY.add


def transform(name: str, make: Maker, function: str, **options: Any) -> None:
    """A function that jnp.fft, torch.fft and scipy.fft all have."""
    add(
        name,
        getattr(jnp.fft, function),
        make,
        torch=lambda t, x: getattr(t.fft, function)(x),
        numpy=lambda x: getattr(scipy.fft, function)(x, workers=2),
        floor=False,
        **options,
    )


transform("fft 1M", complexes(M), "fft")
transform("fft of rows 1024²", complexes(1024, 1024), "fft")
transform("fft of two dimensions 1024²", complexes(1024, 1024), "fft2")
transform("rfft of rows 4096x1024", normal(4096, 1024), "rfft")
transform("irfft of rows 4096x513", complexes(4096, 513), "irfft", error=1e-4)
transform("fft of rows 64x1000", complexes(64, 1000), "fft")
transform("fft of rows 16x10007 (a prime)", complexes(16, 10007), "fft", error=1e-4)


def key(rng: np.random.Generator) -> jax.Array:
    return jax.random.key_data(jax.random.key(int(rng.integers(1 << 30))))


def draw(name: str, function: Any, error: float = 1e-5) -> None:
    """No peer makes the same numbers."""
    add(name, lambda k: function(jax.random.wrap_key_data(k)), key, floor=False, error=error)


draw("threefry bits 1M", lambda k: jax.random.bits(k, (M,)), 0)
draw("threefry bits 16", lambda k: jax.random.bits(k, (16,)), 0)
draw("uniform bf16 4M", lambda k: jax.random.uniform(k, (4 * M,), BF16), 0)
draw("normal 1M", lambda k: jax.random.normal(k, (M,)))
draw("categorical 1024 of 4096", lambda k: jax.random.categorical(k, jnp.zeros((1024, 4096))), 0)
draw("permutation 100K", lambda k: jax.random.permutation(k, 100_000), 0)
add(
    "philox bits 4M",
    lambda k: jax.lax.rng_bit_generator(k, (4 * M,), algorithm=jax.lax.RandomAlgorithm.RNG_PHILOX),
    lambda rng: jnp.asarray(rng.integers(1, 1 << 31, 4).astype(np.uint32)),
    floor=False,
    error=0,
)
