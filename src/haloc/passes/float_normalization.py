"""Narrow floats of ops that a library does, which has none."""

from __future__ import annotations

from haloc.ir.dtype import F32
from haloc.ir.module import HloModule
from haloc.ops.expand import Beside
from haloc.ops.linalg import LINALG
from haloc.passes.driver import hlo_pass


@hlo_pass("float-normalization")
def float_normalization(module: HloModule) -> bool:
    """f(x) => convert(f(convert(x))), by way of f32, for f cholesky and triangular-solve

    Where x is of a float type narrower than 32 bits: LAPACK has f32, f64 and their complex types.
    """
    changed = False
    for instruction in (i for opcode in LINALG for i in module.instructions(opcode)):
        dtype = instruction.shape.dtype
        if dtype.is_float and dtype.bits < F32.bits:
            b = Beside(instruction)
            operands = [b.convert(o, F32) for o in instruction.operands]
            wide = b.add(
                instruction.opcode, instruction.shape.with_dtype(F32), operands, **instruction.attrs
            )
            instruction.replace_uses_with(b.convert(wide, dtype))
            instruction.computation.remove(instruction)
            changed = True
    return changed
