"""`CApiClient`: the devices of a plugin, the arrays on them, and compilation for them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.pjrt.abi import HostBufferSemantics as Semantics
from haloc.pjrt.abi.memory import address_of_bytes, pointers_at, text_at
from haloc.pjrt.abi.named_values import named_values
from haloc.pjrt.client.array import CApiArray, put
from haloc.pjrt.client.device import CApiDevice, CApiMemory
from haloc.pjrt.client.executable import CApiExecutable
from haloc.pjrt.client.key_value import KeyValueStore
from haloc.pjrt.client.loaded_executable import CApiLoadedExecutable
from haloc.pjrt.client.plugin import Owned, Plugin
from haloc.pjrt.client.program import Program
from haloc.pjrt.client.topology import CApiTopology
from haloc.runtime.compilation import Computation
from haloc.runtime.compile_options import CompileOptions
from haloc.runtime.device_assignment import DeviceAssignment
from haloc.runtime.host_buffer import HostBufferSemantics, host_array
from haloc.runtime.live import LiveObjects


class CApiClient:
    """A client of a PJRT plugin, with the methods of haloc's own `Client`.

    options: the plugin's, by name: str, bool, int, float or list of int each. distributed_client:
    what the processes of one program share keys and values through; see `KeyValueStore`.
    """

    runtime_type = "pjrt_c_api"

    def __init__(
        self,
        plugin: Plugin,
        options: Mapping[str, Any] | None = None,
        distributed_client: Any = None,
        sort_devices_by_process_index: bool = True,
    ):
        self.plugin = plugin
        values = named_values(options or {})
        self._store = KeyValueStore(distributed_client)
        args = plugin.call(
            "Client_Create",
            create_options=ctypes.addressof(values),
            num_options=len(options or {}),
            **self._store.fields,
        )
        self.handle = Owned(plugin, "Client", args.client, self._store)
        self.arrays: LiveObjects[CApiArray] = LiveObjects()
        self.executables: LiveObjects[CApiLoadedExecutable] = LiveObjects()
        self._device_at: dict[int, CApiDevice] = {}
        self._memory_at: dict[int, CApiMemory] = {}
        args = self._ask("Devices")
        self._devices = [self.device_at(a) for a in pointers_at(args.devices, args.num_devices)]
        if sort_devices_by_process_index:
            self._devices.sort(key=lambda d: d.process_index)
        args = self._ask("AddressableDevices")
        count = args.num_addressable_devices
        self._local = [self.device_at(a) for a in pointers_at(args.addressable_devices, count)]

    def _ask(self, function: str, **fields: Any) -> Any:
        return self.plugin.call(f"Client_{function}", client=self.handle.address, **fields)

    # --- Devices ----------------------------------------------------------------------------------

    @property
    def platform(self) -> str:
        args = self._ask("PlatformName")
        return text_at(args.platform_name, args.platform_name_size)

    _raw_platform = platform

    @property
    def platform_version(self) -> str:
        args = self._ask("PlatformVersion")
        return text_at(args.platform_version, args.platform_version_size)

    def devices(self) -> list[CApiDevice]:
        """Those of all processes."""
        return list(self._devices)

    _get_all_devices = devices

    def local_devices(self) -> list[CApiDevice]:
        return list(self._local)

    def device_count(self) -> int:
        return len(self._devices)

    def local_device_count(self) -> int:
        return len(self._local)

    def process_index(self) -> int:
        return self._ask("ProcessIndex").process_index

    host_id = task_id = process_index

    def device_from_local_hardware_id(self, local_hardware_id: int) -> CApiDevice:
        args = self._ask("LookupAddressableDevice", local_hardware_id=local_hardware_id)
        return self.device_at(args.addressable_device)

    def device_from_id(self, id: int) -> CApiDevice:
        return self.device_at(self._ask("LookupDevice", id=id).device)

    def memories(self) -> list[CApiMemory]:
        """The memory spaces of this process's devices."""
        args = self._ask("AddressableMemories")
        listed = pointers_at(args.addressable_memories, args.num_addressable_memories)
        return [self.memory_at(a) for a in listed]

    def device_at(self, address: int) -> CApiDevice:
        known = self._device_at.get(address)
        if known is None:
            known = self._device_at.setdefault(address, CApiDevice(self, address))
        return known

    def memory_at(self, address: int) -> CApiMemory:
        known = self._memory_at.get(address)
        if known is None:
            known = self._memory_at.setdefault(address, CApiMemory(self, address))
        return known

    def get_default_device_assignment(
        self, num_replicas: int, num_partitions: int = 1
    ) -> DeviceAssignment:
        """Which device the plugin would give to each (replica, partition)."""
        flat = (ctypes.c_int32 * max(1, num_replicas * num_partitions))()
        self._ask(
            "DefaultDeviceAssignment",
            num_replicas=num_replicas,
            num_partitions=num_partitions,
            default_assignment_size=num_replicas * num_partitions,
            default_assignment=ctypes.addressof(flat),
        )
        return DeviceAssignment.create(np.array(flat).reshape(num_replicas, num_partitions))

    def topology(self) -> CApiTopology:
        """The devices as a description that programs can be compiled for."""
        return CApiTopology(self.plugin, self._ask("TopologyDescription").topology, self.handle)

    # --- Arrays -----------------------------------------------------------------------------------

    def buffer_from_pyval(
        self,
        argument: Any,
        device: CApiDevice | CApiMemory | None = None,
        force_copy: bool = False,
        host_buffer_semantics: HostBufferSemantics = HostBufferSemantics.ZERO_COPY,
    ) -> CApiArray:
        """The array with `argument`'s elements on `device` (default: the first of this process).

        argument: a NumPy array or scalar, or a Python scalar. device may also be a memory space.
        With ZERO_COPY semantics the plugin may use NumPy's memory for as long as the array lives,
        unless force_copy. Raises InvalidArgumentError for other types and foreign devices.
        """
        device = self._local[0] if device is None else device
        if not isinstance(device, CApiDevice | CApiMemory):
            raise TypeError(f"device is a {type(device).__name__}, not a CApiDevice")
        if device.client is not self:
            raise InvalidArgumentError(
                f"Cannot copy value to device '{device}' of another client with "
                f"'{self.platform}' backend"
            )
        memory = device.default_memory() if isinstance(device, CApiDevice) else device
        semantics = Semantics.IMMUTABLE_ONLY_DURING_CALL
        if not force_copy:
            semantics = Semantics(host_buffer_semantics.value)
        return put(self, host_array(argument), memory, semantics)

    def live_arrays(self) -> list[CApiArray]:
        """Arrays that exist and are not deleted, newest first."""
        return [a for a in self.arrays.newest_first() if not a.is_deleted()]

    live_buffers = live_arrays

    def live_executables(self) -> list[CApiLoadedExecutable]:
        """Loaded executables that exist, newest first."""
        return self.executables.newest_first()

    def defragment(self) -> None:
        raise UnimplementedError("Defragmentation is not supported on this runtime.")

    # --- Compilation ------------------------------------------------------------------------------

    def compile(
        self,
        computation: Computation,
        executable_devices: Sequence[CApiDevice],
        compile_options: CompileOptions | None = None,
    ) -> CApiExecutable:
        """Compile for the devices, without loading: `load` does that. See `compile_and_load`."""
        return self.topology().compile(
            computation, executable_devices, compile_options, client=self.handle.address
        )

    def compile_and_load(
        self,
        computation: Computation,
        executable_devices: Sequence[CApiDevice],
        compile_options: CompileOptions | None = None,
        host_callbacks: Sequence[Any] = (),
    ) -> CApiLoadedExecutable:
        """Compile a computation and make it ready to run.

        computation: HLO or StableHLO as text or bytes, or a module. executable_devices: one for
        each of num_replicas * num_partitions participants, unless the options have a
        device_assignment. Raises the plugin's errors, and UnimplementedError for host_callbacks,
        for which the C API has no place.
        """
        if host_callbacks:
            raise UnimplementedError("compile_and_load(host_callbacks=...) through the C API")
        program = Program(
            self.plugin, computation, compile_options, self._checked(executable_devices)
        )
        return CApiLoadedExecutable(self, self._ask("Compile", **program.fields()).executable)

    def load(
        self, executable: CApiExecutable, compile_options: CompileOptions | None = None
    ) -> CApiLoadedExecutable:
        """Make what `compile` gave ready to run."""
        options = b"" if compile_options is None else compile_options.SerializeAsString()
        args = self._ask(
            "Load",
            executable=executable._executable.address,
            compile_options=address_of_bytes(options),
            compile_options_size=len(options),
        )
        return CApiLoadedExecutable(self, args.loaded_executable)

    def serialize_executable(self, executable: CApiExecutable) -> bytes:
        """`executable.serialize()`."""
        return executable.serialize()

    def deserialize_executable(
        self,
        serialized: bytes,
        executable_devices: Sequence[CApiDevice] | None = None,
        compile_options: CompileOptions | None = None,
        host_callbacks: Sequence[Any] = (),
        *,
        options: CompileOptions | None = None,
    ) -> CApiLoadedExecutable:
        """The executable that `serialize` wrote, ready to run, on the devices that
        compile_options (or, as the documents spell it, options) assign; by default on those it was
        compiled for. Raises the plugin's errors."""
        if host_callbacks:
            raise UnimplementedError("deserialize_executable(host_callbacks=...) through the C API")
        chosen = options if compile_options is None else compile_options
        given = b"" if chosen is None else chosen.SerializeAsString()
        args = self.plugin.call(
            "Executable_DeserializeAndLoad",
            client=self.handle.address,
            serialized_executable=address_of_bytes(serialized),
            serialized_executable_size=len(serialized),
            overridden_serialized_compile_options=address_of_bytes(given) if given else None,
            overridden_serialized_compile_options_size=len(given),
        )
        return CApiLoadedExecutable(self, args.loaded_executable)

    def _checked(self, devices: Sequence[CApiDevice]) -> list[CApiDevice]:
        listed = list(devices)
        for number, device in enumerate(listed):
            if not isinstance(device, CApiDevice) or device.client is not self:
                raise InvalidArgumentError(
                    f"executable_devices[{number}] is {device!r}, not a device of this client"
                )
        return listed

    def __repr__(self) -> str:
        return f"<CApiClient {self.platform}, {len(self._devices)} device(s), {self.plugin!r}>"
