"""sort: one dimension of any number of arrays, ordered by a comparator region."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from haloc.ir.dtype import BF16, F32, F64, PRED, S32, S64, U8
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import Bool, Computation, OneDim
from haloc.ops.example import ExampleGraph
from haloc.ops.regions import check_region, one_or_tuple, scalars, text
from haloc.ops.table import Attr, Cost, Evaluator, OpDef, Structure, attr, invalid, register


def _infer_sort(instruction: HloInstruction) -> Shape:
    inputs = [o.shape for o in instruction.operands]
    if not inputs:
        invalid(instruction, "takes at least one operand", "sort_c1")
    for i, x in enumerate(inputs):
        if not x.same_dims(inputs[0]) or not x.is_array:
            invalid(
                instruction,
                f"operand {i} is {text(x)}, but operand 0 is {text(inputs[0])}: "
                "operands must have the same dimensions",
                "sort_c3",
            )
    dimension = attr(instruction, "dimensions")
    if not 0 <= dimension < inputs[0].rank:
        invalid(
            instruction,
            f"dimensions={{{dimension}}} is out of range for {text(inputs[0])}",
            "sort_c4",
        )
    pairs = [s for s in scalars(inputs) for _ in range(2)]
    check_region(instruction, "to_apply", pairs, Shape(PRED), "sort_c5")
    return one_or_tuple([x.with_default_layout() for x in inputs])


def merge_exchange(count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batcher's odd-even merge sort as rounds of disjoint compare-exchanges (lower, upper).

    Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M; any count.
    """
    if count < 2:
        return
    top = 1 << ((count - 1).bit_length() - 1)
    p = top
    while p:
        q, r, d = top, 0, p
        while True:
            i = np.arange(count - d)
            lower = i[(i & p) == r]
            yield lower, lower + d
            if q == p:
                break
            d, q, r = q - p, q >> 1, p
        p >>= 1


def _evaluate_sort(instruction: HloInstruction, operands: list[Value], context: Evaluator) -> Value:
    """A sorting network over whole arrays; equal elements are ordered by where they were."""
    dimension = attr(instruction, "dimensions")
    region = attr(instruction, "to_apply")
    rows = [np.moveaxis(np.array(x), dimension, -1).copy() for x in operands]
    count = rows[0].shape[-1]
    origin = np.broadcast_to(np.arange(count), rows[0].shape).copy()
    for lower, upper in merge_exchange(count) if rows[0].size else ():
        firsts, seconds = [x[..., lower] for x in rows], [x[..., upper] for x in rows]
        forward: list[Value] = [v for pair in zip(firsts, seconds) for v in pair]
        backward: list[Value] = [v for pair in zip(seconds, firsts) for v in pair]
        before = np.asarray(context.call_elementwise(region, forward))
        after = np.asarray(context.call_elementwise(region, backward))
        tie = (before == after) & (origin[..., upper] < origin[..., lower])
        swap = (after & ~before) | tie
        for x in (*rows, origin):
            a, b = x[..., lower], x[..., upper]
            x[..., lower], x[..., upper] = np.where(swap, b, a), np.where(swap, a, b)
    arrays = tuple(np.ascontiguousarray(np.moveaxis(x, -1, dimension)) for x in rows)
    return arrays if instruction.shape.is_tuple else arrays[0]


def _sort_cost(instruction: HloInstruction) -> Cost:
    """elements * log2(elements), the logarithm rounded up."""
    count = instruction.operands[0].shape.element_count
    return Cost(flops=float(count * (count - 1).bit_length()) if count else 0.0)


def _sort_example(graph: ExampleGraph) -> HloInstruction:
    dims = graph.dims(1, 4, 9)
    dtypes = [
        graph.pick([F32, S32, F64, BF16, U8, S64]) for _ in range(int(graph.rng.integers(1, 4)))
    ]
    shapes = [Shape(d, dims) for d in dtypes]
    direction = graph.pick(["LT", "GT"])
    kind = {"type": "TOTALORDER"} if dtypes[0].is_float else {}
    region = graph.region(
        "order",
        [s for s in scalars(shapes) for _ in range(2)],
        lambda g, args: g.add("compare", Shape(PRED), args[:2], direction=direction, **kind),
    )
    return graph.add(
        "sort",
        one_or_tuple(shapes),
        [graph.operand(d, dims) for d in dtypes],
        dimensions=int(graph.rng.integers(len(dims))),
        is_stable=True,
        to_apply=region,
    )


register(
    OpDef(
        opcode="sort",
        operands=("operands*",),
        attrs=(
            Attr("dimensions", OneDim(), proto="dimensions[0]"),
            Attr("is_stable", Bool(), False),
            Attr("to_apply", Computation(), proto="called_computation_ids[0]"),
        ),
        infer=_infer_sort,
        evaluate=_evaluate_sort,
        lower=Structure.SORT,
        cost=_sort_cost,
        example=_sort_example,
        spec="sort",
    )
)
