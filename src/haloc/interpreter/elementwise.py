"""Scalar regions on whole arrays: a region of elementwise instructions needs no loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from haloc.ir.literal import Value
from haloc.ir.module import HloComputation, HloInstruction
from haloc.ops.table import OPS, Evaluator, attr

SAME_VALUE = frozenset({"copy", "reshape", "broadcast", "transpose", "bitcast", "opt-barrier"})
"""Ops that hand a scalar on as it is."""

WHOLE = frozenset({"tuple", "get-tuple-element", "bitcast-convert"})
"""Ops that are not elementwise rows, but whose evaluate takes arrays in place of scalars."""


@dataclass(slots=True)
class VectorPlan:
    """The instructions of a region in order; `nested` holds the plans of computations it calls."""

    computation: HloComputation
    nested: dict[HloComputation, VectorPlan]

    def run(self, arguments: list[np.ndarray], dims: tuple[int, ...], context: Evaluator) -> Value:
        """The root's value for each element of arrays of `dims` (or that broadcast to it)."""
        value = self._values(list(arguments), context)
        if isinstance(value, tuple):
            return tuple(np.broadcast_to(np.asarray(v), dims) for v in value)
        return np.broadcast_to(np.asarray(value), dims)

    def _values(self, arguments: list[Value], context: Evaluator) -> Value:
        values: dict[HloInstruction, Value] = {}
        for i in self.computation._instructions:
            if i.opcode == "parameter":
                values[i] = arguments[i.attrs["parameter_number"]]
                continue
            operands = [values[o] for o in i.operands]
            called = called_region(i)
            if i.opcode in SAME_VALUE:
                values[i] = operands[0]
            elif called is not None:
                values[i] = self.nested[called]._values(operands, context)
            else:
                values[i] = OPS[i.opcode].evaluate(i, operands, context)
        return values[self.computation.root]


def called_region(instruction: HloInstruction) -> HloComputation | None:
    """The computation that a call, fusion or map of scalars stands for."""
    if instruction.opcode in ("call", "map"):
        return attr(instruction, "to_apply")
    return attr(instruction, "calls") if instruction.opcode == "fusion" else None


def vector_plan(computation: HloComputation) -> VectorPlan | None:
    """The plan, or None when some instruction works on more than one element at a time."""
    nested: dict[HloComputation, VectorPlan] = {}
    for i in computation.instructions:
        if any(s.dims or not s.is_array for s in i.shape.leaves()):
            return None
        called = called_region(i)
        if called is not None:
            plan = vector_plan(called)
            if plan is None:
                return None
            nested[called] = plan
        elif not (
            i.opcode in ("parameter", "constant")
            or i.opcode in SAME_VALUE
            or i.opcode in WHOLE
            or OPS[i.opcode].is_elementwise
        ):
            return None
    return VectorPlan(computation, nested)
