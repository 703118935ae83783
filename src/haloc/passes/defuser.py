"""Undoing of the fusions a program comes with."""

from __future__ import annotations

from haloc.ir.module import HloModule
from haloc.passes.call_inliner import inline
from haloc.passes.driver import hlo_pass


@hlo_pass("defuser")
def defuser(module: HloModule) -> bool:
    """fusion(x, calls=f) => f(x)

    Fusions in given programs were chosen by another compiler for its own backend: haloc's own pass
    chooses anew, and its backend takes no others. Callees first. One with control dependencies
    stays.
    """
    changed = False
    for computation in module.post_order():
        for instruction in computation.instructions:
            if instruction.opcode != "fusion":
                continue
            if instruction.control_predecessors or instruction.control_successors:
                continue
            inline(instruction, instruction.attrs["calls"])
            changed = True
        computation.sort()
    if changed:
        module.remove_unreachable_computations()
    return changed
