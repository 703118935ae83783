"""What holds a graph together: constant, parameter, tuples, tokens, barriers, device numbers.

A constant's value stands in the attribute "literal", a parameter's number in "parameter_number":
in text they are written between the parentheses, not as key=value.
"""

from __future__ import annotations

import numpy as np

from haloc.errors import InternalError
from haloc.ir import dtype as dt
from haloc.ir.literal import Literal, Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape, scalar_shape, tuple_shape
from haloc.ops.attrs import Bools, Int
from haloc.ops.example import ExampleGraph
from haloc.ops.families import pick_dtype
from haloc.ops.raw_attrs import Domain
from haloc.ops.rules import (
    ANY,
    check_operand_count,
    label,
)
from haloc.ops.table import (
    Attr,
    Effect,
    Evaluator,
    OpDef,
    Structure,
    attr,
    invalid,
    register,
)


def _first(instruction: HloInstruction, values: list[Value], _: Evaluator) -> Value:
    """The identity on operand 0."""
    return values[0]


def _first_shape(instruction: HloInstruction) -> Shape:
    check_operand_count(instruction)
    return instruction.operands[0].shape


# --- constant, parameter -----------------------------------------------------------------------


def _infer_constant(instruction: HloInstruction) -> Shape:
    check_operand_count(instruction)
    literal = instruction.attrs.get("literal")
    if not isinstance(literal, Literal):
        invalid(instruction, "has no value")
    if not literal.shape.compatible(instruction.shape):
        fault = f"the literal is {literal.shape}, the instruction {instruction.shape}"
        invalid(instruction, fault, label(instruction, "c1"))
    return instruction.shape


def _constant(instruction: HloInstruction, values: list[Value], _: Evaluator) -> Value:
    literal: Literal = instruction.attrs["literal"]
    return literal.value


def random_array(graph: ExampleGraph, dtype: dt.DType, dims: tuple[int, ...]) -> np.ndarray:
    """Random numbers of small size, of any element type."""
    if dtype.is_pred:
        return graph.rng.integers(0, 2, dims).astype(np.bool_)
    if dtype.is_integer:
        low, high = (0, 2) if dtype.is_unsigned else (-2, 2)
        return np.asarray(graph.rng.integers(low, high, dims)).astype(np.int8).astype(dtype.numpy)
    real = np.asarray(graph.rng.normal(size=dims), np.float32)
    if dtype.is_complex:
        return np.asarray(real + 1j * graph.rng.normal(size=dims), dtype.numpy)
    if dtype is dt.F8E8M0FNU:  # Powers of two only.
        return np.asarray(np.exp2(np.rint(real)), dtype.numpy)
    return real.astype(dtype.numpy)


def _example_constant(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = pick_dtype(graph, ANY), graph.dims()
    literal = Literal(Shape(dtype, dims), random_array(graph, dtype, dims))
    return graph.add("constant", literal.shape, literal=literal)


register(
    OpDef(
        opcode="constant",
        infer=_infer_constant,
        evaluate=_constant,
        lower=Structure.NO_CODE,
        example=_example_constant,
        spec="constant",
    )
)


def _infer_parameter(instruction: HloInstruction) -> Shape:
    check_operand_count(instruction)
    number = instruction.attrs.get("parameter_number", -1)
    if number < 0:
        invalid(instruction, f"parameter number {number}, wanted at least 0")
    return instruction.shape


def _parameter(instruction: HloInstruction, values: list[Value], _: Evaluator) -> Value:
    raise InternalError(
        f"parameter {instruction.name!r} evaluated: its value is given by the caller"
    )


def _example_parameter(graph: ExampleGraph) -> HloInstruction:
    return graph.parameter(Shape(pick_dtype(graph, ANY), graph.dims()))


register(
    OpDef(
        opcode="parameter",
        attrs=(
            Attr(
                "parameter_replication",
                Bools(),
                (),
                "parameter_replication.replicated_at_leaf_buffers",
            ),
        ),
        infer=_infer_parameter,
        evaluate=_parameter,
        lower=Structure.NO_CODE,
        example=_example_parameter,
        spec="XLA parameter",
    )
)


# --- tuple, get-tuple-element ------------------------------------------------------------------


def _infer_tuple(instruction: HloInstruction) -> Shape:
    check_operand_count(instruction)
    return tuple_shape(*(o.shape for o in instruction.operands))


def _tuple(instruction: HloInstruction, values: list[Value], _: Evaluator) -> Value:
    return tuple(values)


def _example_tuple(graph: ExampleGraph) -> HloInstruction:
    count = int(graph.rng.integers(0, 4))
    operands = [graph.operand(pick_dtype(graph, ANY), graph.dims()) for _ in range(count)]
    return graph.add("tuple", tuple_shape(*(o.shape for o in operands)), operands)


register(
    OpDef(
        opcode="tuple",
        operands=("val*",),
        infer=_infer_tuple,
        evaluate=_tuple,
        lower=Structure.NO_CODE,
        example=_example_tuple,
        spec="tuple",
        any_size=True,
    )
)


def _infer_get_tuple_element(instruction: HloInstruction) -> Shape:
    check_operand_count(instruction)
    shape, index = instruction.operands[0].shape, attr(instruction, "index")
    if not shape.is_tuple:
        invalid(instruction, f"operand must be a tuple, got {shape}", label(instruction, "i1"))
    if not 0 <= index < len(shape.elements):
        fault = f"index={index}, but the operand {shape} has {len(shape.elements)} elements"
        invalid(instruction, fault, label(instruction, "c1"))
    return shape.elements[index]


def _get_tuple_element(instruction: HloInstruction, values: list[Value], _: Evaluator) -> Value:
    (value,) = values
    assert isinstance(value, tuple)
    return value[attr(instruction, "index")]


def _example_get_tuple_element(graph: ExampleGraph) -> HloInstruction:
    members = [Shape(pick_dtype(graph, ANY), graph.dims()) for _ in range(3)]
    operand = graph.parameter(tuple_shape(*members))
    index = int(graph.rng.integers(3))
    return graph.add("get-tuple-element", members[index], [operand], index=index)


register(
    OpDef(
        opcode="get-tuple-element",
        operands=("operand",),
        attrs=(Attr("index", Int(), proto="tuple_index"),),
        infer=_infer_get_tuple_element,
        evaluate=_get_tuple_element,
        lower=Structure.NO_CODE,
        example=_example_get_tuple_element,
        spec="get_tuple_element",
        any_size=True,
    )
)


# --- tokens, order, barriers -------------------------------------------------------------------

TOKEN_SHAPE = Shape(dt.TOKEN)


def _infer_after_all(instruction: HloInstruction) -> Shape:
    for number, operand in enumerate(instruction.operands):
        if not operand.shape.is_token:
            fault = f"operand {number} must be a token, got {operand.shape}"
            invalid(instruction, fault, label(instruction, "i1"))
    return TOKEN_SHAPE


def _no_value(instruction: HloInstruction, values: list[Value], _: Evaluator) -> Value:
    return None


def _example_after_all(graph: ExampleGraph) -> HloInstruction:
    tokens = [graph.add("after-all", TOKEN_SHAPE) for _ in range(int(graph.rng.integers(0, 3)))]
    return graph.add("after-all", TOKEN_SHAPE, tokens)


register(
    OpDef(
        opcode="after-all",
        operands=("inputs*",),
        infer=_infer_after_all,
        evaluate=_no_value,
        lower=Structure.NO_CODE,
        example=_example_after_all,
        spec="after_all",
    )
)


def _example_add_dependency(graph: ExampleGraph) -> HloInstruction:
    operand = graph.operand(pick_dtype(graph, ANY), graph.dims())
    token = graph.add("after-all", TOKEN_SHAPE)
    return graph.add("add-dependency", operand.shape, [operand, token])


register(
    OpDef(
        opcode="add-dependency",
        operands=("operand", "token"),
        infer=_first_shape,
        evaluate=_first,
        lower=Structure.NO_CODE,
        example=_example_add_dependency,
        spec="XLA add-dependency",
        any_size=True,
    )
)


def _example_identity(opcode: str, **attrs: object):  # type: ignore[no-untyped-def]
    def example(graph: ExampleGraph) -> HloInstruction:
        operand = graph.operand(pick_dtype(graph, ANY), graph.dims())
        return graph.add(opcode, operand.shape, [operand], **attrs)

    return example


register(
    OpDef(
        opcode="opt-barrier",
        operands=("operand",),
        infer=_first_shape,
        evaluate=_first,
        lower=Structure.NO_CODE,
        example=_example_identity("opt-barrier"),
        spec="optimization_barrier",
        any_size=True,
    )
)

DOMAIN_EXAMPLE = '{kind="sharding", entry={maximal device=0}, exit={maximal device=1}}'

register(
    OpDef(
        opcode="domain",
        operands=("operand",),
        attrs=(Attr("domain", Domain(), "", "*"),),
        infer=_first_shape,
        evaluate=_first,
        lower=Structure.NO_CODE,
        example=_example_identity("domain", domain=DOMAIN_EXAMPLE),
        spec="XLA domain",
        any_size=True,
    )
)


# --- device numbers ----------------------------------------------------------------------------


def _infer_device_number(instruction: HloInstruction) -> Shape:
    check_operand_count(instruction)
    return scalar_shape(dt.U32)


def _device_number(opcode: str, position: int) -> OpDef:
    """replica-id and partition-id: a part of the evaluator's `device_id`."""

    def evaluate(_: HloInstruction, values: list[Value], evaluator: Evaluator) -> Value:
        return np.asarray(evaluator.device_id[position], np.uint32)

    return register(
        OpDef(
            opcode=opcode,
            infer=_infer_device_number,
            evaluate=evaluate,
            lower=Structure.HOST,
            effect=Effect.STATEFUL,  # Known when the program runs: must not be folded.
            example=lambda graph: graph.add(opcode, scalar_shape(dt.U32)),
            spec=opcode.replace("-", "_"),
        )
    )


_device_number("replica-id", 0)
_device_number("partition-id", 1)
