"""Removal of optimization barriers."""

from __future__ import annotations

from haloc.ir.module import HloModule
from haloc.passes.driver import hlo_pass


@hlo_pass("optimization-barrier-expander")
def optimization_barrier_expander(module: HloModule) -> bool:
    """opt-barrier(x) => x

    Goes last: a barrier keeps apart what simplification would otherwise merge.
    """
    changed = False
    for barrier in module.instructions("opt-barrier"):
        barrier.replace_uses_with(barrier.operands[0])
        barrier.computation.remove(barrier)
        changed = True
    return changed
