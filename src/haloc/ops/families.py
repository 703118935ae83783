"""Constructors of whole families of rows, so that one op is one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from haloc.ir.dtype import BF16, C64, F16, F32, F64, PRED, S32, U32, DType
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.example import ExampleGraph
from haloc.ops.reference import Reference, store
from haloc.ops.rules import (
    Dtypes,
    array_operands,
    check_dtype,
    check_same_dtype,
    common_shape,
    spec_name,
)
from haloc.ops.scalar import EmitElement
from haloc.ops.table import (
    Attr,
    Cost,
    Elementwise,
    Evaluate,
    Evaluator,
    OpDef,
    flop_per_element,
    register,
)

OPERAND_NAMES: dict[int, tuple[str, ...]] = {1: ("operand",), 2: ("lhs", "rhs")}

COMMON_DTYPES = (F32, S32, F64, BF16, F16, C64, U32, PRED)
"""What most programs are made of: examples choose among these half of the time."""


def pick_dtype(graph: ExampleGraph, dtypes: Dtypes) -> DType:
    """A random element type out of a set, the common ones more often."""
    common = [d for d in COMMON_DTYPES if d in dtypes]
    if common and graph.rng.random() < 0.5:
        return graph.pick(common)
    return graph.pick(sorted(dtypes, key=lambda d: d.number))


def same_dtype(dtype: DType) -> DType:
    return dtype


def evaluate_with(reference: Callable[..., object]) -> Evaluate:
    """An evaluator from `reference(*arrays)`; its result is stored in the instruction's type.

    Elementwise rows get arrays of any common shape: a scalar region runs on whole arrays.
    """

    def evaluate(instruction: HloInstruction, values: list[Value], _: Evaluator) -> Value:
        with np.errstate(all="ignore"):
            return store(reference(*values), instruction.shape.dtype)

    return evaluate


def evaluate_with_instruction(reference: Callable[..., object]) -> Evaluate:
    """The same for `reference(instruction, *arrays)`."""

    def evaluate(instruction: HloInstruction, values: list[Value], _: Evaluator) -> Value:
        with np.errstate(all="ignore"):
            return store(reference(instruction, *values), instruction.shape.dtype)

    return evaluate


def elementwise(
    opcode: str,
    arity: int,
    dtypes: Dtypes,
    reference: Reference,
    *,
    emit: EmitElement,
    cost: Callable[[HloInstruction], Cost] = flop_per_element,
    result: Callable[[DType], DType] = same_dtype,
    commutative: bool = False,
    attrs: Sequence[Attr] = (),
    operands: tuple[str, ...] = (),
) -> OpDef:
    """A row for an op on operands of one shape and one element type out of `dtypes`.

    result: the result's element type, from the operands'.
    """

    def infer(instruction: HloInstruction) -> Shape:
        array_operands(instruction)
        numbers = range(arity)
        dtype = check_dtype(instruction, 0, dtypes)
        check_same_dtype(instruction, numbers, "c1")
        return common_shape(instruction, numbers, "c1").with_dtype(result(dtype))

    def example(graph: ExampleGraph) -> HloInstruction:
        dtype, dims = pick_dtype(graph, dtypes), graph.dims()
        given = [graph.operand(dtype, dims) for _ in range(arity)]
        return graph.add(opcode, Shape(result(dtype), dims), given)

    return register(
        OpDef(
            opcode=opcode,
            operands=operands or OPERAND_NAMES[arity],
            attrs=tuple(attrs),
            infer=infer,
            evaluate=evaluate_with(reference),
            lower=Elementwise(emit),
            cost=cost,
            example=example,
            spec=spec_name(opcode),
            commutative=commutative,
        )
    )
