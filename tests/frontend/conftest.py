"""Tracing is tested with 32-bit types, JAX's default."""

import jax
import pytest

from haloc.frontend import dtypes


@pytest.fixture(autouse=True)
def narrow_types(monkeypatch):
    monkeypatch.setenv("JAX_ENABLE_X64", "0")
    monkeypatch.setenv("HALOC_ENABLE_X64", "0")
    dtypes.x64_enabled.cache_clear()
    with jax.enable_x64(False):
        yield
    monkeypatch.undo()
    dtypes.x64_enabled.cache_clear()
