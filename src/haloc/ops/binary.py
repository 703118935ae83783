"""Elementwise ops on two operands, and comparison."""

from __future__ import annotations

import numpy as np

from haloc.ir import dtype as dt
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops import reference as ref
from haloc.ops import reference_complex as cref
from haloc.ops.attrs import Name
from haloc.ops.example import ExampleGraph
from haloc.ops.families import elementwise, evaluate_with_instruction, pick_dtype
from haloc.ops.reference import Array, arithmetic, by_kind, transcendental, wide
from haloc.ops.rules import (
    ANY,
    COMPLEX,
    FLOAT,
    INTEGER,
    PRED,
    array_operands,
    check_same_dtype,
    common_shape,
    label,
)
from haloc.ops.table import (
    Attr,
    Elementwise,
    OpDef,
    attr,
    flop_per_element,
    invalid,
    register,
    transcendental_per_element,
)

# Arithmetic.
elementwise(
    "add",
    2,
    ANY,
    by_kind(
        pred=np.logical_or,
        integer=arithmetic(np.add),
        real=arithmetic(np.add),
        complex=np.add,
    ),
    emit=lambda b, i, x, y: b.add(x, y),
    commutative=True,
)
elementwise(
    "subtract",
    2,
    INTEGER | FLOAT | COMPLEX,
    by_kind(integer=arithmetic(np.subtract), real=arithmetic(np.subtract), complex=np.subtract),
    emit=lambda b, i, x, y: b.subtract(x, y),
)
elementwise(
    "multiply",
    2,
    ANY,
    lambda x, y: cref.multiply(x, y) if x.dtype.kind == "c" else wide(x) * wide(y),
    emit=lambda b, i, x, y: b.multiply(x, y),
    commutative=True,
)
elementwise(
    "mulhi",
    2,
    INTEGER,
    ref.mulhi,
    emit=lambda b, i, x, y: b.mulhi(x, y),
    commutative=True,
)
elementwise(
    "divide",
    2,
    INTEGER | FLOAT | COMPLEX,
    by_kind(integer=ref.integer_divide, real=arithmetic(np.divide), complex=cref.divide),
    emit=lambda b, i, x, y: b.divide(x, y),
)
elementwise(
    "remainder",
    2,
    INTEGER | FLOAT,
    by_kind(integer=ref.integer_remainder, real=arithmetic(np.fmod)),
    emit=lambda b, i, x, y: b.remainder(x, y),
)
elementwise(
    "power",
    2,
    INTEGER | FLOAT | COMPLEX,
    by_kind(integer=ref.integer_power, real=transcendental(np.power), complex=cref.power),
    emit=lambda b, i, x, y: b.power(x, y),
    cost=transcendental_per_element,
)
elementwise(
    "atan2",
    2,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(np.arctan2), complex=cref.atan2),
    emit=lambda b, i, y, x: b.atan2(y, x),
    cost=transcendental_per_element,
)
elementwise(
    "maximum",
    2,
    ANY,
    by_kind(
        pred=np.logical_or,
        integer=arithmetic(np.maximum),
        real=ref.float_maximum,
        complex=cref.maximum,
    ),
    emit=lambda b, i, x, y: b.or_(x, y) if x.dtype.is_pred else b.maximum(x, y),
    commutative=True,
)
elementwise(
    "minimum",
    2,
    ANY,
    by_kind(
        pred=np.logical_and,
        integer=arithmetic(np.minimum),
        real=ref.float_minimum,
        complex=cref.minimum,
    ),
    emit=lambda b, i, x, y: b.and_(x, y) if x.dtype.is_pred else b.minimum(x, y),
    commutative=True,
)

# Bits.
elementwise(
    "and",
    2,
    INTEGER | PRED,
    arithmetic(np.bitwise_and),
    emit=lambda b, i, x, y: b.and_(x, y),
    commutative=True,
)
elementwise(
    "or",
    2,
    INTEGER | PRED,
    arithmetic(np.bitwise_or),
    emit=lambda b, i, x, y: b.or_(x, y),
    commutative=True,
)
elementwise(
    "xor",
    2,
    INTEGER | PRED,
    arithmetic(np.bitwise_xor),
    emit=lambda b, i, x, y: b.xor(x, y),
    commutative=True,
)
elementwise(
    "shift-left",
    2,
    INTEGER,
    ref.shift_left,
    emit=lambda b, i, x, y: b.shift_left(x, y),
)
elementwise(
    "shift-right-arithmetic",
    2,
    INTEGER,
    ref.shift_right_arithmetic,
    emit=lambda b, i, x, y: b.shift_right_arithmetic(x, y),
)
elementwise(
    "shift-right-logical",
    2,
    INTEGER,
    ref.shift_right_logical,
    emit=lambda b, i, x, y: b.shift_right_logical(x, y),
)


# --- compare -----------------------------------------------------------------------------------

COMPARISONS = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}


def _comparison_types(dtype: dt.DType) -> tuple[str, ...]:
    """What `type=` may be for operands of this type; the first is the default."""
    if dtype.is_float:
        return ("FLOAT", "TOTALORDER")
    if dtype.is_complex:
        return ("FLOAT",)
    return ("SIGNED",) if dtype.is_signed else ("UNSIGNED",)


def is_total_order(instruction: HloInstruction) -> bool:
    """Whether a compare orders NaN and tells -0 from +0."""
    return attr(instruction, "type") == "TOTALORDER"


def _infer_compare(instruction: HloInstruction) -> Shape:
    array_operands(instruction)
    dtype = check_same_dtype(instruction, (0, 1), "c1")
    direction, given = attr(instruction, "direction"), attr(instruction, "type")
    allowed = _comparison_types(dtype)
    if given and given not in allowed:
        invalid(
            instruction,
            f"type={given} does not fit operands of type {dtype}; wanted {' or '.join(allowed)}",
            label(instruction, "c3"),
        )
    if dtype.is_complex and direction not in ("EQ", "NE"):
        invalid(
            instruction,
            f"direction={direction} is not defined on {dtype}; complex numbers compare EQ or NE",
            label(instruction, "c3"),
        )
    return common_shape(instruction, (0, 1), "c2").with_dtype(dt.PRED)


def _compare(instruction: HloInstruction, x: Array, y: Array) -> Array:
    if is_total_order(instruction):
        x, y = ref.total_order_key(x), ref.total_order_key(y)
    return COMPARISONS[attr(instruction, "direction")](wide(x), wide(y))


def _example_compare(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = pick_dtype(graph, ANY), graph.dims()
    directions = ["EQ", "NE"] if dtype.is_complex else list(COMPARISONS)
    attrs = {"direction": graph.pick(directions)}
    if graph.rng.random() < 0.3:
        attrs["type"] = graph.pick(_comparison_types(dtype))
    operands = [graph.operand(dtype, dims) for _ in range(2)]
    return graph.add("compare", Shape(dt.PRED, dims), operands, **attrs)


def _settle_comparison(instruction: HloInstruction) -> None:
    """Protos always say the type, text only where it is not the default."""
    if instruction.operands:
        default = _comparison_types(instruction.operands[0].shape.dtype)[0]
        if instruction.attrs.get("type") == default:
            del instruction.attrs["type"]


register(
    OpDef(
        opcode="compare",
        operands=("lhs", "rhs"),
        attrs=(
            Attr("direction", Name(tuple(COMPARISONS)), proto="comparison_direction"),
            Attr(
                "type",
                Name(("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")),
                "",
                "comparison_type",
            ),
        ),
        infer=_infer_compare,
        evaluate=evaluate_with_instruction(_compare),
        lower=Elementwise(
            lambda b, i, x, y: b.compare(x, y, attr(i, "direction"), is_total_order(i))
        ),
        cost=flop_per_element,
        example=_example_compare,
        spec="compare",
        settle=_settle_comparison,
    )
)
