"""`Client`: devices of one backend, the arrays on them, and compilation for them."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.flags import CompilerOptions, Flags, OnProgress, no_progress
from haloc.formats.hlo_text import to_text
from haloc.ir.dtype import dtype_from_numpy
from haloc.ir.module import HloModule
from haloc.ir.shape import default_layout
from haloc.runtime.array import ArrayImpl
from haloc.runtime.backend import Backend, Program
from haloc.runtime.compile_options import CompileOptions, check_layouts, check_supported
from haloc.runtime.computation import read_computation
from haloc.runtime.device import Device
from haloc.runtime.device_assignment import DeviceAssignment, DeviceList
from haloc.runtime.dump import Dumper
from haloc.runtime.executable import Executable, LoadedExecutable
from haloc.runtime.hlo_module import XlaHloModule
from haloc.runtime.host_buffer import (
    HostBufferSemantics,
    copy_to_memory,
    host_array,
    host_block,
    put_in_memory,
)
from haloc.runtime.live import LiveObjects
from haloc.runtime.memory_pool import MemoryPool
from haloc.runtime.single_device_array import SingleDeviceArray
from haloc.runtime.xla_shape import PjRtLayout
from haloc.verifier import verify
from haloc.version import VERSION

Computation = str | bytes | HloModule | XlaHloModule
Devices = DeviceList | Sequence[Device]

_ZERO_COPY = HostBufferSemantics.ZERO_COPY
_DEVICES_PER_PROCESS = 2048


class Client:
    """Devices of one backend. Two clients share nothing but the process."""

    runtime_type = "haloc"

    def __init__(self, backend: Backend, num_devices: int = 1, node_id: int = 0):
        if num_devices < 1:
            raise InvalidArgumentError(f"num_devices={num_devices}: a client needs a device")
        flags = Flags.from_environment()
        self._backend = backend
        self._process_index = node_id
        self.pool = MemoryPool(flags.pool_bytes)
        self.arrays: LiveObjects[ArrayImpl] = LiveObjects()
        self.executables: LiveObjects[LoadedExecutable] = LiveObjects()
        first_id = _DEVICES_PER_PROCESS * node_id
        self._devices = [Device(self, first_id + i, i) for i in range(num_devices)]

    # --- Devices ----------------------------------------------------------------------------------

    @property
    def platform(self) -> str:
        return self._backend.platform

    _raw_platform = platform

    @property
    def platform_version(self) -> str:
        return f"haloc {VERSION}"

    def devices(self) -> list[Device]:
        return list(self._devices)

    local_devices = _get_all_devices = devices

    def device_count(self) -> int:
        return len(self._devices)

    local_device_count = device_count

    def process_index(self) -> int:
        return self._process_index

    host_id = task_id = process_index

    def device_from_local_hardware_id(self, local_hardware_id: int) -> Device:
        for device in self._devices:
            if device.local_hardware_id == local_hardware_id:
                return device
        raise InvalidArgumentError(
            f"No matching device found for local_device_id {local_hardware_id}"
        )

    # --- Arrays -----------------------------------------------------------------------------------

    def buffer_from_pyval(
        self,
        argument: Any,
        device: Device | None = None,
        force_copy: bool = False,
        host_buffer_semantics: HostBufferSemantics = _ZERO_COPY,
    ) -> ArrayImpl:
        """The array with `argument`'s elements on `device` (default: the first).

        argument: a NumPy array or scalar of any HLO element type, a Python scalar (bool, or s64,
        f64, c128), or an array of haloc. The array *is* the NumPy array's memory when the semantics
        are ZERO_COPY, force_copy is False and the memory can be shared (see HostBufferSemantics);
        otherwise it is a copy. Raises InvalidArgumentError for other types and foreign devices.
        """
        if device is None:
            device = self._devices[0]
        else:
            self._check_device(device)
        if not isinstance(host_buffer_semantics, HostBufferSemantics):
            raise TypeError(
                "host_buffer_semantics is a HostBufferSemantics, not "
                f"{type(host_buffer_semantics).__name__}"
            )
        # This is the hot path of small arrays: the spec by what NumPy says, without a call.
        spec = None
        if type(argument) is np.ndarray:
            spec = device.known_specs.get((argument.dtype, argument.shape))
        share = host_buffer_semantics is _ZERO_COPY and not force_copy
        if spec is not None:
            block = host_block(argument, spec, self.pool, share=share)
            array = SingleDeviceArray(spec, block, False)
        elif isinstance(argument, ArrayImpl):
            array = copy_to_memory(argument, device.default_memory(), share=not force_copy)
        else:
            value, memory = host_array(argument), device.default_memory()
            array = put_in_memory(value, memory, share=share, committed=False)
        self.arrays.add(array)
        return array

    def _check_device(self, device: Device) -> None:
        if not isinstance(device, Device):
            raise TypeError(f"device is a {type(device).__name__}, not a Device")
        if device.client is not self:
            raise InvalidArgumentError(
                f"Cannot copy value to device '{device}' of another client with "
                f"'{self.platform}' backend"
            )

    def track(self, array: ArrayImpl) -> None:
        """Count an array made elsewhere among the live ones."""
        self.arrays.add(array)

    def live_arrays(self) -> list[ArrayImpl]:
        """Arrays that exist and are not deleted, newest first."""
        return [a for a in self.arrays.newest_first() if not a.is_deleted()]

    live_buffers = live_arrays

    def live_executables(self) -> list[LoadedExecutable]:
        """Loaded executables that exist, newest first."""
        return self.executables.newest_first()

    def defragment(self) -> None:
        raise UnimplementedError("Defragmentation is not supported on this runtime.")

    def get_default_layout(
        self, dtype: np.dtype[Any], shard_shape: Sequence[int], device: Device
    ) -> PjRtLayout:
        """Row-major, whatever the dtype."""
        dtype_from_numpy(dtype)
        return PjRtLayout(default_layout(len(shard_shape)))

    # --- Compilation ------------------------------------------------------------------------------

    def compile(
        self,
        computation: Computation,
        executable_devices: Devices,
        compile_options: CompileOptions | None = None,
        *,
        on_progress: OnProgress = no_progress,
    ) -> Executable:
        """Compile HLO text (str or bytes) or a module; see `compile_and_load`."""
        program, *_ = self._compile(computation, executable_devices, compile_options, on_progress)
        return Executable(program)

    def compile_and_load(
        self,
        computation: Computation,
        executable_devices: Devices,
        compile_options: CompileOptions | None = None,
        host_callbacks: Sequence[Any] = (),
        *,
        on_progress: OnProgress = no_progress,
    ) -> LoadedExecutable:
        """Compile a computation and make it ready to run.

        It runs on the device of the options' device_assignment, else on the one listed.
        Raises HloParseError, VerificationError, InvalidArgumentError for options that do not fit,
        UnimplementedError naming what haloc does not do.
        """
        if host_callbacks:
            raise UnimplementedError("host_callbacks: haloc does not call back from programs yet")
        program, device, module = self._compile(
            computation, executable_devices, compile_options, on_progress
        )
        executable = LoadedExecutable(program, self, device, module)
        self.executables.add(executable)
        return executable

    def _compile(
        self,
        computation: Computation,
        executable_devices: Devices,
        compile_options: CompileOptions | None,
        on_progress: OnProgress,
    ) -> tuple[Program, Device, HloModule]:
        options = CompileOptions() if compile_options is None else compile_options
        if not isinstance(options, CompileOptions):
            raise TypeError(f"compile_options is a {type(options).__name__}, not a CompileOptions")
        devices = self._checked_devices(executable_devices)
        check_supported(options)
        device = self._assigned_device(options.device_assignment) or devices[0]
        flags = options.flags()
        on_progress("parse", 0, 0)
        module = read_computation(computation)
        dumper = Dumper(flags, module.name)
        dumper.dump(module, "before_optimizations")
        on_progress("verify", 0, 0)
        verify(module)
        _check_module(module, options)
        started = time.perf_counter()
        _tell(flags, 4, lambda: f"--- before optimization ---\n{to_text(module)}")
        program = self._backend.compile(module, CompilerOptions(flags, on_progress))
        _tell(flags, 4, lambda: f"--- after optimization ---\n{to_text(program.optimized)}")
        _tell(flags, 2, lambda: _summary(program, time.perf_counter() - started))
        dumper.dump(program.optimized, f"{self.platform}_after_optimizations")
        return program, device, module

    def _checked_devices(self, devices: Devices) -> list[Device]:
        if isinstance(devices, str) or not isinstance(devices, Sequence | DeviceList):
            raise TypeError(
                "executable_devices is a DeviceList or a sequence of devices, not "
                f"{type(devices).__name__}"
            )
        listed = list(devices)
        if not listed:
            raise InvalidArgumentError("executable_devices is empty")
        for number, device in enumerate(listed):
            if not isinstance(device, Device):
                raise InvalidArgumentError(
                    f"executable_devices[{number}] is {device!r}, not a Device"
                )
            if device.client is not self:
                raise InvalidArgumentError(
                    f"executable_devices[{number}] is a device of another client: {device!r}"
                )
        if len(listed) > 1:
            raise UnimplementedError(
                f"executable_devices lists {len(listed)} devices: haloc runs a program on one "
                "device so far"
            )
        return listed

    def _assigned_device(self, assignment: DeviceAssignment | None) -> Device | None:
        if assignment is None:
            return None
        if not isinstance(assignment, DeviceAssignment):
            raise TypeError(
                f"device_assignment is a {type(assignment).__name__}, not a DeviceAssignment"
            )
        if assignment.ids.size != 1:
            raise UnimplementedError(
                f"device_assignment {assignment}: haloc runs a program on one device so far"
            )
        wanted = int(assignment.ids[0, 0])
        for device in self._devices:
            if device.id == wanted:
                return device
        raise InvalidArgumentError(f"No matching device found for device_id {wanted}")

    def __repr__(self) -> str:
        return f"<Client {self.platform}, {len(self._devices)} device(s)>"


def _check_module(module: HloModule, options: CompileOptions) -> None:
    for key in ("replica_count", "num_partitions"):
        count = module.header.get(key, 1)
        if count != 1:
            raise UnimplementedError(
                f"{key}={count} in module {module.name}: haloc runs a program on one device so far"
            )
    aliases = module.header.get("input_output_alias", ())
    taken = [(number, index) for _, number, index, *_ in aliases]
    for number, index in taken:
        if taken.count((number, index)) > 1:
            raise InvalidArgumentError(
                f"input_output_alias gives parameter {number} {{{','.join(map(str, index))}}} to "
                "more than one result"
            )
    parameters = [p.shape for p in module.entry.parameters]
    for number, shape in enumerate(parameters):
        for leaf in shape.leaves():
            if not leaf.is_array or not leaf.is_static:
                raise UnimplementedError(
                    f"parameter {number} of the entry is {shape}: only arrays of static shape can "
                    "be passed"
                )
    check_layouts(options, parameters, module.entry.root.shape)


def _tell(flags: Flags, level: int, text: Any) -> None:
    if flags.debug >= level and (level > 2 or flags.xla_detailed_logging):
        print(text(), file=sys.stderr)


def _summary(program: Program, seconds: float) -> str:
    module = program.optimized
    count = sum(len(c) for c in module.post_order())
    return (
        f"haloc: compiled {module.name}: {count} instructions in {seconds:.3f} s, "
        f"{program.code_size_bytes} bytes of code, {program.arena_bytes} of scratch"
    )
