"""The memory behind each handle: eight-byte slots, named as the functions that read them name them.

What a getter returns is a slot of its handle: `PJRT_Device_DefaultMemory` reads the slot `memory`
of a device. So the getters say what the slots are, and one list of names is all there is to write.
"""

from __future__ import annotations

import ctypes
from typing import Any

from haloc.pjrt.abi import ARGS
from haloc.pjrt.abi.memory import address_of_bytes

GETTERS = [
    "Plugin_Attributes",
    "Client_PlatformName",
    "Client_ProcessIndex",
    "Client_PlatformVersion",
    "Client_Devices",
    "Client_AddressableDevices",
    "Client_AddressableMemories",
    "Client_TopologyDescription",
    "DeviceDescription_Id",
    "DeviceDescription_ProcessIndex",
    "DeviceDescription_Attributes",
    "DeviceDescription_Kind",
    "DeviceDescription_DebugString",
    "DeviceDescription_ToString",
    "Device_GetDescription",
    "Device_IsAddressable",
    "Device_LocalHardwareId",
    "Device_AddressableMemories",
    "Device_DefaultMemory",
    "Device_GetAttributes",
    "Memory_Id",
    "Memory_Kind",
    "Memory_Kind_Id",
    "Memory_DebugString",
    "Memory_ToString",
    "Memory_AddressableByDevices",
    "TopologyDescription_PlatformName",
    "TopologyDescription_PlatformVersion",
    "TopologyDescription_GetDeviceDescriptions",
    "TopologyDescription_Attributes",
    "TopologyDescription_Fingerprint",
    "TopologyDescription_Serialize",
    "Executable_Name",
    "Executable_NumReplicas",
    "Executable_NumPartitions",
    "Executable_NumOutputs",
    "Executable_SizeOfGeneratedCodeInBytes",
    "Executable_OutputMemoryKinds",
    "Executable_OutputElementTypes",
    "Executable_OutputDimensions",
    "Executable_Fingerprint",
    "Executable_GetCostAnalysis",
    "Executable_GetCompileOptions",
    "LoadedExecutable_GetExecutable",
    "LoadedExecutable_AddressableDevices",
    "LoadedExecutable_IsDeleted",
    "LoadedExecutable_Fingerprint",
    "LoadedExecutable_GetDeviceAssignment",
    "LoadedExecutable_AddressableDeviceLogicalIds",
    "Buffer_ElementType",
    "Buffer_Dimensions",
    "Buffer_DynamicDimensionIndices",
    "Buffer_OnDeviceSizeInBytes",
    "Buffer_Device",
    "Buffer_Memory",
    "Buffer_IsDeleted",
    "Buffer_IsOnCpu",
    "Buffer_UnsafePointer",
]

_OWN = {
    "Plugin": (),
    "Client": (),
    # functions: PJRT_Memory begins with a table of functions since version 0.105.
    "Memory": ("functions",),
    # Of the optimised program.
    "Executable": ("format", "format_size"),
    "AsyncHostToDeviceTransferManager": ("unused",),
    # plan: the struct that `execute` reads, or null when Python executes.
    "LoadedExecutable": ("plan",),
    # storage: the counted memory. class_bytes: what the heap gave for the buffer itself. event:
    # when it has its value.
    "Buffer": ("data", "nbytes", "storage", "class_bytes", "event"),
}
"""Slots that no getter reads, or that none of these does."""


def kind_of(function: str) -> str:
    """Whose function it is: "Buffer" of "Buffer_ElementType"."""
    return function.split("_", maxsplit=1)[0]


def _slots() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {kind: list(own) for kind, own in _OWN.items()}
    for function in GETTERS:
        slots = found.setdefault(kind_of(function), [])
        slots.extend(f for f in outputs_of(function) if f not in slots)
    return found


def outputs_of(function: str) -> list[str]:
    """The fields that a getter sets: all but the base and the handle it is asked of."""
    fields = [name for name, *_ in ARGS[function]._fields_[2:]]
    return fields if function.startswith("Plugin_") else fields[1:]


SLOTS: dict[str, list[str]] = _slots()
"""Kind of handle -> the names of its slots, in order."""


def offset(kind: str, slot: str) -> int:
    """Bytes from the handle's address to a slot."""
    return 8 * SLOTS[kind].index(slot)


class Handle:
    """A handle made by Python: an object of C memory that lives as long as this one does.

    Slots are set by attribute: numbers, addresses, bytes (as their address), ctypes arrays and
    other handles, all of which are kept alive with it.
    """

    def __init__(self, kind: str, **slots: Any):
        self.kind = kind
        self._memory = (ctypes.c_uint64 * len(SLOTS[kind]))()
        self._kept: dict[str, Any] = {}
        self.address = ctypes.addressof(self._memory)
        for name, value in slots.items():
            self.set(name, value)

    def set(self, name: str, value: Any) -> None:
        self._memory[SLOTS[self.kind].index(name)] = address_of(value) & (2**64 - 1)
        self._kept[name] = value

    def get(self, name: str) -> int:
        return self._memory[SLOTS[self.kind].index(name)]

    def set_text(self, name: str, text: bytes) -> None:
        """A slot of bytes and the one of their number, which the API calls `<name>_size`."""
        self.set(name, text)
        self.set(f"{name}_size", len(text))

    def set_list(self, name: str, count: str, values: list[Any]) -> None:
        """A slot of an array of pointers and the one of its length."""
        array = (ctypes.c_void_p * max(1, len(values)))(*map(address_of, values))
        self.set(name, (array, values))
        self.set(count, len(values))


def address_of(value: Any) -> int:
    """What C sees of a Python value: a number is itself, all else its memory."""
    if isinstance(value, int):
        return value
    if isinstance(value, Handle):
        return value.address
    if isinstance(value, tuple):
        return address_of(value[0])
    if isinstance(value, bytes):
        return address_of_bytes(value)
    return ctypes.addressof(value)
