"""Instructions with dynamic dimensions: evaluated as if their shapes had the sizes of the values.

Most rows never meet a dynamic dimension. A copy of the instruction, with static shapes of the sizes
there are, is inferred anew and evaluated in its place.
"""

from __future__ import annotations

import numpy as np

from haloc.errors import InvalidArgumentError, VerificationError
from haloc.interpreter.arguments import kind_of
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.table import OPS, Evaluate, Evaluator, OpDef


def evaluation(instruction: HloInstruction) -> Evaluate:
    """The row's `evaluate`, made to take values of any size that dynamic dimensions allow."""
    row = OPS[instruction.opcode]
    if instruction.shape.is_static and all(o.shape.is_static for o in instruction.operands):
        return row.evaluate

    def evaluate(i: HloInstruction, values: list[Value], context: Evaluator) -> Value:
        run = i if row.any_size else _at_sizes(row, i, values)
        value = row.evaluate(run, values, context)
        if i.shape.is_array and not i.shape.holds(np.shape(value)):
            raise InvalidArgumentError(
                f"{i.opcode}: the result is {kind_of(np.asarray(value))}, "
                f"wanted {i.shape.to_string(False)}"
            )
        return value

    return evaluate


def _at_sizes(row: OpDef, instruction: HloInstruction, values: list[Value]) -> HloInstruction:
    """The instruction on operands that have statically the sizes of `values`."""
    operands = []
    for operand, value in zip(instruction.operands, values):
        shape = operand.shape
        if shape.is_array:
            shape = Shape(shape.dtype, np.shape(value))
        operands.append(HloInstruction("parameter", shape, name=operand.name))
    attrs = dict(instruction.attrs)
    dims = instruction.shape.dims
    if row.at_sizes is not None:
        dims, changed = row.at_sizes(instruction, [o.shape.dims for o in operands])
        attrs |= changed
    shape = instruction.shape
    if shape.is_array:
        shape = Shape(shape.dtype, dims)
    static = HloInstruction(instruction.opcode, shape, operands, attrs, instruction.name)
    try:
        static.shape = row.infer(static)
    except VerificationError as error:
        given = ", ".join(o.shape.to_string(False) for o in operands)
        raise InvalidArgumentError(
            f"{error.message}; at run time the operands are {given}"
        ) from None
    return static
