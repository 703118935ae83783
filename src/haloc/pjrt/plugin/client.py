"""The client, its devices, memories and topology, and the handles that C knows them by."""

from __future__ import annotations

import ctypes
import hashlib
from typing import Any

from haloc.codegen.target import host_target
from haloc.errors import InvalidArgumentError
from haloc.pjrt.abi import STRUCT
from haloc.pjrt.abi.named_values import named_values, read_named_values
from haloc.pjrt.native.handles import Handle
from haloc.pjrt.native.library import library
from haloc.pjrt.plugin.entry import entry
from haloc.runtime.backend import CpuBackend
from haloc.runtime.client import Client
from haloc.runtime.device import Device, Memory
from haloc.version import VERSION

STABLEHLO_CURRENT = (1, 17, 0)
STABLEHLO_MINIMUM = (0, 9, 0)


class PluginClient:
    """One PJRT_Client: a client of haloc's runtime and the handles of its parts."""

    def __init__(self, platform: str, num_devices: int):
        self.platform = platform
        self.runtime = Client(CpuBackend(), num_devices)
        self.devices = [Handle("Device") for _ in self.runtime.devices()]
        self.memories: list[Handle] = []
        self.device_of: dict[int, Device] = {}
        self.memory_of: dict[int, Memory] = {}
        self.descriptions = []
        for handle, device in zip(self.devices, self.runtime.devices()):
            self.descriptions.append(self._describe(handle, device))
        self.topology = self._topology()
        self.handle = Handle("Client", process_index=self.runtime.process_index())
        self._name(self.handle)
        self.handle.set_list("devices", "num_devices", self.devices)
        self.handle.set_list("addressable_devices", "num_addressable_devices", self.devices)
        self.handle.set_list("addressable_memories", "num_addressable_memories", self.memories)
        self.handle.set("topology", self.topology)

    def _name(self, handle: Handle) -> None:
        handle.set_text("platform_name", self.platform.encode())
        handle.set_text("platform_version", f"haloc {VERSION}".encode())

    def _describe(self, handle: Handle, device: Device) -> Handle:
        text = f"{self.platform}:{device.id}".encode()
        description = Handle("DeviceDescription", id=device.id, process_index=device.process_index)
        description.set("attributes", named_values({}))
        description.set_text("device_kind", self.platform.encode())
        description.set_text("debug_string", text)
        description.set_text("to_string", text)
        handle.set("device_description", description)
        handle.set("is_addressable", 1)
        handle.set("local_hardware_id", device.local_hardware_id)
        handle.set("attributes", named_values({}))
        handle.set("attributes_deleter", library().address("nothing"))
        memories = [self._memory(handle, m) for m in device.addressable_memories()]
        handle.set_list("memories", "num_memories", memories)
        handle.set("memory", memories[0])
        self.device_of[handle.address] = device
        return description

    def _memory(self, device: Handle, memory: Memory) -> Handle:
        handle = Handle(
            "Memory",
            functions=STRUCT["Memory_FunctionTable"].sized(),
            id=memory.id,
            kind_id=hash_of(memory.kind),
        )
        handle.set_text("kind", memory.kind.encode())
        handle.set_text("debug_string", repr(memory).encode())
        handle.set_text("to_string", repr(memory).encode())
        handle.set_list("devices", "num_devices", [device])
        self.memories.append(handle)
        self.memory_of[handle.address] = memory
        return handle

    def memory_on(self, device: Device, kind: str) -> Handle:
        """The handle of a device's memory of this kind."""
        wanted = device.memory(kind)
        return next(h for h in self.memories if self.memory_of[h.address] is wanted)

    def _topology(self) -> Handle:
        target = host_target()
        parts = (target.triple, target.cpu, target.feature_string, self.platform)
        text = " ".join([*parts, str(len(self.devices))])
        topology = Handle("TopologyDescription", fingerprint=hash_of(text, 8))
        self._name(topology)
        topology.set_list("descriptions", "num_descriptions", self.descriptions)
        topology.set("attributes", named_values({}))
        topology.set_text("serialized_bytes", text.encode())
        topology.set("serialized_topology_deleter", library().address("nothing"))
        return topology


def hash_of(text: str, length: int = 4) -> int:
    """A number of so many bytes, the same in every process; its sign bit is clear."""
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:length], "little") >> 1


CLIENTS: dict[int, PluginClient] = {}
"""By the address of their handle. A client lives until the process ends: arrays may outlive
PJRT_Client_Destroy by the collection that ends the interpreter."""


def client_of_options(options: dict[str, Any]) -> PluginClient:
    """InvalidArgumentError for an option that haloc has not."""
    unknown = options.keys() - {"platform_name", "num_devices"}
    if unknown:
        raise InvalidArgumentError(
            f"option {min(unknown)!r} is not known; haloc's plugin takes num_devices and "
            "platform_name"
        )
    return PluginClient(options.get("platform_name", "haloc"), options.get("num_devices", 1))


@entry("Client_Create")
def client_create(args: Any) -> None:
    client = client_of_options(read_named_values(args.create_options, args.num_options))
    CLIENTS[client.handle.address] = client
    args.client = client.handle.address


@entry("Client_LookupDevice")
def client_lookup_device(args: Any) -> None:
    args.device = _device(CLIENTS[args.client], "id", args.id)


@entry("Client_LookupAddressableDevice")
def client_lookup_addressable_device(args: Any) -> None:
    client = CLIENTS[args.client]
    args.addressable_device = _device(client, "local_hardware_id", args.local_hardware_id)


def _device(client: PluginClient, attribute: str, number: int) -> int:
    for address, device in client.device_of.items():
        if getattr(device, attribute) == number:
            return address
    raise InvalidArgumentError(f"No matching device found for {attribute} {number}")


@entry("Client_DefaultDeviceAssignment")
def client_default_device_assignment(args: Any) -> None:
    devices = CLIENTS[args.client].runtime.devices()
    count = args.num_replicas * args.num_partitions
    if not 0 < count <= len(devices):
        raise InvalidArgumentError(
            f"{args.num_replicas} replica(s) of {args.num_partitions} partition(s) take {count} "
            f"devices; the client has {len(devices)}"
        )
    if args.default_assignment_size < count:
        raise InvalidArgumentError(
            f"default_assignment has room for {args.default_assignment_size} of {count} devices"
        )
    ids = (ctypes.c_int32 * count).from_address(args.default_assignment)
    ids[:] = [d.id for d in devices[:count]]


@entry("Device_ClearMemoryStats")
def device_clear_memory_stats(args: Any) -> None:
    library().call("heap_clear_peak")


@entry("Device_MemoryStats")
def device_memory_stats(args: Any) -> None:
    usage = (ctypes.c_int64 * 2)()
    library().call("heap_usage", ctypes.addressof(usage))
    for name in (n.removesuffix("_is_set") for n, *_ in args._fields_ if n.endswith("_is_set")):
        if args.has(f"{name}_is_set"):
            setattr(args, f"{name}_is_set", name == "peak_bytes_in_use")
    args.bytes_in_use, args.peak_bytes_in_use = usage


def plugin_attributes() -> Any:
    """What PJRT_Plugin_Attributes gives."""
    return named_values(
        {
            "xla_version": 2,
            "stablehlo_current_version": STABLEHLO_CURRENT,
            "stablehlo_minimum_version": STABLEHLO_MINIMUM,
        }
    )
