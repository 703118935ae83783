"""Plugins by name: loading them, and what is made of them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import Any

from haloc.errors import (
    FailedPreconditionError,
    HloError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from haloc.pjrt.abi.capsule import address_in, capsule_at
from haloc.pjrt.abi.named_values import named_values
from haloc.pjrt.client.client import CApiClient
from haloc.pjrt.client.plugin import Plugin
from haloc.pjrt.client.topology import CApiTopology
from haloc.runtime.topology import DeviceTopology

_PLUGINS: dict[str, Plugin] = {}


def load_pjrt_plugin_dynamically(plugin_name: str, library_path: str | os.PathLike[str]) -> Any:
    """Load a plugin file under a name; the PyCapsule `pjrt_c_api` of its table.

    Raises HloError (INTERNAL) for what is no shared library, NotFoundError for one without
    GetPjrtApi, HloError (ALREADY_EXISTS) for a name that is taken.
    """
    path = os.fspath(library_path)
    _check_name(plugin_name)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise HloError(f"Failed to open {path}: {error}", "INTERNAL") from None
    try:
        get = library.GetPjrtApi
    except AttributeError:
        raise NotFoundError(f"GetPjrtApi not found in {path}") from None
    get.restype = ctypes.c_void_p
    address = get()
    if not address:
        raise HloError(f"GetPjrtApi of {path} returned null", "INTERNAL")
    return capsule_at(_add(Plugin(plugin_name, address, library)).address)


def load_pjrt_plugin_with_c_api(plugin_name: str, c_api: Any) -> None:
    """Register a plugin by the PyCapsule `pjrt_c_api` of its table.

    ValueError for None and other capsules, TypeError for what is no capsule, HloError
    (ALREADY_EXISTS) for a name that is taken.
    """
    _check_name(plugin_name)
    if c_api is not None:
        _check_capsule(c_api)
    address = address_in(c_api)
    if not address:
        raise ValueError("c_api argument to load_pjrt_plugin is not a pjrt_c_api capsule.")
    _add(Plugin(plugin_name, address, c_api))


def pjrt_plugin_loaded(plugin_name: str) -> bool:
    _check_name(plugin_name)
    return plugin_name.lower() in _PLUGINS


def pjrt_plugin_initialized(plugin_name: str) -> bool:
    """FailedPreconditionError for a name that is not loaded."""
    return _plugin(plugin_name).is_initialized


def initialize_pjrt_plugin(plugin_name: str) -> None:
    """Call the plugin's own initialisation, which may be done once. FailedPreconditionError for a
    name that is not loaded, InvalidArgumentError when it is initialised."""
    plugin = _plugin(plugin_name)
    if plugin.is_initialized:
        raise InvalidArgumentError(
            f"InitializePjrtPlugin requested to run on already initialized plugin {plugin_name}"
        )
    plugin.initialize()


def make_c_api_client(
    plugin_name: str,
    options: Mapping[str, Any] | None = None,
    distributed_client: Any = None,
    transfer_server_factory: Any = None,
    force_dcn_cross_host_transfers: bool = False,
    sort_devices_by_process_index: bool = True,
) -> CApiClient:
    """A client of the plugin loaded under this name, which is initialised if it was not.

    options: see `CApiClient`. Raises FailedPreconditionError for a name that is not loaded, the
    plugin's error when it has no devices here, TypeError for options of other types.
    """
    if transfer_server_factory is not None:
        raise UnimplementedError("make_c_api_client(transfer_server_factory=...)")
    if force_dcn_cross_host_transfers:
        raise UnimplementedError("make_c_api_client(force_dcn_cross_host_transfers=True)")
    named_values(options or {})  # A wrong type is found before anything is started.
    plugin = _plugin(plugin_name)
    if not plugin.is_initialized:
        plugin.initialize()
    return CApiClient(plugin, options, distributed_client, sort_devices_by_process_index)


def make_c_api_device_topology(c_api: Any, topology_name: str = "", **options: Any) -> CApiTopology:
    """A topology by the name and the options that the plugin has for it.

    c_api: the PyCapsule that `load_pjrt_plugin_dynamically` gives. TypeError for what is no
    capsule, ValueError for another one, the plugin's error for a topology it does not know.
    """
    _check_capsule(c_api)
    address = address_in(c_api)
    if not address:
        raise ValueError("Argument to get_c_api_topology was not a pjrt_c_api capsule.")
    known = (p for p in _PLUGINS.values() if p.address == address)
    plugin = next(known, None) or Plugin("unnamed", address, c_api)
    return CApiTopology.create(plugin, topology_name, options)


def make_tfrt_tpu_c_api_device_topology(
    topology_name: str | None = None, **options: Any
) -> CApiTopology:
    """A TPU topology ("v5e:2x2") of the plugin loaded under the name tpu; without a name, that of
    the machine."""
    return CApiTopology.create(_plugin("tpu"), topology_name or "", options)


def get_topology_for_devices(devices: Sequence[Any]) -> CApiTopology | DeviceTopology:
    """The topology that the devices' client has. ValueError for no devices, and for devices of
    several clients."""
    listed = list(devices)
    if not listed:
        raise ValueError("get_topology_for_devices requires >= 1 devices.")
    client = listed[0].client
    if any(d.client is not client for d in listed):
        raise ValueError("devices passed to get_topology_for_devices come from different clients.")
    return client.topology() if isinstance(client, CApiClient) else DeviceTopology(client)


def _add(plugin: Plugin) -> Plugin:
    key = plugin.name.lower()
    if key in _PLUGINS:
        raise HloError(f"PJRT_Api already exists for device type {key}", "ALREADY_EXISTS")
    major, minor = plugin.api_version
    if major != 0:
        raise InvalidArgumentError(
            f"plugin {plugin.name} speaks PJRT API {major}.{minor}; haloc speaks versions 0.x"
        )
    _PLUGINS[key] = plugin
    return plugin


def _plugin(name: str) -> Plugin:
    _check_name(name)
    plugin = _PLUGINS.get(name.lower())
    if plugin is None:
        raise FailedPreconditionError("PJRT_Api is not initialized.")
    return plugin


def _check_capsule(c_api: Any) -> None:
    if type(c_api).__name__ != "PyCapsule":
        raise TypeError(f"c_api is a {type(c_api).__name__}, not a PyCapsule")


def _check_name(name: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"plugin_name is a {type(name).__name__}, not a str")
