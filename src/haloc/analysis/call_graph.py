"""Which computations run as sequences of kernels, and which only inside one instruction."""

from __future__ import annotations

from haloc.ir.module import HloComputation, HloModule
from haloc.ops.table import Structure, op


def sequenced_computations(module: HloModule) -> list[HloComputation]:
    """The entry and the bodies of control flow (while, conditional, call), callees first.

    Computations called by any other op (reduce, sort, map, fusion, ...) describe what happens to
    single elements inside that op.
    """
    found: dict[HloComputation, None] = {}
    stack = [module.entry]
    while stack:
        computation = stack.pop()
        if computation in found:
            continue
        found[computation] = None
        for instruction in computation.instructions:
            called = instruction.called_computations
            # A fusion's computation is one kernel, not a sequence of them.
            is_fusion = instruction.opcode == "fusion"
            if called and not is_fusion and op(instruction).lower is Structure.CONTROL:
                stack.extend(called)
    return [c for c in module.post_order() if c in found]


def callers(module: HloModule) -> dict[HloComputation, int]:
    """How many times each computation is named by an instruction of a reachable computation."""
    counts: dict[HloComputation, int] = {}
    for computation in module.post_order():
        for instruction in computation.instructions:
            for callee in instruction.called_computations:
                counts[callee] = counts.get(callee, 0) + 1
    return counts
