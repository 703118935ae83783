"""The order of sends and receives, as dependencies."""

from __future__ import annotations

from itertools import pairwise

from haloc.analysis.effects import Effects
from haloc.ir.module import HloComputation, HloModule
from haloc.ops.table import Effect, Structure, attr, op
from haloc.passes.driver import hlo_pass


@hlo_pass("transfer-order")
def transfer_order(module: HloModule) -> bool:
    """send(x, t); recv-done(y) => send(x, t); recv-done(y), control-predecessors={send}

    So for any two side effects, one after the other, of a module whose participants send to each
    other: a wait that goes before the send that another participant waits for would never end,
    and what comes over one channel is told apart by its order alone.
    """
    if not any(
        op(i).lower is Structure.POINT_TO_POINT and not attr(i, "is_host_transfer")
        for i in module.instructions()
    ):
        return False
    effects = Effects()
    return sum(_chain(c, effects) for c in module.post_order()) > 0


def _chain(computation: HloComputation, effects: Effects) -> bool:
    happens = [i for i in computation.instructions if effects.of(i) is Effect.SIDE_EFFECT]
    changed = False
    for before, after in pairwise(happens):
        known = after.control_predecessors
        # What is called may be inlined, and then its parts do not all depend on the operands.
        if not after.called_computations:
            known += after.operands
        if before not in known:
            after.control_predecessors = (*after.control_predecessors, before)
            changed = True
    return changed
