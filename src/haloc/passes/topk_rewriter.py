"""XLA's custom-call for the largest elements, as the op it stands for."""

from __future__ import annotations

from haloc.ir.module import HloModule
from haloc.ops.custom_call import REGISTERED
from haloc.ops.expand import Beside
from haloc.ops.table import attr
from haloc.ops.topk import TARGET, order_of_custom_call
from haloc.passes.driver import hlo_pass


@hlo_pass("topk-rewriter")
def topk_rewriter(module: HloModule) -> bool:
    """custom-call(x, custom_call_target="TopK") => topk(x, k)

    Not where a user has registered a target of that name.
    """
    changed = False
    if TARGET in REGISTERED:
        return changed
    for instruction in module.instructions("custom-call"):
        if attr(instruction, "custom_call_target") != TARGET:
            continue
        k, largest = order_of_custom_call(instruction)
        shape = instruction.shape.with_default_layout()
        new = Beside(instruction).add("topk", shape, instruction.operands, k=k, largest=largest)
        instruction.replace_uses_with(new)
        instruction.computation.remove(instruction)
        changed = True
    if changed:
        module.remove_unreachable_computations()
    return changed
