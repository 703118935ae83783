"""scan: a computation run along a dimension, which hands values on from one step to the next."""

from __future__ import annotations

import numpy as np

from haloc.ir.dtype import F32, S32
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.attrs import Bool, Computation, Dims, Int, Name
from haloc.ops.example import ExampleGraph
from haloc.ops.expand import Beside
from haloc.ops.reduction import region_cost
from haloc.ops.regions import braces, check_region, results, text
from haloc.ops.rules import array_operands
from haloc.ops.table import Attr, Cost, Evaluator, Expand, OpDef, attr, invalid, register


def _dimension(instruction: HloInstruction) -> int:
    dimensions = tuple(attr(instruction, "dimensions"))
    if len(dimensions) != 1:
        invalid(instruction, f"dimensions={braces(dimensions)} must name one dimension")
    return dimensions[0]


def _carries(instruction: HloInstruction) -> int:
    carries = attr(instruction, "num_carries")
    if not 0 <= carries <= len(instruction.operands):
        count = len(instruction.operands)
        invalid(instruction, f"num_carries={carries} is not in 0 to {count}, the operands")
    return carries


def _steps(instruction: HloInstruction) -> int:
    """The size of the scanned dimension: of inputs, or of results where there are no inputs."""
    dim = _dimension(instruction)
    carries = _carries(instruction)
    given = [o.shape for o in instruction.operands[: len(instruction.operands) - carries]]
    if not given:
        whole = instruction.shape
        members = list(whole.elements) if whole.is_tuple else [whole]
        given = members[: len(members) - carries]
    sizes = {s.dims[dim] for s in given if 0 <= dim < s.rank}
    if len(sizes) != 1 or any(not 0 <= dim < s.rank for s in given):
        listed = ", ".join(map(text, given)) or "nothing"
        invalid(instruction, f"scans {listed}, wanted arrays with one size of dimension {dim}")
    return sizes.pop()


def _without(shape: Shape, dim: int) -> Shape:
    return shape.with_dims(shape.dims[:dim] + shape.dims[dim + 1 :])


def _infer(instruction: HloInstruction) -> Shape:
    shapes = array_operands(instruction)
    steps, dim, carries = _steps(instruction), _dimension(instruction), _carries(instruction)
    count = len(shapes) - carries
    inits = [s.with_default_layout() for s in shapes[count:]]
    slices = [_without(s, dim) for s in shapes[:count]]
    region = check_region(instruction, "to_apply", slices + inits, None)
    root = region.root.shape
    given = list(root.elements) if root.is_tuple else [root]
    outputs, handed = given[: len(given) - carries], given[len(given) - carries :]
    if len(given) < carries or not all(map(Shape.compatible, handed, inits)):
        wanted = ", ".join(["...", *map(text, inits)])
        invalid(instruction, f"to_apply {region.name} returns {text(root)}, wanted ({wanted})")
    for shape in outputs:
        if not shape.is_array or dim > shape.rank:
            invalid(instruction, f"to_apply {region.name} gives {text(shape)} for dimension {dim}")
    full = [s.with_dims((*s.dims[:dim], steps, *s.dims[dim:])) for s in outputs]
    # A region that returns one value may give a tuple of one.
    in_tuple = root.is_tuple or instruction.shape.is_tuple
    return tuple_shape(*full, *inits) if in_tuple else (full + inits)[0]


def _evaluate(instruction: HloInstruction, operands: list[Value], context: Evaluator) -> Value:
    steps, dim, carries = _steps(instruction), _dimension(instruction), _carries(instruction)
    count = len(operands) - carries
    inputs = [np.asarray(x) for x in operands[:count]]
    state = operands[count:]
    whole = instruction.shape
    shapes = list(whole.elements) if whole.is_tuple else [whole]
    outputs = [np.zeros(s.dims, s.dtype.numpy) for s in shapes[: len(shapes) - carries]]
    order = range(steps)
    for i in reversed(order) if attr(instruction, "is_reverse") else order:
        slices: list[Value] = [np.array(np.take(x, i, dim)) for x in inputs]
        given = results(context.call(attr(instruction, "to_apply"), slices + state))
        for output, value in zip(outputs, given):
            np.moveaxis(output, dim, 0)[i] = value
        state = given[len(outputs) :]
    values = (*outputs, *state)
    return values if whole.is_tuple else values[0]


def _expand(instruction: HloInstruction) -> HloInstruction:
    """scan(f, xs, c) => while i < n: ys[i], c = f(xs[i], c)"""
    beside = Beside(instruction)
    steps, dim, carries = _steps(instruction), _dimension(instruction), _carries(instruction)
    count = len(instruction.operands) - carries
    whole = instruction.shape.with_default_layout()
    shapes = list(whole.elements) if whole.is_tuple else [whole]
    outputs = [beside.full(0, s) for s in shapes[: len(shapes) - carries]]
    region = attr(instruction, "to_apply")

    def starts(inside: Beside, i: HloInstruction, rank: int) -> list[HloInstruction]:
        zero = inside.constant(0, S32)
        return [i if d == dim else zero for d in range(rank)]

    def body(
        inside: Beside, i: HloInstruction, state: list[HloInstruction]
    ) -> list[HloInstruction]:
        if attr(instruction, "is_reverse"):
            i = inside.binary("subtract", inside.constant(steps - 1, S32), i)
        inputs = state[:count]
        filled, handed = state[count : count + len(outputs)], state[count + len(outputs) :]
        slices = []
        for x in inputs:
            sizes = (*x.shape.dims[:dim], 1, *x.shape.dims[dim + 1 :])
            at = starts(inside, i, x.shape.rank)
            one = inside.add(
                "dynamic-slice", x.shape.with_dims(sizes), (x, *at), dynamic_slice_sizes=sizes
            )
            slices.append(inside.reshape(one, _without(x.shape, dim).dims))
        called = inside.add("call", region.root.shape, (*slices, *handed), to_apply=region)
        given = inside.elements(called) if called.shape.is_tuple else [called]
        after = []
        for y, value in zip(filled, given):
            dims = value.shape.dims
            update = inside.reshape(value, (*dims[:dim], 1, *dims[dim:]))
            at = starts(inside, i, y.shape.rank)
            after.append(inside.add("dynamic-update-slice", y.shape, (y, update, *at)))
        return [*inputs, *after, *given[len(outputs) :]]

    final = beside.loop(steps, [*instruction.operands[:count], *outputs,
                                *instruction.operands[count:]], body)[count:]  # fmt: skip
    return beside.tuple(*final) if whole.is_tuple else final[0]


def _cost(instruction: HloInstruction) -> Cost:
    each, steps = region_cost(attr(instruction, "to_apply")), _steps(instruction)
    return Cost(each.flops * steps, each.transcendentals * steps)


def _example(graph: ExampleGraph) -> HloInstruction:
    """Running sums, and what was summed times the sum before."""
    dtype, dims = graph.pick([F32, S32]), graph.dims(1)
    dim = int(graph.rng.integers(len(dims)))
    one = _without(Shape(dtype, dims), dim)

    def build(g: ExampleGraph, args: list[HloInstruction]) -> HloInstruction:
        total = g.add("add", one, args)
        product = g.add("multiply", one, args)
        return g.add("tuple", tuple_shape(one, one), (product, total))

    region = graph.region("step", [one, one], build)
    shape = tuple_shape(Shape(dtype, dims), one)
    both = graph.add(
        "scan",
        shape,
        (graph.operand(dtype, dims), graph.operand(dtype, one.dims)),
        to_apply=region,
        dimensions=(dim,),
        num_carries=1,
        is_reverse=bool(graph.rng.integers(2)),
    )
    part = int(graph.rng.integers(2))
    return graph.add("get-tuple-element", shape.elements[part], (both,), index=part)


register(
    OpDef(
        opcode="scan",
        operands=("inputs_and_inits*",),
        attrs=(
            Attr("to_apply", Computation(), proto="called_computation_ids[0]"),
            Attr("dimensions", Dims(), ()),
            Attr("num_carries", Int(), 0),
            Attr("is_reverse", Bool(), False),
            Attr("is_associative", Name(("true", "false", "unknown"), ("", "true", "false")), ""),
        ),
        infer=_infer,
        evaluate=_evaluate,
        lower=Expand(_expand),
        cost=_cost,
        example=_example,
        spec="chlo.scan",
    )
)
