"""Dead code elimination."""

from __future__ import annotations

from haloc.analysis.effects import Effects
from haloc.ir.module import HloComputation, HloModule
from haloc.passes.driver import hlo_pass


@hlo_pass("dce")
def dce(module: HloModule) -> bool:
    """unused pure instruction => nothing;  unreachable computation => nothing

    Parameters and instructions with side effects stay. Callees go first, so that an instruction
    whose callee lost its last reason to exist is judged after it.
    """
    changed = module.remove_unreachable_computations()
    effects = Effects()
    for computation in module.post_order():
        changed |= remove_dead_instructions(computation, effects)
    changed |= module.remove_unreachable_computations()
    return changed


def remove_dead_instructions(computation: HloComputation, effects: Effects) -> bool:
    """Drop what neither the root nor a side effect needs; whether there was any."""
    changed = False
    for instruction in reversed(computation.instructions):
        if instruction.users or instruction is computation.root:
            continue
        if effects.is_removable(instruction):
            computation.remove(instruction)
            changed = True
    return changed
