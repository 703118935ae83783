"""reduce and map: regions of scalars applied over whole arrays."""

from __future__ import annotations

import numpy as np

from haloc.errors import UnimplementedError
from haloc.ir.dtype import BF16, F32, F64, PRED, S32, S64, U8, DType
from haloc.ir.literal import Value
from haloc.ir.module import HloComputation, HloInstruction
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.attrs import Computation, Dims
from haloc.ops.example import ExampleGraph
from haloc.ops.regions import (
    braces,
    check_dims,
    check_region,
    one_or_tuple,
    results,
    scalars,
    text,
)
from haloc.ops.table import (
    OPS,
    Attr,
    Cost,
    Evaluator,
    Expand,
    OpDef,
    Structure,
    attr,
    invalid,
    register,
)


def check_inputs_and_inits(
    instruction: HloInstruction, label: str
) -> tuple[list[Shape], list[Shape]]:
    """The operands' shapes split in inputs and as many scalar initial values of their types."""
    shapes = [o.shape for o in instruction.operands]
    count = len(shapes) // 2
    if not shapes or len(shapes) % 2:
        invalid(
            instruction,
            f"takes as many initial values as inputs, given {len(shapes)} operands",
            f"{label}_c3",
        )
    inputs, inits = shapes[:count], shapes[count:]
    for i, (x, init) in enumerate(zip(inputs, inits)):
        if not x.same_dims(inputs[0]) or not x.is_array:
            invalid(
                instruction,
                f"input {i} is {text(x)}, but input 0 is {text(inputs[0])}: "
                "inputs must have the same dimensions",
                f"{label}_c1",
            )
        if init.dims or init.dtype is not x.dtype:
            invalid(
                instruction,
                f"initial value {i} is {text(init)}, wanted {x.dtype}[]",
                f"{label}_c2",
            )
    return inputs, inits


def _infer_reduce(instruction: HloInstruction) -> Shape:
    inputs, inits = check_inputs_and_inits(instruction, "reduce")
    dimensions = attr(instruction, "dimensions")
    check_dims(instruction, "dimensions", dimensions, inputs[0].rank, "reduce_c4", "reduce_c5")
    region = check_region(instruction, "to_apply", inits + scalars(inputs), None, "reduce_c6")
    _check_region_result(instruction, region, inits, "reduce_c6")
    kept = [d for d in range(inputs[0].rank) if d not in dimensions]
    shapes = [x.keep(kept) for x in inputs]
    return tuple_shape(*shapes) if region.root.shape.is_tuple else shapes[0]


def _check_region_result(
    instruction: HloInstruction, region: HloComputation, inits: list[Shape], label: str
) -> None:
    given = region.root.shape
    if given.compatible(one_or_tuple(inits)) or given.compatible(tuple_shape(*inits)):
        return
    invalid(
        instruction,
        f"to_apply {region.name} returns {text(given)}, wanted {text(one_or_tuple(inits))}",
        label,
    )


def _evaluate_reduce(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    """Neighbours are combined pairwise until one is left; the initial value comes first."""
    count = len(operands) // 2
    dimensions = tuple(attr(instruction, "dimensions"))
    region = attr(instruction, "to_apply")
    columns: list[np.ndarray] = []
    for x in operands[:count]:
        front = np.moveaxis(np.asarray(x), dimensions, range(len(dimensions)))
        kept = front.shape[len(dimensions) :]
        columns.append(front.reshape((-1 if front.size else _count(front, dimensions), *kept)))
    inits = [np.broadcast_to(np.asarray(i), kept) for i in operands[count:]]
    while columns[0].shape[0] > 1:
        pairs = columns[0].shape[0] // 2 * 2
        rest = [c[pairs:] for c in columns]
        evens, odds = [c[0:pairs:2] for c in columns], [c[1:pairs:2] for c in columns]
        combined = results(context.call_elementwise(region, [*evens, *odds]))
        columns = [np.concatenate(pair) for pair in zip(combined, rest)]
    if columns[0].shape[0] == 1:
        inits = results(context.call_elementwise(region, inits + [c[0] for c in columns]))
    arrays = tuple(np.array(i) for i in inits)
    return arrays if instruction.shape.is_tuple else arrays[0]


def _count(front: np.ndarray, dimensions: tuple[int, ...]) -> int:
    return int(np.prod(front.shape[: len(dimensions)], dtype=np.int64))


def region_cost(region: HloComputation) -> Cost:
    """The work of one execution of a computation, called ones included."""
    costs = [OPS[i.opcode].cost(i) for i in region.instructions]
    return Cost(sum(c.flops for c in costs), sum(c.transcendentals for c in costs))


def _reduce_cost(instruction: HloInstruction) -> Cost:
    """(elements in - elements out) executions of the region, for each result."""
    each = region_cost(attr(instruction, "to_apply"))
    inputs = instruction.operands[0].shape.element_count
    executions = max(0, inputs - instruction.shape.leaves()[0].element_count)
    return Cost(each.flops * executions, each.transcendentals * executions)


def _argmax_region(graph: ExampleGraph, dtype: DType) -> HloComputation:
    value, index, pred = Shape(dtype), Shape(S32), Shape(PRED)

    def build(g: ExampleGraph, args: list[HloInstruction]) -> HloInstruction:
        a, i, b, j = args
        greater = g.add("compare", pred, (a, b), direction="GT")
        equal = g.add("compare", pred, (a, b), direction="EQ")
        earlier = g.add("compare", pred, (i, j), direction="LT")
        tie = g.add("and", pred, (equal, earlier))
        first = g.add("or", pred, (greater, tie))
        best = g.add("select", value, (first, a, b))
        where = g.add("select", index, (first, i, j))
        return g.add("tuple", tuple_shape(value, index), (best, where))

    return graph.region("argmax", [value, index, value, index], build)


def some_dims(graph: ExampleGraph, rank: int) -> tuple[int, ...]:
    """A random subset of the dimensions, in order."""
    return tuple(d for d in range(rank) if graph.rng.random() < 0.6)


def _reduce_example(graph: ExampleGraph) -> HloInstruction:
    dims = graph.dims(1)
    dimensions = some_dims(graph, len(dims))
    kept = tuple(n for d, n in enumerate(dims) if d not in dimensions)
    if graph.rng.random() < 0.25:
        x = graph.operand(F32, dims)
        index = graph.operand(S32, dims)
        bottom, zero = graph.constant(-np.inf, F32), graph.constant(0, S32)
        return graph.add(
            "reduce",
            tuple_shape(Shape(F32, kept), Shape(S32, kept)),
            (x, index, bottom, zero),
            dimensions=dimensions,
            to_apply=_argmax_region(graph, F32),
        )
    dtype = graph.pick([F32, F32, S32, BF16, F64, U8, S64, PRED])
    # XLA drops the initial value of a reduction over one element: it must not matter here.
    low = 0 if dtype.is_unsigned else -100
    choices = [("add", 0), ("maximum", low), ("minimum", 100), ("multiply", 1)]
    opcode, init = graph.pick([("and", True), ("or", False)] if dtype is PRED else choices)
    operands = (graph.operand(dtype, dims), graph.constant(init, dtype))
    region = graph.binary_region(opcode, dtype)
    return graph.add("reduce", Shape(dtype, kept), operands, dimensions=dimensions, to_apply=region)


register(
    OpDef(
        opcode="reduce",
        operands=("inputs_and_init_values*",),
        attrs=(
            Attr("dimensions", Dims(), ()),
            Attr("to_apply", Computation(), proto="called_computation_ids[0]"),
        ),
        infer=_infer_reduce,
        evaluate=_evaluate_reduce,
        lower=Structure.REDUCTION,
        cost=_reduce_cost,
        example=_reduce_example,
        spec="reduce",
    )
)


def _infer_map(instruction: HloInstruction) -> Shape:
    shapes = [o.shape for o in instruction.operands]
    if not shapes:
        invalid(instruction, "takes at least one operand", "map_c1")
    for i, x in enumerate(shapes):
        if not x.same_dims(shapes[0]) or not x.is_array:
            invalid(
                instruction,
                f"operand {i} is {text(x)}, but operand 0 is {text(shapes[0])}: "
                "operands must have the same dimensions",
                "map_c1",
            )
    dimensions = tuple(attr(instruction, "dimensions"))
    if dimensions != tuple(range(shapes[0].rank)):
        invalid(
            instruction,
            f"dimensions={braces(dimensions)} must name all dimensions of {text(shapes[0])}, "
            "in order",
            "map_c2",
        )
    region = check_region(instruction, "to_apply", scalars(shapes), None, "map_c4")
    if region.root.shape.dims or not region.root.shape.is_array:
        invalid(
            instruction,
            f"to_apply {region.name} returns {text(region.root.shape)}, wanted a scalar",
            "map_c4",
        )
    return shapes[0].with_dtype(region.root.shape.dtype).with_default_layout()


def _evaluate_map(instruction: HloInstruction, operands: list[Value], context: Evaluator) -> Value:
    return context.call_elementwise(attr(instruction, "to_apply"), operands)


def _map_cost(instruction: HloInstruction) -> Cost:
    each = region_cost(attr(instruction, "to_apply"))
    count = instruction.shape.element_count
    return Cost(each.flops * count, each.transcendentals * count)


def _expand_map(instruction: HloInstruction) -> HloInstruction:
    """map(f, x, y) => f's instructions with every scalar shape widened to x's dimensions."""
    region = attr(instruction, "to_apply")
    for inner in region.instructions:
        if inner.opcode not in ("parameter", "constant") and not OPS[inner.opcode].is_elementwise:
            raise UnimplementedError(
                f"map: to_apply {region.name} has a {inner.opcode}; "
                "haloc maps elementwise ops, parameters and constants"
            )
    dims = instruction.shape.dims
    computation = instruction.computation
    wide: dict[HloInstruction, HloInstruction] = {}
    for inner in region.instructions:
        if inner.opcode == "parameter":
            wide[inner] = instruction.operands[inner.attrs["parameter_number"]]
            continue
        if inner.opcode == "constant":
            scalar = HloInstruction("constant", inner.shape, (), dict(inner.attrs))
            scalar = computation.add(scalar, before=instruction)
            new = HloInstruction(
                "broadcast", inner.shape.with_dims(dims), (scalar,), {"dimensions": ()}
            )
        else:
            shape = inner.shape.with_dims(dims)
            new = HloInstruction(
                inner.opcode, shape, [wide[o] for o in inner.operands], dict(inner.attrs)
            )
        wide[inner] = computation.add(new, before=instruction)
    return wide[region.root]


def _map_example(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = graph.pick([F32, S32]), graph.dims()
    count = int(graph.rng.integers(1, 4))
    scalar = Shape(dtype)

    def build(g: ExampleGraph, args: list[HloInstruction]) -> HloInstruction:
        total = g.add("negate", scalar, (args[0],))
        for argument in args[1:]:
            total = g.add("multiply", scalar, (total, argument))
        return g.add("add", scalar, (total, g.constant(1, dtype)))

    region = graph.region("mapped", [scalar] * count, build)
    operands = [graph.operand(dtype, dims) for _ in range(count)]
    dimensions = tuple(range(len(dims)))
    return graph.add("map", Shape(dtype, dims), operands, dimensions=dimensions, to_apply=region)


register(
    OpDef(
        opcode="map",
        operands=("operands*",),
        attrs=(
            Attr("dimensions", Dims(), ()),
            Attr("to_apply", Computation(), proto="called_computation_ids[0]"),
        ),
        infer=_infer_map,
        evaluate=_evaluate_map,
        lower=Expand(_expand_map),
        cost=_map_cost,
        example=_map_example,
        spec="map",
    )
)
