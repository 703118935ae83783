"""`get_compile_options` and client lookup, as `jax.lib.xla_bridge` had them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from haloc.errors import NotFoundError
from haloc.flags import FlagValue
from haloc.runtime.default_client import default_client
from haloc.xla_client import (
    Client,
    CompileOptions,
    Device,
    DeviceAssignment,
    make_interpreter_client,
)

__all__ = ["devices", "get_backend", "get_compile_options"]

_BUILD_OPTIONS = (
    "exec_time_optimization_effort",
    "memory_fitting_effort",
    "optimization_level",
    "memory_fitting_level",
)
"""Overrides that are fields of the build options, not flags."""


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Any = None,
    use_spmd_partitioning: bool = True,
    use_shardy_partitioner: bool = False,
    use_auto_spmd_partitioning: bool = False,
    auto_spmd_partitioning_mesh_shape: list[int] | None = None,
    auto_spmd_partitioning_mesh_ids: list[int] | None = None,
    env_options_overrides: Mapping[str, FlagValue] | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Client | None = None,
) -> CompileOptions:
    """The compile options with these values, the rest as derived from flags.

    device_assignment: ids or devices, [replica, partition]; one dimension will do for a single
    partition. ValueError when it does not fit num_replicas and num_partitions.
    """
    options = CompileOptions()
    options.num_replicas = num_replicas
    options.num_partitions = num_partitions
    options.profile_version = -1
    build = options.executable_build_options
    build.use_spmd_partitioning = use_spmd_partitioning
    build.use_shardy_partitioner = use_shardy_partitioner
    build.use_auto_spmd_partitioning = use_auto_spmd_partitioning
    build.fdo_profile = fdo_profile or b""
    build.debug_options.xla_detailed_logging = detailed_logging
    if use_auto_spmd_partitioning:
        build.auto_spmd_partitioning_mesh_shape = auto_spmd_partitioning_mesh_shape or []
        build.auto_spmd_partitioning_mesh_ids = auto_spmd_partitioning_mesh_ids or []
    overrides = dict(env_options_overrides or {})
    for name in _BUILD_OPTIONS:
        if name in overrides:
            setattr(build, name, overrides.pop(name))
    options.env_option_overrides = list(overrides.items())
    if device_assignment is not None:
        options.device_assignment = _assignment(device_assignment, num_replicas, num_partitions)
    return options


def _assignment(given: Any, num_replicas: int, num_partitions: int) -> DeviceAssignment:
    listed = np.asarray(given)
    ids = np.vectorize(lambda d: d.id if isinstance(d, Device) else d, otypes=[int])(listed)
    if num_partitions == 1 and ids.ndim == 1:
        ids = ids[:, None]
    if ids.ndim != 2 or ids.shape[0] != num_replicas:
        raise ValueError(f"device_assignment does not match num_replicas: {ids} vs {num_replicas}.")
    if ids.shape[1] != num_partitions:
        raise ValueError(
            f"device_assignment does not match num_partitions: {ids} vs {num_partitions}."
        )
    return DeviceAssignment.create(ids)


_FACTORIES: dict[str, Callable[[], Client]] = {
    "cpu": default_client,
    "interpreter": make_interpreter_client,
}
_clients: dict[str, Client] = {}
_lock = threading.Lock()


def get_backend(platform: str | None = None) -> Client:
    """The process's client for "cpu" (the default) or "interpreter"; made once.

    NotFoundError for another platform.
    """
    name = platform or "cpu"
    factory = _FACTORIES.get(name)
    if factory is None:
        known = ", ".join(sorted(_FACTORIES))
        raise NotFoundError(f"no backend named {name!r}; there are: {known}")
    with _lock:
        if name not in _clients:
            _clients[name] = factory()
        return _clients[name]


def devices(platform: str | None = None) -> Sequence[Device]:
    """The devices of `get_backend(platform)`."""
    return get_backend(platform).devices()
