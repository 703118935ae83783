"""stochastic-convert: a float to an integer, rounded up with the probability of its fraction."""

from __future__ import annotations

import numpy as np

from haloc.ir import dtype as dt
from haloc.ir.dtype import DType
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.convert import integer_range
from haloc.ops.example import ExampleGraph
from haloc.ops.families import evaluate_with_instruction
from haloc.ops.reference import Array
from haloc.ops.rules import SIGNED, array_operands, check_dtype, common_shape
from haloc.ops.scalar import Scalar, Value
from haloc.ops.table import Elementwise, OpDef, flop_per_element, invalid, register

RANDOM_OF: dict[DType, DType] = {dt.F16: dt.U16, dt.BF16: dt.U16, dt.F32: dt.U32, dt.F64: dt.U64}
"""The type of the random bits, by the operand's."""


def _infer(instruction: HloInstruction) -> Shape:
    _, random = array_operands(instruction)
    operand = check_dtype(instruction, 0, frozenset(RANDOM_OF))
    if random.dtype is not RANDOM_OF[operand]:
        invalid(
            instruction,
            f"random must be {RANDOM_OF[operand]} for an operand of type {operand}, "
            f"got {random.dtype}",
        )
    if instruction.shape.dtype not in SIGNED:
        invalid(
            instruction,
            f"the result must be of signed integer type, got {instruction.shape.dtype}",
        )
    return common_shape(instruction, (0, 1), "c1").with_dtype(instruction.shape.dtype)


def _evaluate(instruction: HloInstruction, x: Array, random: Array) -> Array:
    """|x| = whole + fraction; one more than whole where random/2^bits < fraction; saturates."""
    x, random = np.broadcast_arrays(x.astype(np.float64), random)
    bits = random.dtype.itemsize * 8
    low, high = integer_range(instruction.shape.dtype)
    size = np.abs(x)
    whole = np.floor(size)
    threshold = np.ldexp(size - whole, bits)
    inside = (x > low) & (x < high)
    up = random < np.where(inside, threshold, 0).astype(np.uint64)
    magnitude = np.where(inside, whole, 0).astype(np.int64) + up
    result = np.where(x < 0, -magnitude, magnitude)
    edge = np.where(np.isnan(x), 0, np.where(x < 0, np.int64(low), np.int64(high)))
    return np.where(inside, result, edge)


def _emit(b: Scalar, instruction: HloInstruction, x: Value, random: Value) -> Value:
    target, bits_dtype = instruction.shape.dtype, random.dtype
    wide = dt.F64 if x.dtype is dt.F64 else dt.F32
    low, high = integer_range(target)
    x = b.convert(x, wide)
    size = b.abs(x)
    whole = b.floor(size)
    scale = b.constant(wide, 2.0**bits_dtype.bits)
    threshold = b.convert(b.multiply(b.subtract(size, whole), scale), bits_dtype)
    up = b.compare(random, threshold, "LT")
    magnitude = b.convert(whole, dt.S64)
    magnitude = b.select(up, b.add(magnitude, b.constant(dt.S64, 1)), magnitude)
    negative = b.compare(x, b.constant(wide, 0.0), "LT")
    result = b.convert(b.select(negative, b.negate(magnitude), magnitude), target)
    above = b.compare(x, b.constant(wide, float(low)), "GT")
    inside = b.and_(above, b.compare(x, b.constant(wide, float(high)), "LT"))
    return b.select(inside, result, b.convert(x, target))


def _example(graph: ExampleGraph) -> HloInstruction:
    source, target, dims = graph.pick(list(RANDOM_OF)), graph.pick([dt.S8, dt.S32]), graph.dims()
    operands = [graph.operand(source, dims), graph.operand(RANDOM_OF[source], dims)]
    return graph.add("stochastic-convert", Shape(target, dims), operands)


register(
    OpDef(
        opcode="stochastic-convert",
        operands=("operand", "random"),
        infer=_infer,
        evaluate=evaluate_with_instruction(_evaluate),
        lower=Elementwise(_emit),
        cost=flop_per_element,
        example=_example,
    )
)
