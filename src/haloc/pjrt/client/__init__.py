"""A client of any PJRT plugin, through the C API, with the methods of haloc's own runtime."""

from haloc.pjrt.client.array import CApiArray
from haloc.pjrt.client.client import CApiClient
from haloc.pjrt.client.device import CApiDevice, CApiMemory
from haloc.pjrt.client.event import Event
from haloc.pjrt.client.executable import CApiExecutable
from haloc.pjrt.client.gpu import generate_pjrt_gpu_plugin_options, make_gpu_client
from haloc.pjrt.client.loaded_executable import CApiLoadedExecutable
from haloc.pjrt.client.plugin import Plugin
from haloc.pjrt.client.registry import (
    get_topology_for_devices,
    initialize_pjrt_plugin,
    load_pjrt_plugin_dynamically,
    load_pjrt_plugin_with_c_api,
    make_c_api_client,
    make_c_api_device_topology,
    make_tfrt_tpu_c_api_device_topology,
    pjrt_plugin_initialized,
    pjrt_plugin_loaded,
)
from haloc.pjrt.client.topology import CApiTopology

__all__ = [
    "CApiArray",
    "CApiClient",
    "CApiDevice",
    "CApiExecutable",
    "CApiLoadedExecutable",
    "CApiMemory",
    "CApiTopology",
    "Event",
    "Plugin",
    "generate_pjrt_gpu_plugin_options",
    "get_topology_for_devices",
    "initialize_pjrt_plugin",
    "load_pjrt_plugin_dynamically",
    "load_pjrt_plugin_with_c_api",
    "make_c_api_client",
    "make_c_api_device_topology",
    "make_gpu_client",
    "make_tfrt_tpu_c_api_device_topology",
    "pjrt_plugin_initialized",
    "pjrt_plugin_loaded",
]
