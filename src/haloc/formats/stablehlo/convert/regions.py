"""Regions as computations, and the ops that hold them."""

from __future__ import annotations

from haloc.errors import InvalidArgumentError
from haloc.formats.stablehlo.convert import reading
from haloc.formats.stablehlo.convert.context import Scope, converts, result_shape, results_shape
from haloc.formats.stablehlo.convert.shapes import shape_of
from haloc.formats.stablehlo.convert.sharding import annotate
from haloc.formats.stablehlo.mlir import MlirBlock, MlirOp, MlirValue
from haloc.ir.dtype import DType
from haloc.ir.module import HloComputation, HloInstruction
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.attrs import WindowDim

RETURNS = ("stablehlo.return", "func.return", "sdy.return", "mhlo.return")


def block_of(op: MlirOp, number: int) -> MlirBlock:
    """The one block of a region."""
    if number >= len(op.regions) or len(op.regions[number].blocks) != 1:
        reading.fail(op, f"region {number} must hold one block, ended by stablehlo.return")
    return op.regions[number].blocks[0]


def fill(scope: Scope, op: MlirOp, block: MlirBlock, always_tuple: bool = False) -> None:
    """Convert a block's ops into `scope` and set the root: the value returned, or their tuple."""
    last = block.operations[-1] if block.operations else None
    if last is None or last.name not in RETURNS:
        reading.fail(op, "its region does not end in stablehlo.return")
    program = scope.program
    for inner in block.operations[:-1]:
        count = len(scope.computation)
        try:
            scope.convert(inner)
            if len(scope.computation) > count:
                _annotate_result(scope, inner)
        except Exception as error:
            program.explain(error, inner)
            raise
    scope.metadata, scope.name = program.metadata.of(last.location)
    roots = [scope.value(o) for o in last.operands]
    if len(roots) == 1 and not always_tuple:
        scope.computation.root = roots[0]
    else:
        scope.name = ""
        scope.computation.root = scope.tuple(roots)


def _annotate_result(scope: Scope, op: MlirOp) -> None:
    """Give what was made for an op the annotations that the op has."""
    if op.attributes.keys().isdisjoint(("mhlo.sharding", "mhlo.frontend_attributes")):
        return
    made = scope.values.get(op.results[0]) if op.results else None
    if made is not None:
        annotate(scope, made if isinstance(made, HloInstruction) else made[0], op)


def new_scope(scope: Scope, name: str) -> Scope:
    return Scope(scope.program, scope.program.hlo.add_computation(name), scope)


def scalar_region(scope: Scope, op: MlirOp, number: int) -> HloComputation:
    """A region whose block arguments are the computation's parameters."""
    block = block_of(op, number)
    inner = new_scope(scope, f"region_{len(scope.program.hlo.computations)}")
    for index, argument in enumerate(block.arguments):
        inner.values[argument] = inner.parameter(index, shape_of(argument.type), scope.name)
    fill(inner, op, block)
    return inner.computation


def addition(scope: Scope, dtype: DType) -> HloComputation:
    """A computation that adds two scalars."""
    inner = new_scope(scope, "add")
    shape = Shape(dtype)
    parameters = [inner.parameter(i, shape) for i in range(2)]
    inner.computation.root = inner.add("add", shape, parameters)
    return inner.computation


def captured(scope: Scope, blocks: list[MlirBlock]) -> list[MlirValue]:
    """Values from outside that the blocks use, constants left out, in order of first use."""
    inside: set[MlirValue] = set()
    used: dict[MlirValue, None] = {}

    def walk(block: MlirBlock) -> None:
        inside.update(block.arguments)
        for op in block.operations:
            for operand in op.operands:
                if operand not in inside:
                    used[operand] = None
            for region in op.regions:
                for nested in region.blocks:
                    walk(nested)
            inside.update(op.results)

    for block in blocks:
        walk(block)
    return [v for v in used if scope.value(v).opcode != "constant"]


def packed_parameter(inner: Scope, values: list[MlirValue], shapes: list[Shape]) -> None:
    """One parameter: the value itself, or a tuple of them when they are not one."""
    if len(values) == 1:
        inner.values[values[0]] = inner.parameter(0, shapes[0], values[0].name)
        return
    whole = inner.parameter(0, tuple_shape(*shapes), "arg_tuple")
    for index, value in enumerate(values):
        inner.values[value] = (whole, index)


def packed(scope: Scope, members: list[HloInstruction]) -> HloInstruction:
    return members[0] if len(members) == 1 else scope.tuple(members)


# --- while, case, if -----------------------------------------------------------------------------


@converts("stablehlo.while")
def _while(scope: Scope, op: MlirOp) -> None:
    """Captured values are carried along unchanged behind the op's own."""
    condition, body = block_of(op, 0), block_of(op, 1)
    inits = scope.operands(op)
    if len(condition.arguments) != len(inits) or len(body.arguments) != len(inits):
        reading.fail(op, f"its regions must have {len(inits)} arguments, one an operand")
    name, metadata = scope.name, scope.metadata
    extra = captured(scope, [condition, body])
    members = inits + [scope.value(v) for v in extra]
    shapes = [m.shape for m in members]
    made = []
    for block in (condition, body):
        inner = new_scope(scope, f"region_{len(scope.program.hlo.computations)}")
        packed_parameter(inner, [*block.arguments, *extra], shapes)
        if block is body:
            _fill_body(inner, op, block, extra)
        else:
            fill(inner, op, block)
        made.append(inner.computation)
    scope.name, scope.metadata = name, metadata
    operand = packed(scope, members)
    loop = scope.add("while", operand.shape, (operand,), condition=made[0], body=made[1])
    if len(members) == 1:
        scope.values[op.results[0]] = loop
        return
    for index, result in enumerate(op.results):
        scope.values[result] = (loop, index)


def _fill_body(inner: Scope, op: MlirOp, block: MlirBlock, extra: list[MlirValue]) -> None:
    """The body returns its own values and what it captured."""
    last = block.operations[-1] if block.operations else None
    if last is not None and extra:
        values = [*last.operands, *extra]
        ended = MlirOp(last.name, values, {}, [], [], last.location, last.position)
        block = MlirBlock(block.arguments, [*block.operations[:-1], ended])
    fill(inner, op, block)


@converts("stablehlo.case", "stablehlo.if")
def _conditional(scope: Scope, op: MlirOp) -> None:
    (index,) = scope.operands(op, 1)
    if not op.regions:
        reading.fail(op, "it has no branches")
    name, metadata = scope.name, scope.metadata
    branches, operands = [], []
    for number in range(len(op.regions)):
        block = block_of(op, number)
        extra = captured(scope, [block])
        members = [scope.value(v) for v in extra]
        inner = new_scope(scope, f"region_{len(scope.program.hlo.computations)}")
        packed_parameter(inner, extra, [m.shape for m in members])
        fill(inner, op, block)
        branches.append(inner.computation)
        scope.name, scope.metadata = name, metadata
        operands.append(packed(scope, members))
    shape = results_shape(op)
    if op.name == "stablehlo.if":
        if len(branches) != 2:
            reading.fail(op, f"it has {len(branches)} regions, expected true and false")
        attrs = {"true_computation": branches[0], "false_computation": branches[1]}
        made = scope.add("conditional", shape, (index, *operands), **attrs)
    else:
        computations = tuple(branches)
        made = scope.add("conditional", shape, (index, *operands), branch_computations=computations)
    scope.results(op, made)


# --- Reductions ----------------------------------------------------------------------------------


@converts("stablehlo.reduce")
def _reduce(scope: Scope, op: MlirOp) -> None:
    region = scalar_region(scope, op, 0)
    dims = reading.ints(op, "dimensions")
    operands = scope.operands(op)
    made = scope.add("reduce", results_shape(op), operands, dimensions=dims, to_apply=region)
    scope.results(op, made)


@converts("chlo.scan")
def _scan(scope: Scope, op: MlirOp) -> None:
    """HLO gives a tuple, also of one result."""
    operands = scope.operands(op)
    sizes = reading.ints(op, "operandSegmentSizes")
    if len(sizes) != 2 or sum(sizes) != len(operands) or min(sizes) < 0:
        count = len(operands)
        reading.fail(
            op, f"operandSegmentSizes must be the numbers of inputs and inits, in all {count}"
        )
    region = scalar_region(scope, op, 0)
    attrs = {"dimensions": (reading.integer(op, "dimension"),), "num_carries": sizes[1]}
    if reading.flag(op, "is_reverse"):
        attrs["is_reverse"] = True
    if "is_associative" in op.attributes:
        attrs["is_associative"] = "true" if reading.flag(op, "is_associative") else "false"
    shape = tuple_shape(*(shape_of(r.type) for r in op.results))
    scope.results(op, scope.add("scan", shape, operands, to_apply=region, **attrs))


@converts("stablehlo.map")
def _map(scope: Scope, op: MlirOp) -> HloInstruction:
    region = scalar_region(scope, op, 0)
    dims = reading.ints(op, "dimensions")
    operands = scope.operands(op)
    return scope.add("map", result_shape(op), operands, dimensions=dims, to_apply=region)


@converts("stablehlo.sort")
def _sort(scope: Scope, op: MlirOp) -> None:
    region = scalar_region(scope, op, 0)
    operands = scope.operands(op)
    dim = reading.integer(op, "dimension", -1)
    if operands and dim < 0:
        dim += operands[0].shape.rank
    attrs = {"dimensions": dim, "to_apply": region}
    if reading.flag(op, "is_stable"):
        attrs["is_stable"] = True
    scope.results(op, scope.add("sort", results_shape(op), operands, **attrs))


def window_of(op: MlirOp, sizes: tuple[int, ...], rank: int) -> tuple[WindowDim, ...]:
    ones = (1,) * rank
    strides = reading.ints(op, "window_strides", ones)
    base = reading.ints(op, "base_dilations", ones)
    dilations = reading.ints(op, "window_dilations", ones)
    pairs = reading.pairs(op, "padding", [(0, 0)] * rank)
    for name, values in (
        ("window_dimensions", sizes),
        ("window_strides", strides),
        ("base_dilations", base),
        ("window_dilations", dilations),
        ("padding", pairs),
    ):
        if len(values) != rank:
            reading.fail(op, f"{name} has {len(values)} entries for {rank} dimensions")
    return tuple(
        WindowDim(sizes[d], strides[d], *pairs[d], base[d], dilations[d]) for d in range(rank)
    )


@converts("stablehlo.reduce_window")
def _reduce_window(scope: Scope, op: MlirOp) -> None:
    region = scalar_region(scope, op, 0)
    operands = scope.operands(op)
    if not operands:
        raise InvalidArgumentError("stablehlo.reduce_window has no operands")
    window = window_of(op, reading.ints(op, "window_dimensions"), operands[0].shape.rank)
    attrs = {"window": window} if window else {}
    made = scope.add("reduce-window", results_shape(op), operands, **attrs, to_apply=region)
    scope.results(op, made)


@converts("stablehlo.select_and_scatter")
def _select_and_scatter(scope: Scope, op: MlirOp) -> HloInstruction:
    select, scatter = scalar_region(scope, op, 0), scalar_region(scope, op, 1)
    operands = scope.operands(op, 3)
    rank = operands[0].shape.rank
    window = window_of(op, reading.ints(op, "window_dimensions", (1,) * rank), rank)
    attrs = {"window": window} if window else {}
    return scope.add(
        "select-and-scatter", result_shape(op), operands, **attrs, select=select, scatter=scatter
    )
