"""JAX functions as haloc programs, without haloc as JAX's platform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from haloc.frontend.from_jax import lower
from haloc.runtime.default_client import default_client
from haloc.runtime.loaded_executable import LoadedExecutable


def compile(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> LoadedExecutable:
    """The program of a JAX function for arguments of these shapes and dtypes.

    Each leaf of the arguments is an argument of `execute`, in order; the results are the leaves of
    the function's result. On the process's default client.
    """
    client = default_client()
    module, _ = lower(fun, args, kwargs)
    return client.compile_and_load(module, client.devices()[:1])
