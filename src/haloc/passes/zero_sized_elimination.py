"""Elimination of arrays without elements."""

from __future__ import annotations

import numpy as np

from haloc.analysis.effects import Effects
from haloc.ir.literal import Literal
from haloc.ir.module import HloModule
from haloc.ops.expand import Beside
from haloc.passes.driver import hlo_pass


@hlo_pass("zero-sized-elimination")
def zero_sized_elimination(module: HloModule) -> bool:
    """f(x) of shape [..., 0, ...] => constant of that shape, for pure f

    Expects dce afterwards.
    """
    changed = False
    effects = Effects()
    for instruction in module.instructions():
        shape = instruction.shape
        if not shape.is_array or shape.element_count != 0 or not shape.is_static:
            continue
        if {"literal", "parameter_number"} & instruction.attrs.keys():
            continue
        if instruction.control_predecessors or not effects.is_pure(instruction):
            continue
        literal = Literal(shape, np.zeros(shape.dims, shape.dtype.numpy))
        empty = Beside(instruction).add("constant", shape, (), literal=literal)
        instruction.replace_uses_with(empty)
        instruction.computation.remove(instruction)
        changed = True
    return changed
