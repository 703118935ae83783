"""`Client`: devices of one backend, the arrays on them, and compilation for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.ffi.host import check_host_callbacks
from haloc.ffi.send_recv import SendRecvCallback
from haloc.flags import Flags, OnProgress, no_progress
from haloc.interpreter import HostTransfers
from haloc.ir.dtype import dtype_from_numpy
from haloc.ir.shape import default_layout
from haloc.runtime.array import ArrayImpl
from haloc.runtime.backend import Backend
from haloc.runtime.compilation import (
    Compilation,
    Computation,
    Devices,
    compile_computation,
)
from haloc.runtime.compile_options import CompileOptions
from haloc.runtime.device import Device
from haloc.runtime.device_queues import DeviceQueues
from haloc.runtime.executable import Executable
from haloc.runtime.format import LayoutLike, as_layout
from haloc.runtime.heap_profile import heap_profile
from haloc.runtime.host_buffer import (
    HostBufferSemantics,
    copy_to_memory,
    host_array,
    host_block,
    put_in_memory,
)
from haloc.runtime.live import LiveObjects
from haloc.runtime.loaded_executable import LoadedExecutable
from haloc.runtime.memory_pool import MemoryPool
from haloc.runtime.profiler import TraceMe
from haloc.runtime.serialization import deserialized
from haloc.runtime.single_device_array import SingleDeviceArray
from haloc.runtime.xla_shape import PjRtLayout, XlaShape
from haloc.version import VERSION

_ZERO_COPY = HostBufferSemantics.ZERO_COPY
_DEVICES_PER_PROCESS = 2048


class Client:
    """Devices of one backend. Two clients share nothing but the process."""

    runtime_type = "haloc"

    def __init__(
        self,
        backend: Backend,
        num_devices: int = 1,
        node_id: int = 0,
        asynchronous: bool = False,
    ):
        if num_devices < 1:
            raise InvalidArgumentError(f"num_devices={num_devices}: a client needs a device")
        flags = Flags.from_environment()
        self._backend = backend
        self._process_index = node_id
        self.pool = MemoryPool(flags.pool_bytes)
        self.is_asynchronous = asynchronous
        self.queues = DeviceQueues()
        timeout_s = float(flags.xla_cpu_collective_call_terminate_timeout_seconds)
        self.transfers = HostTransfers(timeout_s)
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
        *,
        device_layout: LayoutLike | None = None,
    ) -> ArrayImpl:
        """The array with `argument`'s elements on `device` (default: the first).

        argument: a NumPy array or scalar of any HLO element type, a Python scalar (bool, or s64,
        f64, c128), or an array of haloc. The array *is* the NumPy array's memory when the semantics
        are ZERO_COPY, force_copy is False and the memory can be shared (see HostBufferSemantics);
        otherwise it is a copy. device_layout (haloc's own): how the array lies in memory: a layout
        of any kind that haloc hands out, or minor_to_major; default: that of an array of haloc,
        else row-major. Raises InvalidArgumentError for other types, foreign devices and layouts of
        another rank, UnimplementedError for tiled ones.
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
        spec = layout = None
        if device_layout is not None:
            if not isinstance(argument, ArrayImpl):
                argument = host_array(argument)
            dtype = dtype_from_numpy(argument.dtype)
            layout = as_layout(device_layout, dtype, argument.ndim, "device_layout")
        elif type(argument) is np.ndarray:
            spec = device.known_specs.get((argument.dtype, argument.shape))
        share = host_buffer_semantics is _ZERO_COPY and not force_copy
        if spec is not None:
            block = host_block(argument, spec, self.pool, share=share)
            array = SingleDeviceArray(spec, block, False)
        elif isinstance(argument, ArrayImpl):
            memory = device.default_memory()
            array = copy_to_memory(argument, memory, share=not force_copy, layout=layout)
        else:
            value, memory = host_array(argument), device.default_memory()
            array = put_in_memory(value, memory, share=share, committed=False, layout=layout)
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

    def transfer_to_infeed(self, value: Any, device: Device | None = None) -> None:
        """`Device.transfer_to_infeed`; default: of the first device."""
        (device or self._devices[0]).transfer_to_infeed(value)

    def transfer_from_outfeed(self, shape: XlaShape, device: Device | None = None) -> Any:
        """`Device.transfer_from_outfeed`; default: of the first device."""
        return (device or self._devices[0]).transfer_from_outfeed(shape)

    def make_python_callback_from_host_send_and_recv(
        self,
        callable: Callable[..., Any],
        operand_shapes: Sequence[XlaShape],
        result_shapes: Sequence[XlaShape],
        send_channel_ids: Sequence[int],
        recv_channel_ids: Sequence[int],
        serializer: Any = None,
    ) -> SendRecvCallback:
        """For `host_callbacks`: `callable(*operands)` is called with the arrays that a program
        sends to the host on send_channel_ids, and gives a tuple of those that it receives from
        there on recv_channel_ids. InvalidArgumentError for as many shapes as there are not
        channels, UnimplementedError for a serializer."""
        if serializer is not None:
            raise UnimplementedError("make_python_callback_from_host_send_and_recv(serializer=...)")
        operands, results = [s.ir for s in operand_shapes], [s.ir for s in result_shapes]
        return SendRecvCallback(callable, operands, results, send_channel_ids, recv_channel_ids)

    def live_executables(self) -> list[LoadedExecutable]:
        """Loaded executables that exist, newest first."""
        return self.executables.newest_first()

    def heap_profile(self) -> bytes:
        """What arrays and executables take, as a pprof `Profile`, not compressed: write it to a
        file and give that to `pprof`. Where they were made is known as `set_tracebacks_enabled`
        says."""
        return heap_profile(self.live_arrays(), self.live_executables())

    def defragment(self) -> None:
        raise UnimplementedError("Defragmentation is not supported on this runtime.")

    def get_default_layout(
        self, dtype: np.dtype[Any], shard_shape: Sequence[int], device: Device
    ) -> PjRtLayout:
        """Row-major, whatever the dtype."""
        dtype_from_numpy(dtype)
        self._check_device(device)
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
        """Compile a computation; see `compile_and_load`."""
        return Executable(
            self._compiled(computation, executable_devices, compile_options, on_progress)
        )

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

        computation: HLO or StableHLO as text or bytes, or a module. It runs as num_replicas *
        num_partitions participants: the options', or where they say 1 those of the module's
        header. Each has a device: of the options' device_assignment, else of executable_devices,
        in their order, as many as are needed; if fewer are listed, the client's first ones.
        Raises HloParseError, VerificationError, InvalidArgumentError for options that do not fit,
        UnimplementedError naming what haloc does not do.

        host_callbacks: functions of NumPy arrays that custom-calls to xla_ffi_python_cpu_callback
        name by their `index`: they get read-only views and return a tuple of arrays.
        """
        check_host_callbacks(host_callbacks)
        compilation = self._compiled(computation, executable_devices, compile_options, on_progress)
        executable = LoadedExecutable(compilation, self, host_callbacks)
        self.executables.add(executable)
        return executable

    def serialize_executable(self, executable: Executable) -> bytes:
        """`executable.serialize()`."""
        if not isinstance(executable, Executable):
            raise TypeError(f"executable is a {type(executable).__name__}, not an Executable")
        return executable.serialize()

    def deserialize_executable(
        self,
        serialized: bytes,
        executable_devices: Devices,
        compile_options: CompileOptions | None = None,
        host_callbacks: Sequence[Any] = (),
        *,
        options: CompileOptions | None = None,
    ) -> LoadedExecutable:
        """The executable that `serialize` wrote, ready to run: nothing is compiled.

        compile_options (or, as the documents spell it, options): say on which devices it runs and
        with which flags; the default are those it was compiled with. Devices and host_callbacks as
        in `compile_and_load`.
        Raises InvalidArgumentError for bytes that are damaged or something else,
        FailedPreconditionError for another format version, platform or machine, or a CPU without
        the features the code needs.
        """
        if compile_options is not None and options is not None:
            raise InvalidArgumentError("both compile_options and options are given")
        check_host_callbacks(host_callbacks)
        compilation, fingerprint = deserialized(
            serialized,
            self.platform,
            self._devices,
            executable_devices,
            options if compile_options is None else compile_options,
        )
        executable = LoadedExecutable(compilation, self, host_callbacks)
        executable._fingerprint = fingerprint
        self.executables.add(executable)
        return executable

    def _compiled(
        self,
        computation: Computation,
        executable_devices: Devices,
        options: CompileOptions | None,
        on_progress: OnProgress,
    ) -> Compilation:
        with TraceMe("compile"):
            return compile_computation(
                self._backend, self._devices, computation, executable_devices, options, on_progress
            )

    def __repr__(self) -> str:
        return f"<Client {self.platform}, {len(self._devices)} device(s)>"
