"""The CPU backend as clients use it: flags and the debug ladder turned into compiler options."""

from __future__ import annotations

import re
import sys
import warnings

from haloc.codegen.fast_math import fast_math_flags
from haloc.cpu.compiler import CpuOptions, CpuProgram, compile_module, optimize
from haloc.cpu.disk_cache import DiskCache
from haloc.flags import CompilerOptions, Flags
from haloc.formats.hlo_text import PrintOptions, to_text
from haloc.ir.module import HloModule
from haloc.passes.driver import PASSES, PassOptions


def compile_for_cpu(module: HloModule, options: CompilerOptions) -> CpuProgram:
    """Compile a verified module, which is left as it is.

    Acts on xla_backend_optimization_level, xla_disable_hlo_passes, xla_enable_hlo_passes_only,
    xla_llvm_disable_expensive_passes, xla_cpu_*fast_math* and HALOC_DEBUG 3, 5, 6.
    """
    flags = options.flags
    program = compile_module(module, _cpu_options(options))
    if flags.debug >= 3:
        print(program.pass_report, file=sys.stderr)
    if flags.debug >= 6:
        print(program.text, file=sys.stderr)
    return program


def optimize_for_cpu(module: HloModule, options: CompilerOptions) -> HloModule:
    """The module that `compile_for_cpu` makes code of."""
    return optimize(module, _cpu_options(options))


def _cpu_options(options: CompilerOptions) -> CpuOptions:
    flags = options.flags
    level = min(flags.xla_backend_optimization_level, CpuOptions().level)
    if level < 0:
        warnings.warn(f"xla_backend_optimization_level={level} is taken as 0", stacklevel=3)
        level = 0
    if flags.xla_llvm_disable_expensive_passes:
        level = min(level, 1)
    return CpuOptions(
        level=level,
        fast_math=fast_math_flags(flags),
        pass_options=PassOptions(
            enable=_listed(flags, "xla_enable_hlo_passes_only"),
            disable=_listed(flags, "xla_disable_hlo_passes"),
            dump=_show if flags.debug >= 5 else options.on_pass,
        ),
        on_progress=options.on_progress,
        keep_text=flags.debug >= 6 or options.keep_text,
        cache=DiskCache.of(flags),
        num_replicas=options.num_replicas,
        num_partitions=options.num_partitions,
    )


def _listed(flags: Flags, flag: str) -> str:
    """The regular expression of a flag that is a list of passes."""
    names = [n.strip() for n in getattr(flags, flag).split(",") if n.strip()]
    for name in names:
        if name not in PASSES:
            warnings.warn(f"{flag}: haloc has no pass {name!r}", stacklevel=2)
    return "|".join(map(re.escape, names))


def _show(step: int, name: str, module: HloModule) -> None:
    if step:
        print(f"--- after {name} (step {step}) ---", file=sys.stderr)
        print(to_text(module, PrintOptions.short()), file=sys.stderr)
