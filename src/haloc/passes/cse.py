"""Common subexpression elimination."""

from __future__ import annotations

from haloc.analysis.effects import Effects
from haloc.analysis.equality import Fingerprints, instruction_key
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.passes.driver import hlo_pass


@hlo_pass("cse")
def cse(module: HloModule) -> bool:
    """f(x), f(x) => one f(x), for pure f with equal attributes, callees and literals

    Instructions with control dependencies are left alone. Expects dce afterwards for callees.
    """
    changed = False
    effects = Effects()
    fingerprints: Fingerprints = {}
    for computation in module.post_order():  # callees first: their fingerprints are final
        changed |= _merge(computation, effects, fingerprints)
    return changed


def _merge(computation: HloComputation, effects: Effects, fingerprints: Fingerprints) -> bool:
    changed = False
    numbers: dict[HloInstruction, int] = {}
    known: dict[object, HloInstruction] = {}
    for number, instruction in enumerate(computation.instructions):
        numbers[instruction] = number
        if instruction.control_predecessors or instruction.control_successors:
            continue
        if "parameter_number" in instruction.attrs or not effects.is_pure(instruction):
            continue
        key = (
            instruction_key(instruction, numbers, fingerprints),
            str(instruction.sharding) if instruction.sharding is not None else "",
            tuple(sorted(instruction.frontend_attributes.items())),
        )
        first = known.setdefault(key, instruction)
        if first is instruction:
            continue
        instruction.replace_uses_with(first)
        computation.remove(instruction)
        changed = True
    return changed
