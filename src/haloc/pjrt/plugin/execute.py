"""Execution that native code hands over: several devices, contexts, copies of donated memory, and
every call that is wrong."""

from __future__ import annotations

import ctypes
from typing import Any

from haloc.cpu.collective.call import ParticipantCall
from haloc.cpu.run_context import RunContext, next_run_id
from haloc.errors import FailedPreconditionError, InvalidArgumentError
from haloc.ffi.host import Host
from haloc.pjrt.abi import STRUCT
from haloc.pjrt.native.library import library
from haloc.pjrt.plugin.buffers import Buffer, new_buffer, new_storage, storage_pointer
from haloc.pjrt.plugin.entry import entry, int64s_at, pointers_at, set_pointer
from haloc.pjrt.plugin.executable import EXECUTABLES, PluginExecutable
from haloc.pjrt.plugin.host_callbacks import host_of


@entry("LoadedExecutable_Execute")
def execute(args: Any) -> None:
    executable = EXECUTABLES[args.executable]
    if executable.loaded_handle.get("is_deleted"):
        raise FailedPreconditionError("Execute() of a deleted executable")
    options = STRUCT["ExecuteOptions"].from_address(args.options)
    kept = set(
        int64s_at(options.non_donatable_input_indices, options.num_non_donatable_input_indices)
    )
    given = [
        [Buffer(b) for b in pointers_at(list_, args.num_args)]
        for list_ in pointers_at(args.argument_lists, args.num_devices)
    ]
    launches = [_Launch(executable, n, buffers, kept) for n, buffers in enumerate(given)]
    if len(launches) != len(executable.devices):
        raise InvalidArgumentError(
            f"Execute() with arguments for {len(launches)} devices; the executable runs on "
            f"{len(executable.devices)}"
        )
    _run(executable, launches, host_of(executable, options.context))
    outputs = pointers_at(args.output_lists, args.num_devices)
    for launch, list_ in zip(launches, outputs):
        for number, buffer in enumerate(launch.finish()):
            set_pointer(list_ + 8 * number, buffer)
    if args.device_complete_events:
        ready = library().call("ready_event")
        for number in range(args.num_devices):
            set_pointer(args.device_complete_events + 8 * number, ready)


class _Launch:
    """One device's part of an execution: arguments checked, memory for its results at hand."""

    def __init__(
        self, executable: PluginExecutable, number: int, buffers: list[Buffer], kept: set[int]
    ):
        self.program = executable.program
        self.device = executable.devices[number]
        self.memories = executable.result_memories[number]
        self.where = f"replica {number}" if len(executable.devices) > 1 else "the program"
        self.buffers = buffers
        self._check()
        self.arguments = [b.pointer for b in buffers]
        self.donated: list[Buffer] = []
        self.storages: list[int] = []
        for leaf, shape in enumerate(self.program.results):
            source = self.program.aliases.get(leaf)
            if source is None:
                self.storages.append(new_storage(shape.byte_size))
            else:
                self.storages.append(self._take(source, keep=source in kept))
        self.results = [storage_pointer(s) for s in self.storages]

    def _check(self) -> None:
        wanted = self.program.parameters
        if len(self.buffers) != len(wanted):
            raise InvalidArgumentError(
                f"Execution supplied {len(self.buffers)} buffers but compiled program expected "
                f"{len(wanted)} buffers"
            )
        taken = set(self.program.aliases.values())
        first_use: dict[int, int] = {}
        for number, (buffer, shape) in enumerate(zip(self.buffers, wanted)):
            buffer.check_alive()
            if buffer.nbytes != shape.byte_size:
                raise InvalidArgumentError(
                    f"Executable expected parameter {number} of size {shape.byte_size} "
                    f"({shape}) but got buffer with incompatible size {buffer.nbytes} "
                    f"({buffer.dtype.name}{list(buffer.dims)})"
                )
            if buffer.device != self.device.address:
                raise InvalidArgumentError(
                    f"Buffer passed to Execute() as argument {number} to {self.where} is on "
                    "another device than the program"
                )
            first = first_use.setdefault(buffer.address, number)
            if first != number and (first in taken or number in taken):
                raise InvalidArgumentError(
                    "Attempt to use a buffer that was previously donated in the same call to "
                    f"Execute() (flattened argument {number}, replica 0, partition 0, first use: "
                    f"{first}). Toy example for this bug: `f(donate(a), a)`."
                )

    def _take(self, source: int, *, keep: bool) -> int:
        """A reference to memory for a result that holds the argument's value."""
        buffer = self.buffers[source]
        if not keep and buffer.is_own and buffer.references == 1:
            self.donated.append(buffer)
            library().call("storage_retain", buffer.storage)
            return buffer.storage
        storage = new_storage(buffer.nbytes)
        ctypes.memmove(storage_pointer(storage), buffer.pointer, buffer.nbytes)
        self.arguments[source] = storage_pointer(storage)
        if not keep:
            self.donated.append(buffer)
        return storage

    def finish(self) -> list[int]:
        """The results as buffers; the donated arguments are deleted."""
        for buffer in self.donated:
            library().call("buffer_delete", buffer.address)
        return [
            new_buffer(shape.dtype, shape.dims, storage, self.device.address, memory.address)
            for shape, storage, memory in zip(self.program.results, self.storages, self.memories)
        ]


def _run(executable: PluginExecutable, launches: list[_Launch], host: Host) -> None:
    """All participants at once; what they work with is given back if they fail."""
    heap, program = library(), executable.program
    size = heap.call("heap_class", program.arena_bytes)
    arenas = [heap.call("heap_allocate", size) for _ in launches]
    partitions = executable.compilation.num_partitions
    run_id = next_run_id()
    calls = [
        ParticipantCall(
            launch.arguments,
            launch.results,
            arena,
            RunContext(*divmod(n, partitions), run_id, host=host),
        )
        for n, (launch, arena) in enumerate(zip(launches, arenas))
    ]
    timeout_s = executable.compilation.flags.xla_cpu_collective_call_terminate_timeout_seconds
    try:
        program.run_gang(calls, float(timeout_s))
    except BaseException:
        for launch in launches:
            for storage in launch.storages:
                heap.call("storage_release", storage)
        raise
    finally:
        for arena in arenas:
            heap.call("heap_free", arena, size)
