"""`LoadedExecutable`: a program ready to run on its devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from haloc.errors import InvalidArgumentError
from haloc.ffi.host import Host
from haloc.interpreter import NanGuard
from haloc.ir.dtype import PRED
from haloc.ir.shape import Shape
from haloc.runtime.arguments import Rows, checked_arguments, checked_rows, is_by_device
from haloc.runtime.array import ArrayImpl
from haloc.runtime.array_spec import ArraySpec
from haloc.runtime.backend import Program
from haloc.runtime.compilation import Compilation
from haloc.runtime.compile_options import CompileOptions
from haloc.runtime.device import Device
from haloc.runtime.executable import Executable
from haloc.runtime.launch import Launcher
from haloc.runtime.pending import Pending
from haloc.runtime.results import ExecuteResults, ShardedToken, Token
from haloc.runtime.single_device_array import SingleDeviceArray
from haloc.runtime.traceback import Traceback
from haloc.runtime.tracing import trace_leaves

if TYPE_CHECKING:
    from haloc.runtime.client import Client

INLINE_NS = 50_000.0
"""Programs estimated to take longer do not keep an asynchronous client's caller waiting."""


class LoadedExecutable(Executable):
    """A program ready to run, by one participant or by several together. Safe to execute from
    several threads."""

    def __init__(
        self,
        compilation: Compilation,
        client: Client,
        host_callbacks: Sequence[Callable[..., Any]] = (),
    ):
        super().__init__(compilation)
        self.client = client
        self._devices = compilation.devices
        self._host_callbacks = host_callbacks
        self._portable: dict[Device, LoadedExecutable] = {}
        self._launcher = self._launcher_on(self._devices)
        self._kept_alive: list[object] = []
        self.traceback = Traceback.get_traceback()
        """Where it was compiled; None when tracebacks are disabled."""
        # For the hot path: one participant, no donation, short.
        device, program = self._devices[0], self._program
        self._is_simple = (
            len(self._devices) == 1
            and not program.aliases
            and len(self._launcher.result_specs[0]) == len(program.results)
            and self._launcher.is_inline
            and not program.uses_run
        )
        self._queue = device.queue
        self._parameter_specs = [_argument_spec(device, s) for s in program.parameters]
        self._result_specs = self._launcher.result_specs[0]
        self._arena_bytes = program.arena_bytes
        self._run = program.run
        self._allocate = client.pool.allocate
        self._track = client.arrays.add

    def _launcher_on(self, devices: tuple[Device, ...]) -> Launcher:
        """The program's launches on these devices, one a participant."""
        program, client = self._program, self.client
        arrays = [s for s in program.results if s.is_array]
        flags = self._compilation.flags
        return Launcher(
            program=program,
            devices=devices,
            num_partitions=self._compilation.num_partitions,
            parameter_specs=[[_argument_spec(d, s) for s in program.parameters] for d in devices],
            result_specs=[[d.spec(s.dtype, s.dims, s.layout) for s in arrays] for d in devices],
            aliases=_array_aliases(program),
            is_inline=not client.is_asynchronous or program.cost_ns < INLINE_NS,
            queues=client.queues,
            pool=client.pool,
            track=client.arrays.add,
            timeout_s=float(flags.xla_cpu_collective_call_terminate_timeout_seconds),
            host=self._host_on(devices),
        )

    def _host_on(self, devices: tuple[Device, ...]) -> Host:
        """What runs on these devices find on the host's side."""
        ordinals = [d.local_hardware_id or 0 for d in devices]
        partitions = self._compilation.num_partitions
        return Host(self._host_callbacks, ordinals, partitions, self.client.transfers)

    # --- Where ------------------------------------------------------------------------------------

    def local_devices(self) -> list[Device]:
        """The devices of its participants, in the order of flattened logical ids: replica *
        num_partitions + partition."""
        return list(self._devices)

    addressable_devices = local_devices

    def local_logical_device_ids(self) -> list[tuple[int, int]]:
        """(replica, partition) of each of `local_devices()`."""
        partitions = self._compilation.num_partitions
        return [divmod(number, partitions) for number in range(len(self._devices))]

    def keep_alive(self, object: object = None) -> None:
        """Hold a reference to an object for as long as this executable lives."""
        self._kept_alive.append(object)

    # --- Running ----------------------------------------------------------------------------------

    def execute(
        self, arguments: Sequence[ArrayImpl | list[ArrayImpl]], device: Device | None = None
    ) -> list[ArrayImpl]:
        """Run once; the array leaves of the result, tuples flattened: those of the first device.

        arguments: the array leaves of the parameters; for several devices as in `execute_sharded`.
        device: of one participant; with compile_portable_executable any that the arguments are on.
        An argument that input_output_alias names is deleted, and its memory becomes the output's
        where nothing else refers to it. An asynchronous client may return before the outputs have
        values: whatever reads them waits, and raises the program's error.
        Raises InvalidArgumentError for a wrong count, shape, element type or device and for deleted
        arrays, TypeError for what is not an array.
        """
        if device is not None and device not in self._devices:
            return self._portable_on(device).execute(arguments)
        # This is the hot path of small programs, in plain loops: for a few arguments they beat
        # comprehensions. The slow path finds out what is wrong, or that nothing is.
        if not self._is_simple or self._queue:
            return [column[0] for column in self._execute(arguments)[0]]
        # Blocks are held while the program runs: another thread may delete an argument.
        blocks: list[Any] = []
        pointers: list[int] = []
        specs, fits = self._parameter_specs, False
        try:
            if isinstance(arguments, (list, tuple)) and len(arguments) == len(specs):
                for array, spec in zip(arguments, specs):
                    if array._spec is spec and array._pending is None:  # type: ignore[union-attr]
                        block = array._block  # type: ignore[union-attr]
                        pointers.append(block.pointer)  # type: ignore[union-attr]
                        blocks.append(block)
                fits = len(blocks) == len(specs)
        except AttributeError:
            pass
        if not fits:
            return [column[0] for column in self._execute(arguments)[0]]
        allocate, track = self._allocate, self._track
        places: list[int] = []
        arrays: list[ArrayImpl] = []
        for spec in self._result_specs:
            block = allocate(spec.size_bytes)
            places.append(block.pointer)
            arrays.append(SingleDeviceArray(spec, block))
        arena = allocate(self._arena_bytes) if self._arena_bytes else None
        self._run(pointers, places, 0 if arena is None else arena.pointer)
        for array in arrays:
            track(array)
        return arrays

    def _portable_on(self, device: Device) -> LoadedExecutable:
        """The program loaded on another device; InvalidArgumentError if it is not portable."""
        options = CompileOptions.ParseFromString(self._compilation.options_proto)
        known = isinstance(device, Device) and device.client is self.client
        if not (options.compile_portable_executable and known and len(self._devices) == 1):
            raise InvalidArgumentError(
                f"execute(device={device!r}): the executable is loaded on "
                f"{', '.join(map(repr, self._devices))}"
            )
        if device not in self._portable:
            there = replace(self._compilation, devices=(device,))
            self._portable[device] = LoadedExecutable(there, self.client, self._host_callbacks)
        return self._portable[device]

    def execute_with_token(
        self, arguments: Sequence[ArrayImpl | list[ArrayImpl]], device: Device | None = None
    ) -> tuple[list[ArrayImpl], Token]:
        """`execute`, and a token that is ready when the execution is."""
        outputs, pending = self._execute(arguments)
        return [column[0] for column in outputs], Token(pending)

    def execute_sharded(
        self, arguments: Sequence[ArrayImpl | list[ArrayImpl]], with_tokens: bool = False
    ) -> ExecuteResults:
        """Run once on all devices.

        arguments[i]: an array with a shard on each of `local_devices()`, in this order, or a list
        of arrays, one on each. Or, as the documentation of xla_client has it, arguments[d]: the
        list of all arguments on device d; then the results are by device, too. Which one it is
        tell the devices of the arrays. In this second form, a program of one participant may run
        on the first few of the devices listed to `compile_and_load`, on each by itself.
        """
        listed = self._compilation.listed if len(self._devices) == 1 else self._devices
        if is_by_device(arguments, listed):
            launcher = self._launcher_of(len(arguments))
            rows = checked_rows(arguments, launcher.parameter_specs, launcher.num_partitions)
            results, pending = self._launched(launcher, rows)
            count = len(launcher.devices)
            return ExecuteResults(results, ShardedToken(with_tokens and count, pending), True)
        results, pending = self._execute(arguments)
        return ExecuteResults(results, ShardedToken(with_tokens and len(self._devices), pending))

    def _launcher_of(self, count: int) -> Launcher:
        """For arguments on `count` devices."""
        if count == len(self._devices):
            return self._launcher
        if len(self._devices) > 1 or self._program.uses_run:
            raise InvalidArgumentError(
                f"execute_sharded: arguments for {count} devices, but the program was compiled for "
                f"{len(self._devices)} (compile_options.num_replicas sets how many)"
            )
        return self._launcher_on(self._compilation.listed[:count])

    def _execute(self, arguments: Sequence[Any]) -> tuple[list[list[ArrayImpl]], Pending | None]:
        launcher = self._launcher
        rows = checked_arguments(arguments, launcher.parameter_specs, launcher.num_partitions)
        return self._launched(launcher, rows)

    def _launched(
        self, launcher: Launcher, rows: Rows
    ) -> tuple[list[list[ArrayImpl]], Pending | None]:
        """Outputs by [output][device], and what they wait for."""
        results, pending = launcher.launch(rows)
        if pending is not None and not self.client.is_asynchronous:
            pending.wait()
        return [list(column) for column in zip(*results)], pending

    # --- Looking inside ---------------------------------------------------------------------------

    def trace(
        self,
        *arguments: Any,
        optimized: bool = False,
        every: bool = False,
        guard: NanGuard | None = None,
    ) -> dict[str, Any]:
        """Every intermediate value by instruction name: {"dot.3": array, "body/add.7": array}.

        On every backend the interpreter runs the program for this: native code keeps few of the
        values. It runs the module as it was before optimisation, so that names are those of the
        program given; with `optimized`, the module that native code was made of. arguments: the
        array leaves of the parameters, of haloc or NumPy. The value of an instruction that runs
        several times is its last; with `every`, the list of them. guard: see `NanGuard`. Effects
        (callbacks, random state) take place as in any run. See `haloc.interpreter.trace`.
        """
        module = self._program.optimized if optimized else self._compilation.source
        return trace_leaves(module, arguments, every, guard)

    def __repr__(self) -> str:
        name = self._compilation.source.name
        return f"<LoadedExecutable {name} on {', '.join(map(repr, self._devices))}>"


def _argument_spec(device: Device, parameter: Shape) -> ArraySpec:
    """Of the array to pass for a parameter. For a token, XLA's clients take a pred[0]."""
    if parameter.is_token:
        return device.spec(PRED, (0,))
    return device.spec(parameter.dtype, parameter.dims, parameter.layout)


def _array_aliases(program: Program) -> dict[int, int]:
    """`Program.aliases` with the result numbered among the array leaves."""
    arrays = [leaf for leaf, shape in enumerate(program.results) if shape.is_array]
    return {arrays.index(result): parameter for result, parameter in program.aliases.items()}
