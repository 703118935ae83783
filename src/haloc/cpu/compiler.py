"""HloModule to a native program that one call runs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import haloc.cpu.control
import haloc.cpu.kernels  # noqa: F401  (registers the kernel emitters)
from haloc.codegen.target import Target, host_target
from haloc.cpu import pool
from haloc.cpu.jit import NativeCode
from haloc.cpu.linker import Linker
from haloc.cpu.run_context import RunContext
from haloc.cpu.sequencer import Sequencer
from haloc.ir.module import HloModule
from haloc.ir.shape import Shape
from haloc.passes.driver import PassOptions, PassReport
from haloc.passes.pipelines import run_pipeline

Progress = Callable[[str, int, int], None]
"""(stage, done, total)"""


@dataclass(frozen=True, slots=True)
class CpuOptions:
    """level: LLVM effort, 0 to 3. passes: whether the HLO pipeline runs (the module must be in the
    form the backend takes otherwise), as pass_options say. keep_text: keep the LLVM text on the
    program. on_progress: told each stage ("passes", "kernels", "native code") as it goes on."""

    level: int = 2
    passes: bool = True
    pass_options: PassOptions = field(default_factory=PassOptions)
    target: Target | None = None
    on_progress: Progress | None = None
    keep_text: bool = False


class CpuProgram:
    """A compiled module.

    parameters, results: shapes of the leaves of the entry's parameters and root, in order.
    aliases: result leaf -> parameter leaf whose memory it takes over (from input_output_alias):
    the argument's block is overwritten, and the same pointer has to be given for the result.
    pass_report: what the HLO passes did.
    arena_bytes: size of the block `run` works in; it needs no clearing and may be used by one run
    at a time. uses_run: whether the program looks at its run's context.
    """

    def __init__(
        self,
        optimized: HloModule,
        sequencer: Sequencer,
        code: NativeCode,
        aliases: dict[int, int],
        pass_report: PassReport,
        text: str,
    ):
        entry = optimized.entry
        self.optimized = optimized
        self.parameters: list[Shape] = [s for p in entry.parameters for s in p.shape.leaves()]
        self.result_shape = entry.root.shape
        self.results: list[Shape] = self.result_shape.leaves()
        self.aliases = aliases
        self.pass_report = pass_report
        self.arena_bytes = sequencer.arena.size_bytes
        self.code_size_bytes = code.size_bytes
        self.constant_bytes = sequencer.constants.size_bytes
        self.kernel_count = sequencer.kernels
        self.text = text
        self.uses_run = sequencer.uses_run
        self._constants = sequencer.constants.block()
        self._constants_pointer = self._constants.ctypes.data
        self._code = code
        self.function = code.function("program", 5)
        self._argument_array = ctypes.c_void_p * max(1, len(self.parameters))
        self._result_array = ctypes.c_void_p * max(1, len(self.results))

    def run(
        self,
        argument_pointers: Sequence[int],
        result_pointers: Sequence[int],
        arena_pointer: int,
        run: RunContext | None = None,
    ) -> None:
        """Execute once. Pointers are addresses of dense row-major arrays, one a leaf. run: the
        default is that of a lone participant. Raises what failed in the program."""
        if run is None and self.uses_run:
            run = RunContext()
        status = self.function(
            self._argument_array(*argument_pointers),
            self._result_array(*result_pointers),
            arena_pointer,
            self._constants_pointer,
            None if run is None else run.pointer,
        )
        if status:
            raise run.exception(status)  # type: ignore[union-attr]  # only runs with one can fail


def compile_module(module: HloModule, options: CpuOptions | None = None) -> CpuProgram:
    """Optimise a copy of `module` and compile it for `options.target` (default: this machine)."""
    options = options or CpuOptions()
    progress = options.on_progress or (lambda stage, done, total: None)
    target = options.target or host_target()
    optimized = module.clone()
    report = PassReport()
    if options.passes:
        progress("passes", 0, 1)
        run_pipeline(optimized, "cpu", options.pass_options, report)
    linker = Linker()
    total = sum(len(c) for c in optimized.post_order())
    sequencer = Sequencer(target, linker, lambda done: progress("kernels", done, total))
    aliases = _aliases(optimized)
    sequence = sequencer.program(optimized.entry, "program", aliases)
    text = linker.text(sequence)
    progress("native code", 0, 1)
    symbols = {**pool.install(), **linker.symbols}
    code = NativeCode(text, target, symbols, options.level)
    progress("native code", 1, 1)
    kept = text if options.keep_text else ""
    return CpuProgram(optimized, sequencer, code, aliases, report, kept)


def _aliases(module: HloModule) -> dict[int, int]:
    """input_output_alias by leaf numbers."""
    root = module.entry.root.shape
    parameters = [p.shape for p in module.entry.parameters]
    starts = [sum(len(s.leaves()) for s in parameters[:k]) for k in range(len(parameters))]
    return {
        leaf_number(root, output): starts[number] + leaf_number(parameters[number], index)
        for output, number, index, *_ in module.header.get("input_output_alias", ())
    }


def leaf_number(shape: Shape, index: tuple[int, ...]) -> int:
    """Position among the leaves of `shape` of the leaf at a tuple index."""
    number = 0
    for k in index:
        number += sum(len(e.leaves()) for e in shape.elements[:k])
        shape = shape.elements[k]
    return number
