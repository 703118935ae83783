"""The table of functions: native where there is native code, Python else, and never null."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import haloc.pjrt.plugin.async_transfers
import haloc.pjrt.plugin.buffers
import haloc.pjrt.plugin.compilation
import haloc.pjrt.plugin.execute
import haloc.pjrt.plugin.topology  # noqa: F401  (declares entries, as those above do)
from haloc.pjrt.abi import API_VERSION, ARGS, Api
from haloc.pjrt.native.hooks import HOOK_NUMBERS
from haloc.pjrt.native.library import library
from haloc.pjrt.plugin.client import plugin_attributes
from haloc.pjrt.plugin.entry import callback
from haloc.pjrt.plugin.extensions import extension_chain

_NOTHING_TO_DO = (
    "Plugin_Initialize",
    "Client_Destroy",
    "TopologyDescription_Destroy",
    "AsyncTrackingEvent_Destroy",
)
"""Clients and topologies live as long as the process."""

_DESTROYED_LATER = ("Executable_Destroy", "LoadedExecutable_Destroy")


@cache
def pjrt_api() -> Api:
    """The plugin's PJRT_Api, the same object at every call. It lives as long as the process."""
    native = library()
    attributes = plugin_attributes()
    native.plugin.set("attributes", attributes)
    native.plugin.set("num_attributes", len(attributes))
    pythonapi = ctypes.pythonapi
    lock = (pythonapi.PyGILState_Check, pythonapi.PyGILState_Ensure, pythonapi.PyGILState_Release)
    native.call("set_lock_functions", *(ctypes.cast(f, ctypes.c_void_p).value or 0 for f in lock))
    kept: list[Any] = []
    api = Api(struct_size=ctypes.sizeof(Api))
    api.version.struct_size = ctypes.sizeof(type(api.version))
    api.version.major_version, api.version.minor_version = API_VERSION
    for number, function in enumerate(ARGS):
        address = _native_address(function)
        if not address or function in HOOK_NUMBERS:
            made = callback(function)
            kept.append(made)
            pointer = ctypes.cast(made, ctypes.c_void_p).value
            if function in HOOK_NUMBERS:
                native.call("set_hook", HOOK_NUMBERS[function], pointer)
            else:
                address = pointer
        api.functions[number] = address
    api.extension_start = extension_chain(kept)
    api.kept = kept
    # Arrays die after everything else when the interpreter ends: what they call must be there.
    for immortal in (api, kept, native, attributes):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(immortal))
    return api


def _native_address(function: str) -> int:
    if function in _NOTHING_TO_DO:
        return library().address("nothing")
    if function in _DESTROYED_LATER:
        return library().address("destroy")
    return library().address(function)
