"""Clients of every backend that this checkout has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from haloc.xla_client import (
    ArrayImpl,
    Client,
    LoadedExecutable,
    make_cpu_client,
    make_interpreter_client,
)

MAKERS = {"interpreter": make_interpreter_client, "cpu": make_cpu_client}


@pytest.fixture(params=sorted(MAKERS))
def client(request: pytest.FixtureRequest) -> Client:
    return MAKERS[request.param]()


@pytest.fixture
def load(client: Client) -> Callable[[str], LoadedExecutable]:
    """load(text): compiled for the client's first device."""
    return lambda text: client.compile_and_load(text, client.devices()[:1])


@pytest.fixture
def put(client: Client) -> Callable[..., ArrayImpl]:
    """put(value): a copy of it on the client's first device."""
    return lambda value: client.buffer_from_pyval(np.asarray(value), force_copy=True)
