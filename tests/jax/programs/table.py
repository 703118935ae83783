"""All programs, by name."""

from __future__ import annotations

import jax.numpy as jnp
from jax import random

PROGRAMS = {}
"""Name -> function of nothing."""


def program(function):
    assert function.__name__ not in PROGRAMS, function.__name__
    PROGRAMS[function.__name__] = function
    return function


def normal(*dims, seed=0, dtype=jnp.float32):
    return random.normal(random.key(seed), dims, dtype)
