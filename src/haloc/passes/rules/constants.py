"""What rules ask about constants: an instruction's one value, and how to write one."""

from __future__ import annotations

from typing import Any

import numpy as np

from haloc.ir.literal import Literal
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.expand import Beside


def scalar_value(instruction: HloInstruction) -> Any:
    """The value of a scalar constant or of a broadcast of one, as a NumPy scalar; else None."""
    if instruction.opcode == "broadcast":
        instruction = instruction.operands[0]
    literal = instruction.attrs.get("literal")
    if literal is None or not instruction.shape.is_array or instruction.shape.dims:
        return None
    return literal.array[()]


def is_constant(instruction: HloInstruction) -> bool:
    """A constant, or a broadcast of a scalar constant."""
    return "literal" in instruction.attrs or scalar_value(instruction) is not None


def bits(value: Any) -> bytes:
    return np.asarray(value).tobytes()


def is_value(instruction: HloInstruction, number: float) -> bool:
    """Every element has exactly the bits that `number` has in the instruction's type."""
    value = scalar_value(instruction)
    if value is None:
        return False
    return bits(value) == bits(np.asarray(number).astype(np.asarray(value).dtype))


def is_number(instruction: HloInstruction) -> bool:
    """Its element type is an integer, float or complex type (not pred)."""
    dtype = instruction.shape.dtype
    return dtype.is_integer or dtype.is_float or dtype.is_complex


def full(b: Beside, value: Any, shape: Shape) -> HloInstruction:
    """`value` (a NumPy scalar of the shape's type) everywhere in `shape`."""
    literal = Literal(Shape(shape.dtype), np.asarray(value, shape.dtype.numpy))
    scalar = b.add("constant", literal.shape, (), literal=literal)
    return scalar if not shape.dims else b.broadcast(scalar, shape.dims, ())


def widened(b: Beside, x: HloInstruction, shape: Shape) -> HloInstruction:
    """x, or, where the result needs more dimensions than a scalar x has, x broadcast."""
    return x if x.shape.dims == shape.dims else b.broadcast(x, shape.dims, ())
