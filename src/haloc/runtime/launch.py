"""One execution of a program on its devices: memory, donation, and when it runs."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from haloc.cpu.collective.call import ParticipantCall
from haloc.cpu.run_context import RunContext, next_run_id
from haloc.errors import InvalidArgumentError
from haloc.ffi.reentry import inside_a_program, is_inside_a_program
from haloc.runtime.array_spec import ArraySpec
from haloc.runtime.backend import Program
from haloc.runtime.device import Device
from haloc.runtime.device_queues import DeviceQueues, Task
from haloc.runtime.memory_pool import Block, MemoryPool
from haloc.runtime.pending import Pending
from haloc.runtime.single_device_array import AnyBlock, SingleDeviceArray


@dataclass(frozen=True, slots=True)
class Launcher:
    """Launches one program. devices: of its participants, by flattened logical id.

    parameter_specs, result_specs: of the array leaves, by participant. aliases: result, counted
    among the array leaves, -> parameter. is_inline: run it on the calling thread when the devices
    are idle; else it always goes through their queues. timeout_s: how long participants wait for
    each other. host: for the host callbacks of its runs.
    """

    program: Program
    devices: tuple[Device, ...]
    num_partitions: int
    parameter_specs: Sequence[Sequence[ArraySpec]]
    result_specs: Sequence[Sequence[ArraySpec]]
    aliases: dict[int, int]
    is_inline: bool
    queues: DeviceQueues
    pool: MemoryPool
    track: Callable[[SingleDeviceArray], None]
    timeout_s: float
    host: Any = None

    def launch(
        self, arguments: Sequence[Sequence[SingleDeviceArray]]
    ) -> tuple[list[list[SingleDeviceArray]], Pending | None]:
        """Run on checked arguments, by participant; results likewise, and what they wait for.

        Donated arguments are deleted. Raises the program's failure if it has run here; else the
        results do when they are read.
        """
        if self.aliases:
            for number, own in enumerate(arguments):
                self._refuse_second_use(own, number)
        # Called by a program on these devices, it cannot wait for its turn after that program.
        is_nested = is_inside_a_program()
        if not is_nested and (not self.is_inline or not self.queues.are_idle(self.devices)):
            self.queues.make_room(self.devices)
        with self.queues.lock:
            execution = self._prepared(arguments)
            waits = not self.is_inline or not self.queues.are_idle(self.devices)
            pending = Pending() if not is_nested and (waits or execution.after) else None
            if pending is not None:
                self.queues.add(Task(self.devices, execution.run, execution.held(), pending))
        if pending is None:
            execution.run()
        arrays = [
            [SingleDeviceArray(spec, block, True, pending) for spec, block in zip(specs, blocks)]
            for specs, blocks in zip(self.result_specs, execution.results)
        ]
        for own in arrays:
            for array in own:
                self.track(array)
        return arrays, pending

    def _prepared(self, arguments: Sequence[Sequence[SingleDeviceArray]]) -> _Execution:
        """Memory for everything: arguments are taken from their arrays, donated ones for good."""
        execution = _Execution(self)
        aliases, allocate = self.aliases, self.pool.allocate
        for own, specs in zip(arguments, self.result_specs):
            blocks: list[Any] = [a._block for a in own]
            if None in blocks:
                raise InvalidArgumentError(
                    "Invalid buffer passed: buffer has been deleted or donated."
                )
            execution.after += [a._pending for a in own if a._pending is not None]
            for parameter in aliases.values():
                array = own[parameter]
                array.delete()
                size_bytes = array._spec.size_bytes
                blocks[parameter] = self._made_ours(execution, blocks[parameter], size_bytes)
            results = [
                blocks[aliases[leaf]] if leaf in aliases else allocate(spec.size_bytes)
                for leaf, spec in enumerate(specs)
            ]
            execution.arguments.append(blocks)
            execution.results.append(results)
        return execution

    def _made_ours(self, execution: _Execution, block: AnyBlock, size_bytes: int) -> AnyBlock:
        """Memory that the program may overwrite, with the block's elements: the block, unless a
        view or a clone still has it."""
        # Tasks before this one have read it, and let go of it, when this one runs.
        others = _references(block) - self.queues.holds(block) - _REFERENCES_HERE
        if isinstance(block, Block) and others <= 0:
            return block
        copy = self.pool.allocate(size_bytes)
        execution.copy_sources.append(block)
        execution.copy_targets.append(copy)
        execution.copy_bytes.append(size_bytes)
        return copy

    def _refuse_second_use(self, arguments: Sequence[SingleDeviceArray], number: int) -> None:
        if len(set(map(id, arguments))) == len(arguments):
            return
        donated = set(self.aliases.values())
        first_use: dict[int, int] = {}
        for position, array in enumerate(arguments):
            first = first_use.setdefault(id(array), position)
            if first != position and (first in donated or position in donated):
                replica, partition = divmod(number, self.num_partitions)
                raise InvalidArgumentError(
                    "Attempt to use a buffer that was previously donated in the same call to "
                    f"Execute() (flattened argument {position}, replica {replica}, partition "
                    f"{partition}, first use: {first}). Toy example for this bug: "
                    "`f(donate(a), a)`."
                )


class _Execution:
    """Memory of one execution, and what must have ended before."""

    def __init__(self, launcher: Launcher):
        self.launcher = launcher
        self.arguments: list[list[AnyBlock]] = []
        self.results: list[list[AnyBlock]] = []
        self.copy_sources: list[AnyBlock] = []
        self.copy_targets: list[AnyBlock] = []
        self.copy_bytes: list[int] = []
        self.after: list[Pending] = []

    def held(self) -> list[list[AnyBlock]]:
        """The lists in which this object refers to blocks."""
        return [*self.arguments, *self.results, self.copy_sources, self.copy_targets]

    def run(self) -> None:
        """Wait, copy, run. Raises the failure of what it waited for, or the program's."""
        for pending in self.after:
            pending.wait()
        for target, source, size in zip(self.copy_targets, self.copy_sources, self.copy_bytes):
            ctypes.memmove(target.pointer, source.pointer, size)
        launcher = self.launcher
        program = launcher.program
        arenas = [launcher.pool.allocate(program.arena_bytes) for _ in self.arguments]
        if len(arenas) == 1 and not program.uses_run:
            given = [b.pointer for b in self.arguments[0]]
            program.run(given, self._leaves(self.results[0]), arenas[0].pointer)
            return
        calls, run_id = [], next_run_id()
        for number, (arguments, results) in enumerate(zip(self.arguments, self.results)):
            replica, partition = divmod(number, launcher.num_partitions)
            context = RunContext(replica, partition, run_id, host=launcher.host)
            given = [b.pointer for b in arguments]
            leaves = self._leaves(results)
            calls.append(ParticipantCall(given, leaves, arenas[number].pointer, context))
        with inside_a_program():
            program.run_gang(calls, launcher.timeout_s, (self, arenas))

    def _leaves(self, results: list[AnyBlock]) -> list[int]:
        """Addresses of the result's leaves: a token has no memory."""
        pointers = [b.pointer for b in results]
        leaves = self.launcher.program.results
        if len(pointers) == len(leaves):
            return pointers
        rest = iter(pointers)
        return [next(rest) if s.is_array else 0 for s in leaves]


def _references(block: Any) -> int:
    return sys.getrefcount(block)


def _references_in_prepared() -> int:
    """What `_references` says in `_made_ours` of a block that a list of its caller alone refers
    to: it differs between Python versions."""

    def like_made_ours(block: Any) -> int:
        return _references(block)

    blocks = [object()]
    return like_made_ours(blocks[0])


_REFERENCES_HERE = _references_in_prepared()
