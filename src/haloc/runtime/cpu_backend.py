"""The CPU backend as clients use it: flags and the debug ladder turned into compiler options."""

from __future__ import annotations

import re
import sys
import warnings

from haloc.cpu.compiler import CpuOptions, CpuProgram, compile_module, optimize
from haloc.cpu.disk_cache import DiskCache
from haloc.flags import CompilerOptions, Flags
from haloc.formats.hlo_text import PrintOptions, to_text
from haloc.ir.module import HloModule
from haloc.passes.driver import PASSES, PassOptions


def compile_for_cpu(module: HloModule, options: CompilerOptions) -> CpuProgram:
    """Compile a verified module, which is left as it is.

    Acts on xla_backend_optimization_level, xla_disable_hlo_passes and HALOC_DEBUG 3, 5, 6.
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
    return CpuOptions(
        level=level,
        pass_options=PassOptions(
            disable=_disabled(flags), dump=_show if flags.debug >= 5 else None
        ),
        on_progress=options.on_progress,
        keep_text=flags.debug >= 6,
        cache=DiskCache.of(flags),
        num_replicas=options.num_replicas,
        num_partitions=options.num_partitions,
    )


def _disabled(flags: Flags) -> str:
    """The regular expression of xla_disable_hlo_passes, a list of names."""
    names = [n.strip() for n in flags.xla_disable_hlo_passes.split(",") if n.strip()]
    for name in names:
        if name not in PASSES:
            warnings.warn(f"xla_disable_hlo_passes: haloc has no pass {name!r}", stacklevel=2)
    return "|".join(map(re.escape, names))


def _show(step: int, name: str, module: HloModule) -> None:
    if step:
        print(f"--- after {name} (step {step}) ---", file=sys.stderr)
        print(to_text(module, PrintOptions.short()), file=sys.stderr)
