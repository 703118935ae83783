"""Inlining of calls."""

from __future__ import annotations

from haloc.analysis.call_graph import callers
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.passes.driver import hlo_pass


@hlo_pass("call-inliner")
def call_inliner(module: HloModule, *, max_instructions: int = 200_000) -> bool:
    """call(x, to_apply=f) => f(x)

    Callees first, so nested calls go in one run. Stays: a call with control dependencies, one
    that runs on another execution thread, and, once the module has `max_instructions`
    instructions, one whose callee has other callers (calls of calls can grow without bound).
    """
    changed = False
    total = sum(len(c) for c in module.computations.values())
    uses = callers(module)
    for computation in module.post_order():
        for instruction in computation.instructions:
            if instruction.opcode != "call":
                continue
            callee: HloComputation = instruction.attrs["to_apply"]
            if uses[callee] > 1 and total + len(callee) > max_instructions:
                continue
            if callee.execution_thread != computation.execution_thread:
                continue
            if instruction.control_predecessors or instruction.control_successors:
                continue
            inline(instruction, callee)
            total += len(callee)
            changed = True
        computation.sort()
    if changed:
        module.remove_unreachable_computations()
    return changed


def inline(call: HloInstruction, callee: HloComputation) -> HloInstruction:
    """Put a copy of `callee`'s instructions in `call`'s place; returns the copied root."""
    computation = call.computation
    copies: dict[HloInstruction, HloInstruction] = {}
    for old in callee.instructions:
        if "parameter_number" in old.attrs:
            copies[old] = call.operands[old.attrs["parameter_number"]]
            continue
        new = old.copy_on(copies[o] for o in old.operands)
        new.control_predecessors = tuple(copies[p] for p in old.control_predecessors)
        copies[old] = computation.add(new, name=old.name, before=call)
    result = copies[callee.root]
    call.replace_uses_with(result)
    computation.remove(call)
    return result
