"""async-start, async-update, async-done, copy-start, copy-done: work begun here and ended there.

The state between start and done is a tuple (operands, result, contexts...). Where nothing runs at
the same time the whole work is done at the start, and every row expands into that.
"""

from __future__ import annotations

import numpy as np

from haloc.ir import dtype as dt
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape, scalar_shape, tuple_shape
from haloc.ops.attrs import Computation, Int, Text
from haloc.ops.example import ExampleGraph
from haloc.ops.expand import Beside
from haloc.ops.families import pick_dtype
from haloc.ops.reduction import region_cost
from haloc.ops.regions import check_region, text
from haloc.ops.rules import ANY, check_operand_count
from haloc.ops.table import (
    Attr,
    Cost,
    Evaluator,
    Expand,
    OpDef,
    attr,
    invalid,
    register,
)

CONTEXT = scalar_shape(dt.U32)


# --- What starts and dones share ---------------------------------------------------------------


def blank(shape: Shape) -> Value:
    """Zeros of a shape."""
    if shape.is_tuple:
        return tuple(map(blank, shape.elements))
    return np.zeros(shape.dims, shape.dtype.numpy) if shape.is_array else None


def blank_instruction(beside: Beside, shape: Shape) -> HloInstruction:
    """Instructions that give `blank(shape)`."""
    if shape.is_tuple:
        return beside.tuple(*(blank_instruction(beside, e) for e in shape.elements))
    if shape.is_token:
        return beside.add("after-all", shape)
    return beside.full(0, shape.with_default_layout())


def contexts(instruction: HloInstruction, number: int = 2) -> tuple[Shape, ...]:
    """What stands in a start's declared shape behind operands and result."""
    return instruction.shape.elements[number:]


def state_result(instruction: HloInstruction) -> Shape:
    """Infers a done: the result in the state (operands, result, contexts...)."""
    check_operand_count(instruction)
    state = instruction.operands[0].shape
    if len(state.elements) < 2:
        wanted = "a tuple (operands, result, ...), which the start gives"
        invalid(instruction, f"operand is {text(state)}, wanted {wanted}")
    return state.elements[1]


def evaluate_done(_: HloInstruction, values: list[Value], __: Evaluator) -> Value:
    (state,) = values
    assert isinstance(state, tuple)
    return state[1]


def expand_done(instruction: HloInstruction) -> HloInstruction:
    return Beside(instruction).element(instruction.operands[0], 1)


def expand_into_operand(instruction: HloInstruction) -> HloInstruction:
    return instruction.operands[0]


# --- async-start, async-update, async-done ------------------------------------------------------


def _infer_async_start(instruction: HloInstruction) -> Shape:
    shapes = [o.shape for o in instruction.operands]
    called = check_region(instruction, "calls", shapes, None)
    return tuple_shape(tuple_shape(*shapes), called.root.shape, *contexts(instruction))


def _evaluate_async_start(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    result = context.call(attr(instruction, "calls"), operands)
    return (tuple(operands), result, *map(blank, contexts(instruction)))


def _expand_async_start(instruction: HloInstruction) -> HloInstruction:
    beside, called = Beside(instruction), attr(instruction, "calls")
    result = beside.add("call", called.root.shape, instruction.operands, to_apply=called)
    rest = [blank_instruction(beside, s) for s in contexts(instruction)]
    return beside.tuple(beside.tuple(*instruction.operands), result, *rest)


def _async_cost(instruction: HloInstruction) -> Cost:
    return region_cost(attr(instruction, "calls"))


def _check_same_computation(instruction: HloInstruction) -> None:
    """A computation named again is the one that was started."""
    again, before = attr(instruction, "calls"), instruction.operands[0].attrs.get("calls")
    if again is not None and before is not None and again is not before:
        fault = f"calls={again.name}, but {instruction.operands[0].name} calls {before.name}"
        invalid(instruction, fault)


def _infer_async_update(instruction: HloInstruction) -> Shape:
    state_result(instruction)
    _check_same_computation(instruction)
    return instruction.operands[0].shape


def _infer_async_done(instruction: HloInstruction) -> Shape:
    _check_same_computation(instruction)
    return state_result(instruction)


def _evaluate_update(_: HloInstruction, values: list[Value], __: Evaluator) -> Value:
    return values[0]


def _started(graph: ExampleGraph) -> HloInstruction:
    shape = Shape(graph.pick([dt.F32, dt.S32]), graph.dims())

    def build(g: ExampleGraph, args: list[HloInstruction]) -> HloInstruction:
        return g.add("multiply", shape, args)  # XLA wants one op and no more

    operands = [graph.operand(shape.dtype, shape.dims) for _ in range(2)]
    rest = [CONTEXT] if graph.rng.random() < 0.5 else []
    return graph.add(
        "async-start",
        tuple_shape(tuple_shape(shape, shape), shape, *rest),
        operands,
        calls=graph.region("async_computation", [shape, shape], build),
    )


def _example_async(graph: ExampleGraph) -> HloInstruction:
    state = _started(graph)
    for _ in range(int(graph.rng.integers(3))):
        state = graph.add("async-update", state.shape, [state])
    return graph.add("async-done", state.shape.elements[1], [state])


# What they belong to is known from async-start; older text repeats it.
AGAIN = (Attr("calls", Computation(), None, "called_computation_ids[0]"),)

register(
    OpDef(
        opcode="async-start",
        operands=("operands*",),
        attrs=(
            Attr("async_execution_thread", Text(), ""),
            Attr("calls", Computation(), proto="called_computation_ids[0]"),
        ),
        infer=_infer_async_start,
        evaluate=_evaluate_async_start,
        any_size=True,
        lower=Expand(_expand_async_start),
        cost=_async_cost,
        example=_example_async,
        spec="async_start",
    )
)
register(
    OpDef(
        opcode="async-update",
        operands=("operand",),
        attrs=AGAIN,
        infer=_infer_async_update,
        evaluate=_evaluate_update,
        any_size=True,
        lower=Expand(expand_into_operand),
        example=_example_async,
        spec="XLA async-update",
    )
)
register(
    OpDef(
        opcode="async-done",
        operands=("operand",),
        attrs=AGAIN,
        infer=_infer_async_done,
        evaluate=evaluate_done,
        any_size=True,
        lower=Expand(expand_done),
        example=_example_async,
        spec="async_done",
    )
)


# --- copy-start, copy-done ----------------------------------------------------------------------


def _infer_copy_start(instruction: HloInstruction) -> Shape:
    """(target, source, context): the result comes first."""
    check_operand_count(instruction)
    source = instruction.operands[0].shape
    return tuple_shape(source, source, *(contexts(instruction) or (CONTEXT,)))


def _evaluate_copy_start(instruction: HloInstruction, values: list[Value], _: Evaluator) -> Value:
    return (values[0], values[0], *map(blank, contexts(instruction)))


def _expand_copy_start(instruction: HloInstruction) -> HloInstruction:
    beside, (source,) = Beside(instruction), instruction.operands
    target = beside.add("copy", instruction.shape.elements[0], (source,))
    rest = [blank_instruction(beside, s) for s in contexts(instruction)]
    return beside.tuple(target, source, *rest)


def _infer_copy_done(instruction: HloInstruction) -> Shape:
    state_result(instruction)
    return instruction.operands[0].shape.elements[0]


def _evaluate_copy_done(_: HloInstruction, values: list[Value], __: Evaluator) -> Value:
    (state,) = values
    assert isinstance(state, tuple)
    return state[0]


def _expand_copy_done(instruction: HloInstruction) -> HloInstruction:
    return Beside(instruction).element(instruction.operands[0], 0)


def _example_copy(graph: ExampleGraph) -> HloInstruction:
    operand = graph.operand(pick_dtype(graph, ANY), graph.dims())
    shape = operand.shape
    state = graph.add("copy-start", tuple_shape(shape, shape, CONTEXT), [operand])
    return graph.add("copy-done", shape, [state])


register(
    OpDef(
        opcode="copy-start",
        operands=("operand",),
        attrs=(Attr("cross_program_prefetch_index", Int(), -1),),
        infer=_infer_copy_start,
        evaluate=_evaluate_copy_start,
        any_size=True,
        lower=Expand(_expand_copy_start),
        example=_example_copy,
        spec="XLA copy-start",
    )
)
register(
    OpDef(
        opcode="copy-done",
        operands=("operand",),
        infer=_infer_copy_done,
        evaluate=_evaluate_copy_done,
        any_size=True,
        lower=Expand(_expand_copy_done),
        example=_example_copy,
        spec="XLA copy-done",
    )
)
