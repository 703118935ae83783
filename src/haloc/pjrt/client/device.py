"""Devices of a plugin, their descriptions and their memory spaces."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from haloc.errors import InvalidArgumentError
from haloc.pjrt.abi.memory import pointers_at, text_at
from haloc.pjrt.abi.named_values import read_named_values
from haloc.pjrt.client.plugin import Plugin

if TYPE_CHECKING:
    from haloc.pjrt.client.array import CApiArray
    from haloc.pjrt.client.client import CApiClient


class DeviceDescription:
    """What is known about a device that need not be there. Attributes that the plugin gives
    (`coords`, `compute_capability`, ...) are attributes here."""

    def __init__(self, plugin: Plugin, address: int, client: Any):
        self.plugin = plugin
        self.client = client
        self._description = address

    def _ask(self, function: str) -> Any:
        function = f"DeviceDescription_{function}"
        return self.plugin.call(function, device_description=self._description)

    @cached_property
    def id(self) -> int:
        return self._ask("Id").id

    @cached_property
    def process_index(self) -> int:
        return self._ask("ProcessIndex").process_index

    @property
    def host_id(self) -> int:
        return self.process_index

    task_id = host_id

    @cached_property
    def device_kind(self) -> str:
        args = self._ask("Kind")
        return text_at(args.device_kind, args.device_kind_size)

    @cached_property
    def attributes(self) -> dict[str, Any]:
        args = self._ask("Attributes")
        return read_named_values(args.attributes, args.num_attributes)

    @property
    def platform(self) -> str:
        return self.client.platform

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.attributes:
            return self.attributes[name]
        raise AttributeError(f"Unknown attribute {name}")

    def __str__(self) -> str:
        args = self._ask("DebugString")
        return text_at(args.debug_string, args.debug_string_size)

    def __repr__(self) -> str:
        args = self._ask("ToString")
        return text_at(args.to_string, args.to_string_size)

    def __reduce__(self) -> str:
        raise TypeError(f"cannot pickle {self!r}: a device belongs to a client of this process")


class CApiDevice(DeviceDescription):
    """A device of a client; the same object for as long as the client lives."""

    client: CApiClient

    def __init__(self, client: CApiClient, address: int):
        described = client.plugin.call("Device_GetDescription", device=address)
        super().__init__(client.plugin, described.device_description, client)
        self.address = address

    def _of(self, function: str) -> Any:
        return self.plugin.call(f"Device_{function}", device=self.address)

    @cached_property
    def is_addressable(self) -> bool:
        """Whether it belongs to this process."""
        return self._of("IsAddressable").is_addressable

    @cached_property
    def local_hardware_id(self) -> int | None:
        """None for a device of another process."""
        return self._of("LocalHardwareId").local_hardware_id if self.is_addressable else None

    def addressable_memories(self) -> list[CApiMemory]:
        args = self._of("AddressableMemories")
        return [self.client.memory_at(a) for a in pointers_at(args.memories, args.num_memories)]

    def default_memory(self) -> CApiMemory:
        return self.client.memory_at(self._of("DefaultMemory").memory)

    def memory(self, kind: str) -> CApiMemory:
        """The memory space of this kind; InvalidArgumentError listing the kinds there are."""
        memories = self.addressable_memories()
        for memory in memories:
            if memory.kind == kind:
                return memory
        raise InvalidArgumentError(
            f"Could not find memory addressable by device {self.device_kind}. Device "
            f"{self.device_kind} can address the following memory kinds: "
            f"{', '.join(m.kind for m in memories)}. Got memory kind: {kind}"
        )

    def memory_stats(self) -> dict[str, int]:
        """Sizes in bytes by name: bytes_in_use and what else the plugin counts.
        UnimplementedError when it counts nothing."""
        args = self._of("MemoryStats")
        names = [name for name, *_ in args._fields_]
        optional = {n.removesuffix("_is_set") for n in names if n.endswith("_is_set")}
        told = [n for n in names if n in optional and getattr(args, f"{n}_is_set")]
        return {"bytes_in_use": args.bytes_in_use, **{n: getattr(args, n) for n in told}}

    def live_buffers(self) -> list[CApiArray]:
        """The arrays on this device, newest first."""
        return [a for a in self.client.live_arrays() if a.device is self]


class CApiMemory:
    """A memory space; the same object for as long as the client lives."""

    def __init__(self, client: CApiClient, address: int):
        self.client = client
        self.plugin = client.plugin
        self.address = address

    def _of(self, function: str) -> Any:
        return self.plugin.call(f"Memory_{function}", memory=self.address)

    @cached_property
    def id(self) -> int:
        return self._of("Id").id

    @cached_property
    def kind(self) -> str:
        args = self._of("Kind")
        return text_at(args.kind, args.kind_size)

    @property
    def platform(self) -> str:
        return self.client.platform

    @property
    def process_index(self) -> int:
        return self.client.process_index()

    def addressable_by_devices(self) -> list[CApiDevice]:
        args = self._of("AddressableByDevices")
        return [self.client.device_at(a) for a in pointers_at(args.devices, args.num_devices)]

    def __str__(self) -> str:
        args = self._of("DebugString")
        return text_at(args.debug_string, args.debug_string_size)

    def __repr__(self) -> str:
        args = self._of("ToString")
        return text_at(args.to_string, args.to_string_size)
