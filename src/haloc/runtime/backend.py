"""What a client asks of a backend: compile a module into a `Program`, and run that.

The interpreter is the smallest backend, and the one whose answers define right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from haloc import interpreter
from haloc.cpu.collective.call import ParticipantCall
from haloc.cpu.run_context import RunContext
from haloc.errors import InternalError, ResourceExhaustedError
from haloc.flags import CompilerOptions
from haloc.formats.hlo_text.header import entry_layout
from haloc.interpreter.leaves import flat, laid_out_memory, nested
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction, HloModule
from haloc.ir.shape import Shape
from haloc.ops.table import Structure, op


class Program(Protocol):
    """A compiled module.

    parameters, results: shapes of the leaves of the entry's parameters and of its root, in
    depth-first order, tokens included. aliases: {result leaf: parameter leaf} of
    input_output_alias; such a pair is given one pointer, and the result is left where the argument
    was. Sizes are in bytes, of what is really allocated: machine code, scratch memory of one run,
    constants. uses_run: whether it matters which participant runs the program. cost_ns: estimated
    time of a run.
    """

    parameters: list[Shape]
    results: list[Shape]
    result_shape: Shape
    optimized: HloModule
    aliases: dict[int, int]
    code_size_bytes: int
    arena_bytes: int
    constant_bytes: int
    uses_run: bool
    cost_ns: float

    def run_gang(
        self, calls: Sequence[ParticipantCall], timeout_s: float, keep: object = None
    ) -> None:
        """Execute once by all participants together, or by one. Raises the first failure of any;
        DeadlineExceededError when participants wait for others longer than timeout_s. keep: what
        must stay alive for as long as any participant runs, even beyond a failure.
        """
        ...

    def run(
        self,
        argument_pointers: Sequence[int],
        result_pointers: Sequence[int],
        arena_pointer: int,
        run: RunContext | None = None,
    ) -> None:
        """Execute once. Pointers are to dense row-major arrays, one a leaf (0 for a token);
        results and arena are 64-byte aligned. run: which participant this is; the default is a
        lone one.

        May be called from several threads at once, each with results and an arena of its own.
        """
        ...


class Backend(Protocol):
    """platform: the name its clients and devices go by."""

    platform: str

    def compile(self, module: HloModule, options: CompilerOptions) -> Program:
        """Compile a verified module, which the backend may change."""
        ...


class InterpreterBackend:
    platform = "interpreter"

    def compile(self, module: HloModule, options: CompilerOptions) -> Program:
        return InterpreterProgram(module, options.num_replicas, options.num_partitions)


class CpuBackend:
    platform = "cpu"

    def compile(self, module: HloModule, options: CompilerOptions) -> Program:
        # Imported on first use: LLVM takes longer to load than everything else in haloc.
        from haloc.runtime.cpu_backend import compile_for_cpu  # noqa: PLC0415

        return compile_for_cpu(module, options)


class InterpreterProgram:
    """A `Program` that walks the module with the NumPy meanings of its ops."""

    code_size_bytes = 0
    arena_bytes = 0
    constant_bytes = 0
    cost_ns = float("inf")

    def __init__(self, module: HloModule, num_replicas: int = 1, num_partitions: int = 1):
        self.optimized = module
        self.counts = (num_replicas, num_partitions)
        self.parameter_shapes, self.result_shape = entry_layout(module)
        self.parameters = [s for p in self.parameter_shapes for s in p.leaves()]
        self.results = self.result_shape.leaves()
        self.aliases = input_output_aliases(module)
        self.uses_run = any(map(_knows_participants, module.instructions()))

    def run(
        self,
        argument_pointers: Sequence[int],
        result_pointers: Sequence[int],
        arena_pointer: int,
        run: RunContext | None = None,
    ) -> None:
        run = run or RunContext()
        call = ParticipantCall(argument_pointers, result_pointers, arena_pointer, run)
        self.run_gang([call], 0.0)

    def run_gang(
        self, calls: Sequence[ParticipantCall], timeout_s: float, keep: object = None
    ) -> None:
        """The interpreter finds out at once that participants wait in vain: no time passes."""
        if self.counts == (1, 1) and len(calls) > 1:  # on each device by itself
            for call in calls:
                self.run_gang([call], timeout_s, keep)
            return
        arguments = [self._arguments(c.arguments) for c in calls]
        try:
            values = interpreter.run_participants(
                self.optimized, arguments, *self.counts, host=calls[0].run.host
            )
        except MemoryError as error:
            raise ResourceExhaustedError(str(error)) from None
        # All results exist before any is stored: a result may lie where an argument does.
        for call, value in zip(calls, values, strict=True):
            self._store(value, call.results)

    def _arguments(self, pointers: Sequence[int]) -> list[Value]:
        pairs = zip(pointers, self.parameters, strict=True)
        leaves = iter([laid_out_memory(p, s) for p, s in pairs])
        return [nested(shape, leaves) for shape in self.parameter_shapes]

    def _store(self, value: Value, pointers: Sequence[int]) -> None:
        for leaf, shape, pointer in zip(flat(value), self.results, pointers, strict=True):
            if leaf is None:
                continue
            if leaf.shape != shape.dims or leaf.dtype != shape.dtype.numpy:
                raise InternalError(f"interpreter gave {leaf.dtype}{leaf.shape} for {shape}")
            target = laid_out_memory(pointer, shape)
            if target is not None:
                np.copyto(target, leaf)


def _knows_participants(instruction: HloInstruction) -> bool:
    met = (Structure.COLLECTIVE, Structure.POINT_TO_POINT, Structure.HOST)
    named = ("replica-id", "partition-id", "custom-call")
    return op(instruction).lower in met or instruction.opcode in named


def input_output_aliases(module: HloModule) -> dict[int, int]:
    """{result leaf: parameter leaf} of input_output_alias, numbered as in `Program`."""
    parameters = [p.shape for p in module.entry.parameters]
    firsts = [sum(len(s.leaves()) for s in parameters[:i]) for i in range(len(parameters))]
    return {
        _leaf_number(module.entry.root.shape, output): firsts[number]
        + _leaf_number(parameters[number], index)
        for output, number, index, *_ in module.header.get("input_output_alias", ())
    }


def _leaf_number(shape: Shape, index: Sequence[int]) -> int:
    number = 0
    for i in index:
        number += sum(len(e.leaves()) for e in shape.elements[:i])
        shape = shape.elements[i]
    return number
