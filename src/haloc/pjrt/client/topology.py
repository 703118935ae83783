"""`CApiTopology`: devices that need not be there, and compilation for them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from haloc.errors import UnimplementedError
from haloc.pjrt.abi.memory import address_of_bytes, bytes_at, pointers_at, text_at
from haloc.pjrt.abi.named_values import named_values, read_named_values
from haloc.pjrt.client.device import DeviceDescription
from haloc.pjrt.client.executable import CApiExecutable
from haloc.pjrt.client.plugin import Owned, Plugin
from haloc.pjrt.client.program import Program
from haloc.runtime.compilation import Computation
from haloc.runtime.compile_options import CompileOptions

_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class CApiTopology:
    """A plugin's description of devices. Attributes that the plugin gives are attributes here."""

    def __init__(self, plugin: Plugin, address: int, *needs: Any):
        """needs: what must live as long."""
        self.plugin = plugin
        self.address = address
        self._needs = needs

    @staticmethod
    def create(plugin: Plugin, name: str, options: Mapping[str, Any]) -> CApiTopology:
        """By the plugin's name for it, and options as for clients."""
        values, text = named_values(options), name.encode()
        args = plugin.call(
            "TopologyDescription_Create",
            topology_name=address_of_bytes(text),
            topology_name_size=len(text),
            create_options=ctypes.addressof(values),
            num_options=len(options),
        )
        owned = Owned(plugin, "TopologyDescription", args.topology)
        return CApiTopology(plugin, args.topology, owned)

    @staticmethod
    def deserialize(plugin: Plugin, serialized: bytes) -> CApiTopology:
        """What `serialize` wrote."""
        args = plugin.call(
            "TopologyDescription_Deserialize",
            serialized_topology=address_of_bytes(serialized),
            serialized_topology_size=len(serialized),
        )
        owned = Owned(plugin, "TopologyDescription", args.topology)
        return CApiTopology(plugin, args.topology, owned)

    def _ask(self, function: str) -> Any:
        return self.plugin.call(f"TopologyDescription_{function}", topology=self.address)

    @cached_property
    def platform(self) -> str:
        args = self._ask("PlatformName")
        return text_at(args.platform_name, args.platform_name_size)

    @cached_property
    def platform_version(self) -> str:
        args = self._ask("PlatformVersion")
        return text_at(args.platform_version, args.platform_version_size)

    @cached_property
    def attributes(self) -> dict[str, Any]:
        args = self._ask("Attributes")
        return read_named_values(args.attributes, args.num_attributes)

    @cached_property
    def fingerprint(self) -> int:
        """The same in every process for the same devices."""
        return self._ask("Fingerprint").fingerprint

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.attributes:
            return self.attributes[name]
        raise AttributeError(f"Unknown attribute {name}")

    def serialize(self) -> bytes:
        args = self._ask("Serialize")
        data = bytes_at(args.serialized_bytes, args.serialized_bytes_size)
        if args.serialized_topology_deleter:
            _DELETER(args.serialized_topology_deleter)(args.serialized_topology)
        return data

    def devices(self) -> list[DeviceDescription]:
        client = CompileOnlyClient(self)
        return client.devices()

    _make_compile_only_devices = devices

    def compile(
        self,
        computation: Computation,
        executable_devices: Sequence[DeviceDescription] | None = None,
        compile_options: CompileOptions | None = None,
        *,
        client: int | None = None,
    ) -> CApiExecutable:
        """Compile for these devices (default: the topology's first ones), which need not be there.

        computation as for `CApiClient.compile_and_load`. client: the handle of a client whose
        devices they are, if there is one. Raises the plugin's errors.
        """
        devices = self.devices() if executable_devices is None else executable_devices
        program = Program(self.plugin, computation, compile_options, devices)
        args = self.plugin.call("Compile", topology=self.address, client=client, **program.fields())
        return CApiExecutable(self.plugin, args.executable, self._needs)

    def __repr__(self) -> str:
        return f"<CApiTopology {self.platform} of {self.plugin!r}>"


class CompileOnlyClient:
    """What the devices of a topology have as their client: it compiles, and runs nothing."""

    def __init__(self, topology: CApiTopology):
        self._topology = topology

    @property
    def platform(self) -> str:
        return self._topology.platform

    @property
    def platform_version(self) -> str:
        return self._topology.platform_version

    def devices(self) -> list[DeviceDescription]:
        args = self._topology._ask("GetDeviceDescriptions")
        addresses = pointers_at(args.descriptions, args.num_descriptions)
        return [DeviceDescription(self._topology.plugin, a, self) for a in addresses]

    def device_count(self) -> int:
        return len(self.devices())

    def compile(
        self,
        computation: Computation,
        executable_devices: Sequence[DeviceDescription],
        compile_options: CompileOptions | None = None,
    ) -> CApiExecutable:
        """`CApiTopology.compile`."""
        return self._topology.compile(computation, executable_devices, compile_options)

    def compile_and_load(self, *arguments: Any, **named: Any) -> Any:
        raise UnimplementedError("Compile not implemented.")
