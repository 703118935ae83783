"""Shared set-up: 64-bit types in jax, which the programs of the tests name explicitly; no compile
cache on disk, so that every test compiles what it tests."""

import os

os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("HALOC_CACHE_BYTES", "0")
