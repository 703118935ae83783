"""select and clamp: elementwise ops where a scalar may stand for a whole array."""

from __future__ import annotations

import numpy as np

from haloc.ir import dtype as dt
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops import reference as ref
from haloc.ops import reference_complex as cref
from haloc.ops.example import ExampleGraph
from haloc.ops.families import evaluate_with, pick_dtype
from haloc.ops.reference import Array, by_kind
from haloc.ops.rules import (
    ANY,
    PRED,
    array_operands,
    check_dtype,
    check_same_dtype,
    common_shape,
)
from haloc.ops.scalar import Scalar, Value
from haloc.ops.table import Elementwise, OpDef, flop_per_element, register

# --- select ------------------------------------------------------------------------------------


def _infer_select(instruction: HloInstruction) -> Shape:
    pred, _, _ = array_operands(instruction)
    check_dtype(instruction, 0, PRED)
    check_same_dtype(instruction, (1, 2), "c2")
    result = common_shape(instruction, (1, 2), "c2")
    if pred.rank:
        merged = common_shape(instruction, (1, 2, 0), "c1")
        return merged.with_dtype(result.dtype)
    return result


def _example_select(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = pick_dtype(graph, ANY), graph.dims()
    pred = graph.operand(dt.PRED, () if graph.rng.random() < 0.3 else dims)
    branches = [graph.operand(dtype, dims) for _ in range(2)]
    return graph.add("select", Shape(dtype, dims), [pred, *branches])


# --- clamp -------------------------------------------------------------------------------------


def _infer_clamp(instruction: HloInstruction) -> Shape:
    low, _, high = array_operands(instruction)
    check_dtype(instruction, 1, ANY)
    check_same_dtype(instruction, (1, 0, 2), "c3")
    numbers = [1] + [0] * bool(low.rank)
    result = common_shape(instruction, numbers, "c1")
    return common_shape(instruction, (1, 2), "c2") if high.rank else result


def _emit_clamp(b: Scalar, _: HloInstruction, low: Value, x: Value, high: Value) -> Value:
    if x.dtype.is_pred:
        return b.and_(b.or_(low, x), high)
    if x.dtype.is_complex:
        return b.minimum(b.maximum(x, low), high)
    return b.clamp(low, x, high)


def _pred_clamp(low: Array, x: Array, high: Array) -> Array:
    return (low | x) & high


def _integer_clamp(low: Array, x: Array, high: Array) -> Array:
    return np.minimum(np.maximum(ref.wide(x), ref.wide(low)), ref.wide(high))


def _example_clamp(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = pick_dtype(graph, ANY), graph.dims()
    low = graph.operand(dtype, graph.pick([(), dims]))
    x = graph.operand(dtype, dims)
    high = graph.operand(dtype, graph.pick([(), dims]))
    return graph.add("clamp", Shape(dtype, dims), [low, x, high])


register(
    OpDef(
        opcode="select",
        operands=("pred", "on_true", "on_false"),
        infer=_infer_select,
        evaluate=evaluate_with(np.where),
        lower=Elementwise(lambda b, i, p, x, y: b.select(p, x, y)),
        cost=flop_per_element,
        example=_example_select,
        spec="select",
    )
)
register(
    OpDef(
        opcode="clamp",
        operands=("min", "operand", "max"),
        infer=_infer_clamp,
        evaluate=evaluate_with(
            by_kind(
                pred=_pred_clamp,
                integer=_integer_clamp,
                real=ref.float_clamp,
                complex=cref.clamp,
            )
        ),
        lower=Elementwise(_emit_clamp),
        cost=flop_per_element,
        example=_example_clamp,
        spec="clamp",
    )
)
