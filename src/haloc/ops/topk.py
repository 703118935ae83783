"""topk: the k largest (or smallest) elements along the last dimension, with their indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from haloc.ir.dtype import F32, PRED, S32
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.attrs import Bool, Int
from haloc.ops.custom_call import custom_call
from haloc.ops.example import ExampleGraph
from haloc.ops.expand import Beside
from haloc.ops.regions import text
from haloc.ops.rules import dynamic_flags
from haloc.ops.table import Attr, Evaluator, Expand, OpDef, attr, invalid, register


def _infer_topk(instruction: HloInstruction) -> Shape:
    x, k = instruction.operands[0].shape, attr(instruction, "k")
    if not x.rank or not 0 <= k <= x.dims[-1]:
        invalid(instruction, f"k={k} is out of range for the last dimension of {text(x)}")
    if x.dtype.is_complex:
        invalid(instruction, f"{x.dtype} has no order")
    dims = (*x.dims[:-1], k)
    values = Shape(x.dtype, dims, None, (*dynamic_flags(x)[:-1], False))
    return tuple_shape(values, values.with_dtype(S32))


def _evaluate_topk(instruction: HloInstruction, operands: list[Value], context: Evaluator) -> Value:
    x = np.asarray(operands[0])
    return _chosen(x, attr(instruction, "k"), attr(instruction, "largest"))


def _chosen(x: np.ndarray, k: int, largest: bool) -> Value:
    """Stable: of equal elements the first comes first. Order is the total one: NaN is largest."""
    key = _total_order_key(x)
    order = np.argsort(~key if largest else key, axis=-1, kind="stable")
    chosen = order[..., :k]
    return np.take_along_axis(x, chosen, -1), chosen.astype(np.int32)


def _total_order_key(x: np.ndarray) -> np.ndarray:
    """Integers in the order of x: for floats -NaN < -inf < -0 < +0 < inf < NaN."""
    if x.dtype.kind in "biu" and x.dtype.isbuiltin == 1:
        return x.astype(np.uint64) if x.dtype == np.uint64 else x.astype(np.int64)
    if np.issubdtype(x.dtype, np.floating) or not _is_narrow_integer(x):
        bits = x.view(np.dtype(f"i{x.dtype.itemsize}")).astype(np.int64)
        top = (1 << (8 * x.dtype.itemsize - 1)) - 1
        return np.where(bits < 0, bits ^ top, bits)
    return x.astype(np.int64)


def _is_narrow_integer(x: np.ndarray) -> bool:
    return x.dtype.name.startswith(("int", "uint"))


def _expand_topk(instruction: HloInstruction) -> HloInstruction:
    """topk(x, k) => slice(stable sort(x, iota))[..., :k]"""
    beside = Beside(instruction)
    x, k = instruction.operands[0], attr(instruction, "k")
    scalar, index = Shape(x.shape.dtype), Shape(S32)
    direction = "GT" if attr(instruction, "largest") else "LT"
    kind = {"type": "TOTALORDER"} if x.shape.dtype.is_float else {}
    region = beside.region(
        "topk_order",
        [scalar, scalar, index, index],
        lambda add, args: add("compare", Shape(PRED), args[:2], direction=direction, **kind),
    )
    last = x.shape.rank - 1
    places = beside.iota(S32, x.shape.dims, last)
    both = beside.add(
        "sort",
        tuple_shape(x.shape.with_default_layout(), places.shape),
        (x, places),
        dimensions=last,
        is_stable=True,
        to_apply=region,
    )
    ranges = [(0, n, 1) for n in (*x.shape.dims[:-1], k)]
    return beside.tuple(*(beside.slice(beside.element(both, n), *ranges) for n in range(2)))


def _topk_example(graph: ExampleGraph) -> HloInstruction:
    dims = graph.dims(1, 4, 9)
    dtype = graph.pick([F32, S32])
    k = int(graph.rng.integers(dims[-1] + 1))
    values = Shape(dtype, (*dims[:-1], k))
    shape = tuple_shape(values, Shape(S32, values.dims))
    largest = bool(graph.rng.integers(2))
    both = graph.add("topk", shape, (graph.operand(dtype, dims),), k=k, largest=largest)
    return graph.add("get-tuple-element", shape.elements[1], (both,), index=1)


# --- XLA's custom-call --------------------------------------------------------------------------

TARGET = "TopK"


def order_of_custom_call(instruction: HloInstruction) -> tuple[int, bool]:
    """k and largest of a custom-call to TopK, (x) -> (values, s32 indices) along the last
    dimension: the order is that of the comparison it calls. VerificationError for other shapes."""
    operands, shape = instruction.operands, instruction.shape
    x = operands[0].shape if len(operands) == 1 else None
    if x is None or not x.rank or len(shape.elements) != 2 or not shape.elements[0].rank:
        invalid(instruction, f"TopK wants one array and gives two, not {text(shape)}")
    k = shape.elements[0].dims[-1]
    values = x.with_dims((*x.dims[:-1], k))
    if k > x.dims[-1] or not shape.compatible(tuple_shape(values, values.with_dtype(S32))):
        invalid(instruction, f"TopK of {text(x)} cannot be {text(shape)}")
    compares = [
        attr(i, "direction")
        for called in instruction.called_computations
        for i in called.instructions
        if i.opcode == "compare"
    ]
    return k, not compares or compares[0] in ("GT", "GE")


@custom_call(TARGET)
def _evaluate_custom_call(
    instruction: HloInstruction, operands: list[Value], attributes: dict[str, Any]
) -> Value:
    """The k largest elements of the last dimension, and where they were."""
    return _chosen(np.asarray(operands[0]), *order_of_custom_call(instruction))


register(
    OpDef(
        opcode="topk",
        operands=("operand",),
        attrs=(Attr("k", Int()), Attr("largest", Bool(), True)),
        infer=_infer_topk,
        evaluate=_evaluate_topk,
        lower=Expand(_expand_topk),
        example=_topk_example,
    )
)
