"""Contractions whose result is of another kind than the operands."""

from __future__ import annotations

from haloc.ir.module import HloModule
from haloc.ops.contraction import must_convert
from haloc.ops.expand import Beside
from haloc.ops.table import Structure, op
from haloc.passes.driver import hlo_pass


@hlo_pass("operand-upcaster")
def operand_upcaster(module: HloModule) -> bool:
    """dot(x, y) => dot(convert(x), convert(y)), to the result's type where that is of another kind

    Kinds are pred, integer, float and complex; convolution likewise.
    """
    changed = False
    for instruction in module.instructions():
        if op(instruction).lower is not Structure.CONTRACTION:
            continue
        result = instruction.shape.dtype
        b = Beside(instruction)
        for number, operand in enumerate(instruction.operands):
            if must_convert(operand.shape.dtype, result):
                instruction.set_operand(number, b.convert(operand, result))
                changed = True
    return changed
