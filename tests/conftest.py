"""Shared set-up: 64-bit types in jax, which the programs of the tests name explicitly."""

import os

os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
