"""The coordination service and its client by jaxlib's names. haloc runs in one process so far:
whatever is called here raises UnimplementedError, naming itself and what is missing."""

from __future__ import annotations

from typing import Any, NoReturn

from haloc.errors import UnimplementedError


def _refuse(name: str, missing: str = "a coordination service and client") -> NoReturn:
    raise UnimplementedError(f"{name}: haloc runs in one process so far; it lacks {missing}")


class DistributedRuntimeService:
    """Where processes meet: a key-value store and barriers. None can be made so far."""

    def __init__(self) -> None:
        _refuse("DistributedRuntimeService")

    def shutdown(self) -> None:
        _refuse("DistributedRuntimeService.shutdown")


class DistributedRuntimeClient:
    """A process's side of a `DistributedRuntimeService`. None can be made so far."""

    def __init__(self) -> None:
        _refuse("DistributedRuntimeClient")

    def connect(self) -> None:
        _refuse("DistributedRuntimeClient.connect")

    def shutdown(self) -> None:
        _refuse("DistributedRuntimeClient.shutdown")

    def blocking_key_value_get(self, key: str, timeout_in_ms: int) -> str:
        _refuse("DistributedRuntimeClient.blocking_key_value_get")

    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None:
        _refuse("DistributedRuntimeClient.key_value_set")

    def wait_at_barrier(
        self, barrier_id: str, timeout_in_ms: int, process_ids: list[int] | None = None
    ) -> None:
        _refuse("DistributedRuntimeClient.wait_at_barrier")


def get_distributed_runtime_service(
    address: str,
    num_nodes: int,
    heartbeat_timeout: int | None = None,
    cluster_register_timeout: int | None = None,
    shutdown_timeout: int | None = None,
) -> DistributedRuntimeService:
    _refuse("get_distributed_runtime_service")


def get_distributed_runtime_client(
    address: str,
    node_id: int,
    rpc_timeout: int | None = None,
    init_timeout: int | None = None,
    shutdown_timeout: int | None = None,
    heartbeat_timeout: int | None = None,
    missed_heartbeat_callback: Any | None = None,
    shutdown_on_destruction: bool | None = None,
    use_compression: bool | None = None,
    recoverable: bool | None = None,
) -> DistributedRuntimeClient:
    _refuse("get_distributed_runtime_client")


def make_gloo_tcp_collectives(
    distributed_client: DistributedRuntimeClient,
    hostname: str | None = None,
    interface: str | None = None,
) -> Any:
    _refuse("make_gloo_tcp_collectives", "collectives between processes")


def make_mpi_collectives() -> Any:
    _refuse("make_mpi_collectives", "collectives between processes")
