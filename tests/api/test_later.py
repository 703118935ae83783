"""Names whose work is not done raise an error that names them and what is missing."""

from __future__ import annotations

import pytest

from haloc import xla_client
from haloc.errors import UnimplementedError

ADDRESS = "localhost:1234"

CALLS = {
    "get_distributed_runtime_service": (ADDRESS, 2),
    "get_distributed_runtime_client": (ADDRESS, 0),
    "DistributedRuntimeService": (),
    "DistributedRuntimeClient": (),
    "make_gloo_tcp_collectives": (None,),
    "make_mpi_collectives": (),
}

METHODS = {
    "DistributedRuntimeService.shutdown": (),
    "DistributedRuntimeClient.connect": (),
    "DistributedRuntimeClient.shutdown": (),
    "DistributedRuntimeClient.blocking_key_value_get": ("key", 10),
    "DistributedRuntimeClient.key_value_set": ("key", "value"),
    "DistributedRuntimeClient.wait_at_barrier": ("barrier", 10),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions(name: str) -> None:
    with pytest.raises(UnimplementedError, match=f"{name}: .* one process so far; it lacks "):
        getattr(xla_client, name)(*CALLS[name])


@pytest.mark.parametrize("name", METHODS)
def test_methods(name: str) -> None:
    owner, _, method = name.partition(".")
    made = object.__new__(getattr(xla_client, owner))
    with pytest.raises(UnimplementedError, match=f"{name}: "):
        getattr(made, method)(*METHODS[name])
