"""`run_op`: one instruction on given arrays, for tests that state facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from haloc.ir.dtype import DType, dtype_from_numpy
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.table import OPS


def instruction_of(
    opcode: str,
    operand_shapes: Sequence[Shape],
    result: Shape | None = None,
    **attrs: Any,
) -> HloInstruction:
    """An instruction on parameters of these shapes; its shape is `result`, or what is inferred."""
    parameters = [
        HloInstruction("parameter", s, (), {"parameter_number": n}, name=f"p{n}")
        for n, s in enumerate(operand_shapes)
    ]
    guess = result or (operand_shapes[0] if operand_shapes else Shape(dtype_from_numpy("f4")))
    instruction = HloInstruction(opcode, guess, parameters, attrs, name=opcode)
    instruction.shape = OPS[opcode].infer(instruction)
    return instruction


def run_op(
    opcode: str, *operands: object, dtype: DType, result: Shape | None = None, **attrs: Any
) -> np.ndarray:
    """The op's value on operands made arrays of `dtype` (arrays keep the type they have)."""
    arrays = [x if isinstance(x, np.ndarray) else array(x, dtype) for x in operands]
    shapes = [Shape(dtype_from_numpy(x.dtype), x.shape) for x in arrays]
    instruction = instruction_of(opcode, shapes, result, **attrs)
    value = OPS[opcode].evaluate(instruction, list(arrays), None)  # type: ignore[arg-type]
    assert isinstance(value, np.ndarray)
    assert value.dtype == instruction.shape.dtype.numpy
    return value


def array(values: object, dtype: DType) -> np.ndarray:
    """An array of `dtype`, by way of a type that NumPy can make from a list."""
    if dtype.is_integer:
        wide = np.uint64 if dtype.is_unsigned else np.int64
        return (
            np.array(values, wide).astype(np.int8 if dtype.bits < 8 else wide).astype(dtype.numpy)
        )
    if dtype.is_float:
        return np.array(values, np.float64 if dtype.bits == 64 else np.float32).astype(dtype.numpy)
    return np.array(values, dtype.numpy)
