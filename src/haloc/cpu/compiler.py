"""HloModule to a native program that one call runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import haloc.cpu.collective.emit
import haloc.cpu.collective.transfer
import haloc.cpu.control
import haloc.cpu.kernels  # noqa: F401  (registers the kernel emitters)
from haloc.codegen.target import Target, host_target
from haloc.cpu.builder import Builder
from haloc.cpu.collective.sites import Sites
from haloc.cpu.disk_cache import DiskCache
from haloc.cpu.features import code_features
from haloc.cpu.linker import Linker
from haloc.cpu.program import FUNCTION, CpuProgram, ProgramFacts
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
    program. on_progress: told each stage ("passes", "kernels", "native code") as it goes on.
    cache: where compiled functions are kept. fast_math: LLVM's flags for float arithmetic."""

    level: int = 2
    fast_math: str = ""
    passes: bool = True
    pass_options: PassOptions = field(default_factory=PassOptions)
    target: Target | None = None
    on_progress: Progress | None = None
    keep_text: bool = False
    cache: DiskCache | None = None
    num_replicas: int = 1
    num_partitions: int = 1


def compile_module(module: HloModule, options: CpuOptions | None = None) -> CpuProgram:
    """Optimise a copy of `module` and compile it for `options.target` (default: this machine)."""
    options = options or CpuOptions()
    progress = options.on_progress or (lambda stage, done, total: None)
    target = options.target or host_target()
    report = PassReport()
    progress("passes", 0, 1)
    optimized = optimize(module, options, report)
    builder = Builder(target, options.level, options.cache)
    linker = Linker(builder.add, options.fast_math)
    total = sum(len(c) for c in optimized.post_order())
    sites = Sites(options.num_replicas, options.num_partitions)
    sequencer = Sequencer(target, linker, lambda done: progress("kernels", done, total), sites)
    aliases = _aliases(optimized)
    try:
        sequence = sequencer.program(optimized.entry, FUNCTION, aliases)
        progress("native code", 0, 1)
        image = builder.image(linker.program_unit(FUNCTION, sequence), FUNCTION)
    finally:
        builder.close()
    progress("native code", 1, 1)
    facts = ProgramFacts(
        parameters=tuple(s for p in optimized.entry.parameters for s in p.shape.leaves()),
        result=optimized.entry.root.shape,
        aliases=aliases,
        arena_bytes=sequencer.arena.size_bytes,
        kernel_count=sequencer.kernels,
        uses_run=sequencer.uses_run,
        cost_ns=sequencer.cost_ns,
        calls_host=sequencer.calls_host,
        num_partitions=options.num_partitions,
        sites=tuple(sites.all),
        gang_bytes=sites.gang_bytes,
        features=code_features(target.features),
    )
    constants = sequencer.constants.block()
    symbols = dict(linker.symbols)
    program = CpuProgram(facts, image, constants, lambda: optimized, symbols)
    program.pass_report = report
    program.text = linker.text(sequence) if options.keep_text else ""
    return program


def optimize(module: HloModule, options: CpuOptions, report: PassReport | None = None) -> HloModule:
    """A copy of the module as `compile_module` compiles it."""
    optimized = module.clone()
    if options.passes:
        run_pipeline(optimized, "cpu", options.pass_options, report or PassReport())
    return optimized


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
