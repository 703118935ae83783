"""while, conditional, call, fusion: ops that run other computations."""

from __future__ import annotations

from typing import Any

import numpy as np

from haloc.ir.dtype import F32, PRED, S32
from haloc.ir.literal import Value
from haloc.ir.module import HloComputation, HloInstruction
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.attrs import Aliasing, Bool, Computation, Computations, Name
from haloc.ops.example import ExampleGraph
from haloc.ops.reduction import region_cost
from haloc.ops.regions import check_computation, check_region, text
from haloc.ops.table import Attr, Cost, Evaluator, OpDef, Structure, attr, invalid, register


def _infer_while(instruction: HloInstruction) -> Shape:
    init = instruction.operands[0].shape
    check_region(instruction, "condition", [init], Shape(PRED), "while_c1")
    check_region(instruction, "body", [init], init, "while_c2")
    return init


def _evaluate_while(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    condition, body = attr(instruction, "condition"), attr(instruction, "body")
    state = operands[0]
    while context.call(condition, [state]):
        state = context.call(body, [state])
    return state


def _while_cost(instruction: HloInstruction) -> Cost:
    """One trip: the number of trips is not known."""
    return _sum(region_cost(attr(instruction, name)) for name in ("condition", "body"))


def _sum(costs: object) -> Cost:
    parts = list(costs)  # type: ignore[call-overload]
    return Cost(sum(c.flops for c in parts), sum(c.transcendentals for c in parts))


def _while_example(graph: ExampleGraph) -> HloInstruction:
    dims, dtype = graph.dims(), graph.pick([F32, S32])
    counter, data, pred = Shape(S32), Shape(dtype, dims), Shape(PRED)
    state = tuple_shape(counter, data)
    limit = int(graph.rng.integers(0, 5))

    def condition(g: ExampleGraph, args: list[HloInstruction]) -> HloInstruction:
        i = g.add("get-tuple-element", counter, args, index=0)
        return g.add("compare", pred, (i, g.constant(limit, S32)), direction="LT")

    def body(g: ExampleGraph, args: list[HloInstruction]) -> HloInstruction:
        i = g.add("get-tuple-element", counter, args, index=0)
        x = g.add("get-tuple-element", data, args, index=1)
        i = g.add("add", counter, (i, g.constant(1, S32)))
        return g.add("tuple", state, (i, g.add("add", data, (x, x))))

    start = graph.add("tuple", state, (graph.constant(0, S32), graph.operand(dtype, dims)))
    regions = {
        "condition": graph.region("condition", [state], condition),
        "body": graph.region("body", [state], body),
    }
    loop = graph.add("while", state, (start,), **regions)
    return graph.add("get-tuple-element", data, (loop,), index=1)


register(
    OpDef(
        opcode="while",
        operands=("init",),
        attrs=(
            # XLA numbers the body first.
            Attr("condition", Computation(), proto="called_computation_ids[1]"),
            Attr("body", Computation(), proto="called_computation_ids[0]"),
        ),
        infer=_infer_while,
        evaluate=_evaluate_while,
        lower=Structure.CONTROL,
        cost=_while_cost,
        example=_while_example,
        spec="while",
        any_size=True,
    )
)


def branches(instruction: HloInstruction) -> tuple[HloComputation, ...]:
    """The branches of a conditional, by number; for a pred one: (false branch, true branch)."""
    listed = attr(instruction, "branch_computations")
    if listed:
        return tuple(listed)
    pair = attr(instruction, "false_computation"), attr(instruction, "true_computation")
    if None in pair:
        invalid(
            instruction,
            "wanted branch_computations, or true_computation and false_computation",
            "case_c1",
        )
    return pair


def branch_operand(instruction: HloInstruction, branch: int) -> int:
    """The number of the operand that `branches(...)[branch]` is called with."""
    return branch + 1 if attr(instruction, "branch_computations") else 2 - branch


def _infer_conditional(instruction: HloInstruction) -> Shape:
    computations = branches(instruction)
    shapes = [o.shape for o in instruction.operands]
    listed = bool(attr(instruction, "branch_computations"))
    index_shapes = (Shape(S32), Shape(PRED)) if listed else (Shape(PRED),)
    if not shapes or not any(shapes[0].compatible(s) for s in index_shapes):
        given = text(shapes[0]) if shapes else "nothing"
        wanted = "s32[]" if listed else "pred[]"
        invalid(instruction, f"the branch index is {given}, wanted {wanted}")
    if shapes[0].dtype is PRED and len(computations) != 2:
        invalid(instruction, f"a pred chooses between 2 branches, given {len(computations)}")
    if len(shapes) != len(computations) + 1:
        invalid(
            instruction,
            f"{len(computations)} branches take {len(computations) + 1} operands, "
            f"given {len(shapes)}",
            "case_c1",
        )
    result = computations[0].root.shape
    for n, computation in enumerate(computations):
        operand = shapes[branch_operand(instruction, n)]
        check_computation(instruction, f"branch {n}", computation, [operand], result, "case_c3")
    return result


def chosen_branch(instruction: HloInstruction, index: np.ndarray) -> int:
    """The branch an index value chooses: out of range is the last; of a pred, true is 0 when
    branches are listed."""
    count = len(branches(instruction))
    if index.dtype == np.bool_:
        listed = bool(attr(instruction, "branch_computations"))
        return int(not index) if listed else int(index)
    return int(index) if 0 <= int(index) < count else count - 1


def _evaluate_conditional(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    n = chosen_branch(instruction, np.asarray(operands[0]))
    return context.call(branches(instruction)[n], [operands[branch_operand(instruction, n)]])


def _conditional_cost(instruction: HloInstruction) -> Cost:
    """The dearest branch."""
    costs = [region_cost(c) for c in branches(instruction)]
    return Cost(max(c.flops for c in costs), max(c.transcendentals for c in costs))


def _conditional_example(graph: ExampleGraph) -> HloInstruction:
    dims, dtype = graph.dims(), graph.pick([F32, S32])
    shape = Shape(dtype, dims)

    def branch(opcode: str) -> HloComputation:
        return graph.region(
            opcode, [shape], lambda g, args: g.add(opcode, shape, (args[0], args[0]))
        )

    opcodes = ["add", "multiply", "subtract"][: int(graph.rng.integers(1, 4))]
    if len(opcodes) == 2:
        index = graph.constant(bool(graph.rng.integers(2)), PRED)
        regions: dict[str, Any] = {
            "true_computation": branch(opcodes[0]),
            "false_computation": branch(opcodes[1]),
        }
    else:
        index = graph.constant(int(graph.rng.integers(-1, 5)), S32)
        regions = {"branch_computations": tuple(map(branch, opcodes))}
    operands = [graph.operand(dtype, dims) for _ in opcodes]
    return graph.add("conditional", shape, (index, *operands), **regions)


def _settle_branches(instruction: HloInstruction) -> None:
    """A pred chooses between true_computation and false_computation, a number among branches."""
    is_pred = bool(instruction.operands) and instruction.operands[0].shape.dtype is PRED
    two = ("true_computation", "false_computation")
    for name in ("branch_computations",) if is_pred else two:
        instruction.attrs.pop(name, None)


register(
    OpDef(
        opcode="conditional",
        operands=("branch_index", "branch_operands*"),
        attrs=(
            Attr("branch_computations", Computations(), (), "called_computation_ids"),
            Attr("true_computation", Computation(), None, "called_computation_ids[0]"),
            Attr("false_computation", Computation(), None, "called_computation_ids[1]"),
        ),
        infer=_infer_conditional,
        evaluate=_evaluate_conditional,
        lower=Structure.CONTROL,
        cost=_conditional_cost,
        example=_conditional_example,
        spec="case",
        settle=_settle_branches,
        any_size=True,
    )
)


def _infer_call(instruction: HloInstruction) -> Shape:
    shapes = [o.shape for o in instruction.operands]
    return check_region(instruction, "to_apply", shapes, None).root.shape


def _evaluate_call(instruction: HloInstruction, operands: list[Value], context: Evaluator) -> Value:
    return context.call(attr(instruction, "to_apply"), operands)


def _call_cost(instruction: HloInstruction) -> Cost:
    return region_cost(attr(instruction, "to_apply"))


def _called(graph: ExampleGraph) -> tuple[HloComputation, list[HloInstruction], Shape]:
    shape = Shape(graph.pick([F32, S32]), graph.dims())

    def build(g: ExampleGraph, args: list[HloInstruction]) -> HloInstruction:
        return g.add("subtract", shape, (g.add("add", shape, args), args[1]))

    operands = [graph.operand(shape.dtype, shape.dims) for _ in range(2)]
    return graph.region("called", [shape, shape], build), operands, shape


def _call_example(graph: ExampleGraph) -> HloInstruction:
    region, operands, shape = _called(graph)
    return graph.add("call", shape, operands, to_apply=region)


register(
    OpDef(
        opcode="call",
        operands=("operands*",),
        attrs=(
            Attr("to_apply", Computation(), proto="called_computation_ids[0]"),
            Attr("is_composite", Bool(), False),
        ),
        infer=_infer_call,
        evaluate=_evaluate_call,
        lower=Structure.CONTROL,
        cost=_call_cost,
        example=_call_example,
        any_size=True,
    )
)


def _infer_fusion(instruction: HloInstruction) -> Shape:
    shapes = [o.shape for o in instruction.operands]
    return check_region(instruction, "calls", shapes, None).root.shape


def _evaluate_fusion(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    return context.call(attr(instruction, "calls"), operands)


def _fusion_cost(instruction: HloInstruction) -> Cost:
    return region_cost(attr(instruction, "calls"))


def _fusion_example(graph: ExampleGraph) -> HloInstruction:
    region, operands, shape = _called(graph)
    return graph.add("fusion", shape, operands, kind="kLoop", calls=region)


register(
    OpDef(
        opcode="fusion",
        operands=("operands*",),
        attrs=(
            Attr("kind", Name(("kLoop", "kInput", "kOutput", "kCustom")), proto="fusion_kind"),
            Attr("output_to_operand_aliasing", Aliasing(), (), "output_operand_aliasing"),
            Attr("calls", Computation(), proto="called_computation_ids[0]"),
        ),
        infer=_infer_fusion,
        evaluate=_evaluate_fusion,
        lower=Structure.CONTROL,
        cost=_fusion_cost,
        example=_fusion_example,
        any_size=True,
    )
)
