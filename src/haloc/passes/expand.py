"""Expansion of ops that are defined by other ops."""

from __future__ import annotations

from haloc.errors import InternalError
from haloc.ir.module import HloModule
from haloc.ops.table import Expand, op
from haloc.passes.driver import hlo_pass

MAX_ROUNDS = 10


@hlo_pass("expand")
def expand(module: HloModule) -> bool:
    """f(x) => its definition by other ops, for every op whose row says Expand

    An expansion may use ops that are expanded in turn.
    """
    changed = False
    for _ in range(MAX_ROUNDS):
        expanded = False
        for instruction in module.instructions():
            lower = op(instruction).lower
            if isinstance(lower, Expand):
                instruction.replace_uses_with(lower.fn(instruction))
                instruction.computation.remove(instruction)
                expanded = True
        if not expanded:
            if changed:
                module.remove_unreachable_computations()
            return changed
        changed = True
        module.sort()
    raise InternalError(f"expansions are still left after {MAX_ROUNDS} rounds")
