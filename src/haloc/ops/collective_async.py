"""all-gather, all-reduce and collective-permute as pairs of a start and a done."""

from __future__ import annotations

from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.async_pairs import (
    CONTEXT,
    blank,
    blank_instruction,
    contexts,
    evaluate_done,
    expand_done,
    expand_into_operand,
    state_result,
)
from haloc.ops.collective import (
    ALL_GATHER_ATTRS,
    PERMUTE_ATTRS,
    check_gathered,
    evaluate_all_gather,
    evaluate_permute,
    gathered_shapes,
    permuted_shapes,
)
from haloc.ops.collective_reduce import (
    ALL_REDUCE_ATTRS,
    all_reduce_cost,
    evaluate_all_reduce,
    example_all_reduce,
    infer_all_reduce,
)
from haloc.ops.collective_rules import CHANNEL, NO_GROUPS, example_operands
from haloc.ops.example import ExampleGraph
from haloc.ops.expand import Beside
from haloc.ops.regions import one_or_tuple
from haloc.ops.rules import check_operand_count
from haloc.ops.table import Effect, Evaluator, Expand, OpDef, register


def _state(instruction: HloInstruction, results: list[Shape]) -> Shape:
    """(operand, result, contexts...); of several operands two tuples."""
    operands = one_or_tuple([o.shape for o in instruction.operands])
    return tuple_shape(operands, one_or_tuple(results), *contexts(instruction))


def _state_value(instruction: HloInstruction, operands: list[Value], results: list[Value]) -> Value:
    parts = [tuple(x) if len(x) > 1 else x[0] for x in (operands, results)]
    return (*parts, *map(blank, contexts(instruction)))


def _expand_start(instruction: HloInstruction) -> HloInstruction:
    """The collective itself, and the state around it."""
    beside, operands = Beside(instruction), instruction.operands
    opcode = instruction.opcode.removesuffix("-start")
    shape = instruction.shape.elements[1]
    result = beside.add(opcode, shape, operands, **instruction.attrs)
    result.frontend_attributes = instruction.frontend_attributes
    first = beside.tuple(*operands) if len(operands) > 1 else operands[0]
    rest = [blank_instruction(beside, s) for s in contexts(instruction)]
    return beside.tuple(first, result, *rest)


# --- all-gather ---------------------------------------------------------------------------------


def _declared_result(instruction: HloInstruction) -> Shape:
    elements = instruction.shape.elements
    return elements[1] if len(elements) > 1 else instruction.shape


def _infer_all_gather_start(instruction: HloInstruction) -> Shape:
    return _state(instruction, gathered_shapes(instruction, _declared_result(instruction)))


def _evaluate_all_gather_start(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    results = evaluate_all_gather(instruction, operands, context)
    check_gathered(instruction, results, instruction.shape.elements[1])
    return _state_value(instruction, operands, list(results))


def _example_all_gather(graph: ExampleGraph) -> HloInstruction:
    operands = example_operands(graph, least_rank=1)
    shape = one_or_tuple([o.shape for o in operands])
    start = graph.add(
        "all-gather-start",
        tuple_shape(shape, shape),
        operands,
        replica_groups=NO_GROUPS,
        dimensions=(0,),
    )
    return graph.add("all-gather-done", shape, [start])


register(
    OpDef(
        opcode="all-gather-start",
        operands=("operands*",),
        attrs=ALL_GATHER_ATTRS,
        infer=_infer_all_gather_start,
        evaluate=_evaluate_all_gather_start,
        any_size=True,
        lower=Expand(_expand_start),
        effect=Effect.STATEFUL,
        example=_example_all_gather,
        spec="XLA all-gather-start",
    )
)
register(
    OpDef(
        opcode="all-gather-done",
        operands=("operand",),
        infer=state_result,
        evaluate=evaluate_done,
        any_size=True,
        lower=Expand(expand_done),
        example=_example_all_gather,
        spec="XLA all-gather-done",
    )
)


# --- all-reduce: its state is the result alone ---------------------------------------------------


def _expand_all_reduce_start(instruction: HloInstruction) -> HloInstruction:
    beside = Beside(instruction)
    result = beside.add("all-reduce", instruction.shape, instruction.operands, **instruction.attrs)
    result.frontend_attributes = instruction.frontend_attributes
    return result


def _infer_all_reduce_done(instruction: HloInstruction) -> Shape:
    check_operand_count(instruction)
    return instruction.operands[0].shape


def _evaluate_all_reduce_done(_: HloInstruction, values: list[Value], __: Evaluator) -> Value:
    return values[0]


def _example_all_reduce(graph: ExampleGraph) -> HloInstruction:
    start = example_all_reduce(graph, "all-reduce-start")
    return graph.add("all-reduce-done", start.shape, [start])


register(
    OpDef(
        opcode="all-reduce-start",
        operands=("operands*",),
        attrs=ALL_REDUCE_ATTRS,
        infer=infer_all_reduce,
        evaluate=evaluate_all_reduce,
        any_size=True,
        lower=Expand(_expand_all_reduce_start),
        cost=all_reduce_cost,
        effect=Effect.STATEFUL,
        example=_example_all_reduce,
        spec="XLA all-reduce-start",
    )
)
register(
    OpDef(
        opcode="all-reduce-done",
        operands=("operand",),
        infer=_infer_all_reduce_done,
        evaluate=_evaluate_all_reduce_done,
        any_size=True,
        lower=Expand(expand_into_operand),
        example=_example_all_reduce,
        spec="XLA all-reduce-done",
    )
)


# --- collective-permute ---------------------------------------------------------------------------


def _infer_permute_start(instruction: HloInstruction) -> Shape:
    return _state(instruction, permuted_shapes(instruction))


def _evaluate_permute_start(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    results = evaluate_permute(instruction, operands, context)
    return _state_value(instruction, operands, list(results))


def _example_permute(graph: ExampleGraph) -> HloInstruction:
    operands = example_operands(graph)[:1]
    shape = operands[0].shape
    start = graph.add(
        "collective-permute-start",
        tuple_shape(shape, shape, CONTEXT, CONTEXT),
        operands,
        source_target_pairs=((0, 0),),
    )
    return graph.add("collective-permute-done", shape, [start])


register(
    OpDef(
        opcode="collective-permute-start",
        operands=("operands*",),
        attrs=PERMUTE_ATTRS,
        infer=_infer_permute_start,
        evaluate=_evaluate_permute_start,
        any_size=True,
        lower=Expand(_expand_start),
        effect=Effect.STATEFUL,
        example=_example_permute,
        spec="XLA collective-permute-start",
    )
)
register(
    OpDef(
        opcode="collective-permute-done",
        operands=("operand",),
        attrs=(CHANNEL,),
        infer=state_result,
        evaluate=evaluate_done,
        any_size=True,
        lower=Expand(expand_done),
        example=_example_permute,
        spec="XLA collective-permute-done",
    )
)
