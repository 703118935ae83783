"""all-reduce and reduce-scatter: what the participants of a group hold, folded by a region."""

from __future__ import annotations

import numpy as np

from haloc.ir.dtype import BF16, F32, PRED, S32, DType
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import Computation, Dims
from haloc.ops.collective_rules import (
    CHANNEL,
    CONSTRAIN,
    GLOBAL_IDS,
    GROUPS,
    NO_GROUPS,
    check_shards,
    collective_operands,
    one_dimension,
    piece_of,
    resized,
    results_of,
    shard_count,
)
from haloc.ops.example import ExampleGraph
from haloc.ops.participants import check_groups
from haloc.ops.regions import check_region, one_or_tuple, text
from haloc.ops.rules import label
from haloc.ops.table import (
    Attr,
    Cost,
    Effect,
    Evaluator,
    Meeting,
    OpDef,
    Structure,
    attr,
    invalid,
    register,
)

TO_APPLY = Attr("to_apply", Computation(), proto="called_computation_ids[0]")
ALL_REDUCE_ATTRS = (CHANNEL, GROUPS, CONSTRAIN, GLOBAL_IDS, TO_APPLY)


def _check_scalar_region(instruction: HloInstruction, shapes: list[Shape], constraint: str) -> None:
    """to_apply takes and gives scalars of each operand's type."""
    for dtype in dict.fromkeys(s.dtype for s in shapes):
        scalar = Shape(dtype)
        check_region(instruction, "to_apply", [scalar, scalar], scalar, constraint)


def infer_all_reduce(instruction: HloInstruction) -> Shape:
    shapes = collective_operands(instruction)
    check_groups(instruction, same_size=False)
    _check_scalar_region(instruction, shapes, "all_reduce_c5")
    return one_or_tuple(shapes)


def _folded(instruction: HloInstruction, meeting: Meeting, context: Evaluator) -> list[np.ndarray]:
    """Each operand, folded over the members in the order of the group."""
    region = attr(instruction, "to_apply")
    total = [np.asarray(x) for x in meeting.values[0]]
    for others in meeting.values[1:]:
        total = [
            np.asarray(context.call_elementwise(region, [a, b])) for a, b in zip(total, others)
        ]
    return [np.array(x) for x in total]


def evaluate_all_reduce(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    results = _folded(instruction, context.meet(instruction, operands), context)
    return tuple(results) if instruction.shape.is_tuple else results[0]


def all_reduce_cost(instruction: HloInstruction) -> Cost:
    """One operation an element: two participants are assumed."""
    return Cost(flops=float(sum(s.element_count for s in instruction.shape.leaves())))


def example_all_reduce(graph: ExampleGraph, opcode: str = "all-reduce") -> HloInstruction:
    dtype = graph.pick([F32, S32, BF16, PRED])
    operands = [graph.operand(dtype, graph.dims()) for _ in range(graph.pick([1, 1, 2]))]
    return graph.add(
        opcode,
        one_or_tuple([o.shape for o in operands]),
        operands,
        replica_groups=NO_GROUPS,
        to_apply=_example_region(graph, dtype),
    )


def _example_region(graph: ExampleGraph, dtype: DType):  # type: ignore[no-untyped-def]
    opcode = "and" if dtype is PRED else graph.pick(["add", "maximum"])
    return graph.binary_region(opcode, dtype)


register(
    OpDef(
        opcode="all-reduce",
        operands=("operands*",),
        attrs=ALL_REDUCE_ATTRS,
        infer=infer_all_reduce,
        evaluate=evaluate_all_reduce,
        any_size=True,
        lower=Structure.COLLECTIVE,
        cost=all_reduce_cost,
        effect=Effect.STATEFUL,
        example=example_all_reduce,
        spec="all_reduce",
    )
)


def _infer_reduce_scatter(instruction: HloInstruction) -> Shape:
    shapes = collective_operands(instruction)
    check_groups(instruction, same_size=True)
    dim = one_dimension(instruction, shapes, "reduce_scatter_c2")
    _check_scalar_region(instruction, shapes, "reduce_scatter_c7")
    declared = results_of(instruction.shape, len(shapes))
    return one_or_tuple([_piece(instruction, x, r, dim) for x, r in zip(shapes, declared)])


def _piece(instruction: HloInstruction, whole: Shape, declared: Shape | None, dim: int) -> Shape:
    shards = shard_count(instruction, declared, whole, dim)
    if whole.dims[dim] % shards:
        fault = f"dimension {dim} of {text(whole)} is not scattered evenly over {shards}"
        invalid(instruction, fault, label(instruction, "c8"))
    return resized(whole, dim, whole.dims[dim] // shards)


def _evaluate_reduce_scatter(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    meeting = context.meet(instruction, operands)
    (dim,) = attr(instruction, "dimensions")
    whole, piece = instruction.operands[0].shape.dims[dim], instruction.shape.leaves()[0].dims[dim]
    if piece:
        check_shards(instruction, whole // piece, meeting, "scatters")
    pieces = [
        np.array(piece_of(instruction, total, dim, meeting))
        for total in _folded(instruction, meeting, context)
    ]
    return tuple(pieces) if instruction.shape.is_tuple else pieces[0]


def _example_reduce_scatter(graph: ExampleGraph) -> HloInstruction:
    dims, dtype = graph.dims(1), graph.pick([F32, S32, BF16, PRED])
    operand = graph.operand(dtype, dims)
    return graph.add(
        "reduce-scatter",
        operand.shape,
        [operand],
        replica_groups=NO_GROUPS,
        dimensions=(int(graph.rng.integers(len(dims))),),
        to_apply=_example_region(graph, dtype),
    )


register(
    OpDef(
        opcode="reduce-scatter",
        operands=("operands*",),
        attrs=(CHANNEL, GROUPS, CONSTRAIN, GLOBAL_IDS, Attr("dimensions", Dims()), TO_APPLY),
        infer=_infer_reduce_scatter,
        evaluate=_evaluate_reduce_scatter,
        any_size=True,
        lower=Structure.COLLECTIVE,
        effect=Effect.STATEFUL,
        example=_example_reduce_scatter,
        spec="reduce_scatter",
    )
)
