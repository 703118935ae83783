"""A client of an installed GPU plugin, and the options that environment variables ask for."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

from haloc.errors import InvalidArgumentError, NotFoundError
from haloc.pjrt.client.client import CApiClient
from haloc.pjrt.client.registry import (
    load_pjrt_plugin_dynamically,
    make_c_api_client,
    pjrt_plugin_loaded,
)

_ALLOCATORS = ("default", "platform", "bfc", "cuda_async", "vmm")
_MIB = 1 << 20

_PACKAGES = {
    "cuda": ("xla_cuda_plugin.so", ("xla_cuda13", "xla_cuda12"), "jax-cuda13-pjrt"),
    "rocm": ("xla_rocm_plugin.so", ("xla_rocm7", "xla_rocm60"), "jax-rocm7-pjrt"),
}
"""Platform -> the plugin file, the packages in `jax_plugins` that have it, what to install."""


def generate_pjrt_gpu_plugin_options() -> dict[str, str | bool | int | float]:
    """Options of the GPU plugin, from the environment.

    XLA_PYTHON_CLIENT_ALLOCATOR: default, platform, bfc, cuda_async or
    vmm. XLA_CLIENT_MEM_FRACTION (or,
    deprecated, XLA_PYTHON_CLIENT_MEM_FRACTION): the share of memory to use.
    XLA_PYTHON_CLIENT_PREALLOCATE: false, False or 0 not to take it at once.
    XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB: MiB for collectives.
    XLA_PYTHON_CLIENT_ABORT_COLLECTIVES_ON_FAILURE, XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT: 0 or 1.
    ValueError for an unknown allocator, for both fractions, for what is no number.
    """
    allocator = os.getenv("XLA_PYTHON_CLIENT_ALLOCATOR", "default").lower()
    if allocator not in _ALLOCATORS:
        raise ValueError(
            'XLA_PYTHON_CLIENT_ALLOCATOR env var must be "default", "platform", "bfc", '
            f'"cuda_async", or "vmm", got "{allocator}"'
        )
    options: dict[str, str | bool | int | float] = {
        "platform_name": "cuda",
        "allocator": allocator,
        "abort_collectives_on_failure": _is_set("XLA_PYTHON_CLIENT_ABORT_COLLECTIVES_ON_FAILURE"),
        "use_tfrt_gpu_client": _is_set("XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT"),
    }
    fraction = os.getenv("XLA_CLIENT_MEM_FRACTION", "")
    deprecated = os.getenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "")
    if fraction and deprecated:
        raise ValueError(
            "XLA_CLIENT_MEM_FRACTION is specified together with XLA_PYTHON_CLIENT_MEM_FRACTION. "
            "Remove the latter one, it is deprecated."
        )
    if fraction or deprecated:
        options["memory_fraction"] = float(fraction or deprecated)
    preallocate = os.getenv("XLA_PYTHON_CLIENT_PREALLOCATE", "")
    if preallocate:
        options["preallocate"] = preallocate not in ("false", "False", "0")
    collective = os.getenv("XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB", "")
    if collective:
        options["collective_memory_size"] = int(collective) * _MIB
    return options


def _is_set(variable: str) -> bool:
    return bool(int(os.getenv(variable, "0")))


def make_gpu_client(
    distributed_client: Any = None,
    node_id: int = 0,
    num_nodes: int = 1,
    platform_name: str | None = None,
    allowed_devices: set[int] | None = None,
    mock: bool | None = None,
    mock_gpu_topology: str | None = None,
) -> CApiClient:
    """A client of the GPU plugin that is installed: XLA's own for CUDA, from PyPI.

    node_id, num_nodes, distributed_client: of a program of several processes. platform_name: "cuda"
    or "rocm"; None is "cuda". allowed_devices: the ids of the devices to use; default all. Options
    also come from the environment, see `generate_pjrt_gpu_plugin_options`. Raises NotFoundError
    saying what to install when there is no plugin, the plugin's FailedPreconditionError when there
    is no GPU, InvalidArgumentError for a platform other than cuda and rocm.
    """
    platform_name = platform_name or "cuda"
    if platform_name not in _PACKAGES:
        raise InvalidArgumentError(
            f"platform_name={platform_name!r}: GPU plugins are known for "
            f"{' and '.join(sorted(_PACKAGES))}"
        )
    if not pjrt_plugin_loaded(platform_name):
        load_pjrt_plugin_dynamically(platform_name, find_gpu_plugin(platform_name))
    options: dict[str, Any] = generate_pjrt_gpu_plugin_options()
    options |= {"platform_name": platform_name, "node_id": node_id, "num_nodes": num_nodes}
    if allowed_devices is not None:
        options["visible_devices"] = sorted(allowed_devices)
    if mock is not None:
        options["enable_mock_nccl"] = mock
    if mock_gpu_topology is not None:
        options["mock_gpu_topology"] = mock_gpu_topology
    return make_c_api_client(platform_name, options, distributed_client)


def find_gpu_plugin(platform_name: str) -> str:
    """The path of an installed plugin file; NotFoundError saying what to install."""
    file, packages, to_install = _PACKAGES[platform_name]
    for package in packages:
        for folder in _folders_of("jax_plugins"):
            path = Path(folder) / package / file
            if path.exists():
                return str(path)
    raise NotFoundError(
        f"no PJRT plugin for {platform_name} is installed: pip install {to_install}"
    )


def _folders_of(package: str) -> list[str]:
    """Of a namespace package, without importing it."""
    spec = importlib.util.find_spec(package)
    return list(spec.submodule_search_locations or ()) if spec is not None else []
