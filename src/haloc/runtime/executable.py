"""Executables: a compiled program, and one loaded on a device that runs it."""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from haloc.analysis.cost import cost_analysis
from haloc.cpu.run_context import RunContext
from haloc.errors import InvalidArgumentError
from haloc.formats.hlo_text import to_text
from haloc.interpreter import NanGuard
from haloc.ir.module import HloModule
from haloc.ir.shape import default_layout
from haloc.runtime.arguments import check_arguments
from haloc.runtime.array import ArrayImpl
from haloc.runtime.backend import Program
from haloc.runtime.device import Device
from haloc.runtime.hlo_module import XlaHloModule
from haloc.runtime.memory_pool import Block
from haloc.runtime.memory_stats import CompiledMemoryStats, compiled_memory_stats
from haloc.runtime.results import ExecuteResults, ShardedToken
from haloc.runtime.single_device_array import SingleDeviceArray
from haloc.runtime.tracing import trace_leaves
from haloc.runtime.xla_shape import PjRtLayout

if TYPE_CHECKING:
    from haloc.runtime.client import Client


def _references_of_a_sole_owner() -> int:
    """What `sys.getrefcount(block)` says when only the local variable refers to the block: it
    differs between Python versions."""
    block = object()
    return sys.getrefcount(block)


_SOLE_OWNER = _references_of_a_sole_owner()


class Executable:
    """A compiled program and what is known about it."""

    def __init__(self, program: Program):
        self._program = program
        self._fingerprint = b""

    def hlo_modules(self) -> list[XlaHloModule]:
        """[the optimised module]."""
        return [XlaHloModule(self._program.optimized)]

    @property
    def fingerprint(self) -> bytes:
        """Decimal digits; equal for equal optimised programs, in any process."""
        if not self._fingerprint:
            text = to_text(self._program.optimized).encode()
            digest = hashlib.sha256(text).digest()[:16]
            self._fingerprint = str(int.from_bytes(digest, "little")).encode()
        return self._fingerprint

    def get_output_memory_kinds(self) -> list[list[str]]:
        return [["device" for s in self._program.results if s.is_array]]

    def get_parameter_layouts(self) -> list[PjRtLayout]:
        """Row-major for every array leaf of the parameters: the order `execute` takes them in."""
        return [PjRtLayout(default_layout(s.rank)) for s in self._program.parameters]

    def get_output_layouts(self) -> list[PjRtLayout]:
        results = self._program.results
        return [PjRtLayout(default_layout(s.rank)) for s in results if s.is_array]

    def get_parameter_shardings(self) -> None:
        """None: the program is for one partition."""

    def get_output_shardings(self) -> None:
        """None: the program is for one partition."""

    def get_compiled_memory_stats(self) -> CompiledMemoryStats:
        return compiled_memory_stats(self._program)

    def cost_analysis(self) -> dict[str, float]:
        """XLA's cost properties of the optimised module: "flops", "bytes accessed", ..."""
        return cost_analysis(self._program.optimized)

    def size_of_generated_code_in_bytes(self) -> int:
        return self._program.code_size_bytes


class LoadedExecutable(Executable):
    """A program ready to run on one device. Safe to execute from several threads.

    source: the module before optimisation, for `trace`.
    """

    def __init__(self, program: Program, client: Client, device: Device, source: HloModule):
        super().__init__(program)
        self.client = client
        self._source = source
        self._device = device
        self._parameter_specs = [device.spec(s.dtype, s.dims) for s in program.parameters]
        arrays = [s for s in program.results if s.is_array]
        self._result_specs = [device.spec(s.dtype, s.dims) for s in arrays]
        self._result_sizes = [s.size_bytes for s in self._result_specs]
        self._arena_bytes = program.arena_bytes
        has_tokens = len(arrays) < len(program.results)
        self._run = self._run_with_tokens if has_tokens else program.run
        self._allocate = client.pool.allocate
        self._track = client.arrays.add
        self._aliases = _array_aliases(program)
        self._kept_alive: list[object] = []

    def local_devices(self) -> list[Device]:
        return [self._device]

    def keep_alive(self, object: object = None) -> None:
        """Hold a reference to an object for as long as this executable lives."""
        self._kept_alive.append(object)

    def execute(
        self, arguments: Sequence[ArrayImpl | list[ArrayImpl]], device: Device | None = None
    ) -> list[ArrayImpl]:
        """Run once; the array leaves of the result, tuples flattened.

        arguments: the array leaves of the parameters. An argument that input_output_alias names is
        deleted, and its memory becomes the output's where nothing else refers to it.
        Raises InvalidArgumentError for a wrong count, shape, element type or device and for deleted
        arrays, TypeError for what is not an array.
        """
        if device is not None and device is not self._device:
            raise InvalidArgumentError(
                f"execute(device={device!r}): the executable is loaded on {self._device!r}"
            )
        # This is the hot path of small programs: one comparison checks all arguments, and the
        # slow path below finds out what is wrong, or that nothing is.
        try:
            fits = [a._spec for a in arguments] == self._parameter_specs  # type: ignore[union-attr]
        except (AttributeError, TypeError):
            fits = False
        if not fits or not isinstance(arguments, (list, tuple)):  # an iterator is used up now
            arguments = check_arguments(arguments, self._parameter_specs)
        if self._aliases:
            return self._execute_donating(arguments)  # type: ignore[arg-type]
        # Blocks are held while the program runs: another thread may delete an argument.
        blocks = [a._block for a in arguments]  # type: ignore[union-attr]
        if None in blocks:
            check_arguments(arguments, self._parameter_specs)
        pointers = [b.pointer for b in blocks]  # type: ignore[union-attr]
        allocate = self._allocate
        results = [allocate(size) for size in self._result_sizes]
        if self._arena_bytes:
            arena = allocate(self._arena_bytes)
            self._run(pointers, [b.pointer for b in results], arena.pointer)
        else:
            self._run(pointers, [b.pointer for b in results], 0)
        return self._arrays(results)

    def _arrays(self, blocks: list[Block]) -> list[ArrayImpl]:
        track = self._track
        arrays = []
        for spec, block in zip(self._result_specs, blocks):
            array = SingleDeviceArray(spec, block)
            track(array)
            arrays.append(array)
        return arrays

    def _run_with_tokens(
        self,
        arguments: Sequence[int],
        results: Sequence[int],
        arena: int,
        run: RunContext | None = None,
    ) -> None:
        """`Program.run` given pointers of the array leaves only."""
        pointers = iter(results)
        leaves = [next(pointers) if s.is_array else 0 for s in self._program.results]
        self._program.run(arguments, leaves, arena, run)

    def _execute_donating(self, arguments: list[ArrayImpl]) -> list[ArrayImpl]:
        """`execute` for a program that leaves some results where arguments were."""
        donated = set(self._aliases.values())
        _refuse_second_use(arguments, donated)
        taken = {p: self._take(arguments[p]) for p in donated}
        blocks = [taken.get(i) or a._block for i, a in enumerate(arguments)]
        if None in blocks:
            check_arguments(arguments, self._parameter_specs)
        results: list[Block] = []
        for leaf, size in enumerate(self._result_sizes):
            parameter = self._aliases.get(leaf)
            results.append(self._allocate(size) if parameter is None else taken[parameter])
        arena = self._allocate(self._arena_bytes)
        pointers = [b.pointer for b in blocks]  # type: ignore[union-attr]
        self._run(pointers, [b.pointer for b in results], arena.pointer)
        return self._arrays(results)

    def _take(self, array: ArrayImpl) -> Block:
        """Delete an array; its memory, or a copy where a view or a clone still has it."""
        size_bytes = array._spec.size_bytes
        block = array._block
        array.delete()
        if isinstance(block, Block) and sys.getrefcount(block) == _SOLE_OWNER:
            return block
        if block is None:
            raise InvalidArgumentError("Invalid buffer passed: buffer has been deleted or donated.")
        copy = self._allocate(size_bytes)
        ctypes.memmove(copy.pointer, block.pointer, size_bytes)
        return copy

    def execute_with_token(
        self, arguments: Sequence[ArrayImpl | list[ArrayImpl]], device: Device | None = None
    ) -> tuple[list[ArrayImpl], ShardedToken]:
        """`execute`, and a token that is ready when the execution is."""
        return self.execute(arguments, device), ShardedToken(1)

    def execute_sharded(
        self, arguments: Sequence[ArrayImpl | list[ArrayImpl]], with_tokens: bool = False
    ) -> ExecuteResults:
        """arguments[i]: an array, or a list of its shards, one a device (so: one)."""
        outputs = [[array] for array in self.execute(arguments)]
        return ExecuteResults(outputs, ShardedToken(1 if with_tokens else 0))

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
        module = self._program.optimized if optimized else self._source
        return trace_leaves(module, arguments, every, guard)

    def __repr__(self) -> str:
        return f"<LoadedExecutable {self._program.optimized.name} on {self._device!r}>"


def _array_aliases(program: Program) -> dict[int, int]:
    """`Program.aliases` with the result numbered among the array leaves."""
    arrays = [leaf for leaf, shape in enumerate(program.results) if shape.is_array]
    return {arrays.index(result): parameter for result, parameter in program.aliases.items()}


def _refuse_second_use(arguments: Sequence[Any], donated: set[int]) -> None:
    first_use: dict[int, int] = {}
    for number, array in enumerate(arguments):
        first = first_use.setdefault(id(array), number)
        if first != number and (first in donated or number in donated):
            raise InvalidArgumentError(
                "Attempt to use a buffer that was previously donated in the same call to Execute() "
                f"(flattened argument {number}, replica 0, partition 0, first use: {first}). "
                "Toy example for this bug: `f(donate(a), a)`."
            )
