"""reduce-window and select-and-scatter, and the arithmetic of windows that convolution shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

import numpy as np

from haloc.ir.dtype import F32, F64, PRED, S8, S32
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.attrs import Computation, WindowAttr, WindowDim
from haloc.ops.example import ExampleGraph
from haloc.ops.reduction import check_inputs_and_inits, region_cost
from haloc.ops.regions import check_region, one_or_tuple, results, scalars, text
from haloc.ops.table import (
    Attr,
    Cost,
    Evaluator,
    OpDef,
    Structure,
    attr,
    invalid,
    register,
)


def window_output_size(size: int, w: WindowDim) -> int:
    """Number of positions of a window along a dimension of `size` elements.

    floor((padded - dilated_window) / stride) + 1, where padded is the size after base dilation and
    padding; 0 when the window does not fit.
    """
    dilated = (size - 1) * w.base_dilation + 1 if size else 0
    padded = dilated + w.padding_low + w.padding_high
    extent = (w.size - 1) * w.window_dilation + 1
    return 0 if padded < extent or padded < 1 else (padded - extent) // w.stride + 1


def check_window(
    instruction: HloInstruction, window: Sequence[WindowDim], rank: int, label: str
) -> None:
    """The window has one entry per dimension; sizes, strides and dilations are positive."""
    if len(window) != rank:
        invalid(
            instruction,
            f"window has {len(window)} dimensions, wanted {rank}",
            f"{label}_c4" if label != "convolution" else "convolution_c2",
        )
    labels = {
        "reduce_window": ("c5", "c7", "c9", "c11"),
        "select_and_scatter": ("c5", "c7", "c5", "c5"),
        "convolution": ("c3", "c3", "c6", "c8"),
    }[label]
    for d, w in enumerate(window):
        facts = (
            ("size", w.size),
            ("stride", w.stride),
            ("lhs_dilate", w.base_dilation),
            ("rhs_dilate", w.window_dilation),
        )
        for (name, value), number in zip(facts, labels):
            if value < 1:
                invalid(
                    instruction,
                    f"window {name} of dimension {d} is {value}, wanted at least 1",
                    f"{label}_{number}",
                )


def window_offsets(window: Sequence[WindowDim]) -> Iterator[tuple[int, ...]]:
    """Positions inside the window, row-major."""
    return product(*(range(w.size) for w in window))


def taps(size: int, w: WindowDim, offset: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Where window positions 0..count-1 read along one dimension, `offset` into the window.

    Gives (indices into the unpadded, undilated dimension, whether there is an element there).
    Indices where there is none are 0.
    """
    place = w.size - 1 - offset if w.reversal else offset
    position = np.arange(count) * w.stride + place * w.window_dilation - w.padding_low
    index = position // w.base_dilation
    there = (position % w.base_dilation == 0) & (index >= 0) & (index < size)
    return np.where(there, index, 0), there


def window_taps(
    dims: Sequence[int], window: Sequence[WindowDim], offset: Sequence[int], counts: Sequence[int]
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """`taps` of all dimensions: an open mesh to index with, and the mask over all positions."""
    pairs = [taps(*arguments) for arguments in zip(dims, window, offset, counts)]
    mesh = np.ix_(*(index for index, _ in pairs))
    mask = np.ones((), np.bool_)
    for _, there in pairs:
        mask = np.logical_and.outer(mask, there)
    return mesh, mask


def _infer_reduce_window(instruction: HloInstruction) -> Shape:
    inputs, inits = check_inputs_and_inits(instruction, "reduce_window")
    window = attr(instruction, "window")
    check_window(instruction, window, inputs[0].rank, "reduce_window")
    region = check_region(
        instruction, "to_apply", inits + scalars(inputs), None, "reduce_window_c13"
    )
    given = region.root.shape
    if not given.compatible(one_or_tuple(inits)) and not given.compatible(tuple_shape(*inits)):
        invalid(
            instruction,
            f"to_apply {region.name} returns {text(given)}, wanted {text(one_or_tuple(inits))}",
            "reduce_window_c13",
        )
    dims = tuple(map(window_output_size, inputs[0].dims, window))
    shapes = [Shape(x.dtype, dims, None, x.dynamic) for x in inputs]
    return tuple_shape(*shapes) if given.is_tuple else shapes[0]


def _evaluate_reduce_window(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    """Fold the elements under the window, in row-major order, starting from the initial value.

    Padding and dilation holes have no elements: they take no part.
    """
    count = len(operands) // 2
    inputs = [np.asarray(x) for x in operands[:count]]
    window = attr(instruction, "window")
    dims = instruction.shape.leaves()[0].dims
    totals = [np.broadcast_to(np.asarray(i), dims) for i in operands[count:]]
    for offset in window_offsets(window) if inputs[0].size and prod(dims) else ():
        mesh, mask = window_taps(inputs[0].shape, window, offset, dims)
        if not mask.any():
            continue
        elements = [x[mesh] for x in inputs]
        folded = results(context.call_elementwise(attr(instruction, "to_apply"), totals + elements))
        totals = [np.where(mask, new, old) for new, old in zip(folded, totals)]
    arrays = tuple(np.array(t) for t in totals)
    return arrays if instruction.shape.is_tuple else arrays[0]


def _reduce_window_cost(instruction: HloInstruction) -> Cost:
    """(window elements - 1) executions of the region for each result element."""
    each = region_cost(attr(instruction, "to_apply"))
    elements = prod(w.size for w in attr(instruction, "window"))
    executions = instruction.shape.leaves()[0].element_count * max(0, elements - 1)
    return Cost(each.flops * executions, each.transcendentals * executions)


def random_window(
    graph: ExampleGraph, dims: Sequence[int], dilated: bool = True
) -> tuple[WindowDim, ...]:
    """A random window that fits in an array of `dims`."""

    def pick(low: int, high: int) -> int:
        return int(graph.rng.integers(low, high + 1))

    window = []
    for _ in dims:
        size = pick(1, 3)
        window.append(
            WindowDim(
                size=size,
                stride=pick(1, 3),
                padding_low=pick(0, size - 1),
                padding_high=pick(0, size - 1),
                base_dilation=pick(1, 2) if dilated else 1,
                window_dilation=pick(1, 2) if dilated else 1,
            )
        )
    return tuple(window)


def _reduce_window_example(graph: ExampleGraph) -> HloInstruction:
    dims = graph.dims(1)
    window = random_window(graph, dims)
    dtype = graph.pick([F32, F32, S32, F64, S8])
    opcode, init = graph.pick([("add", 0), ("maximum", -100), ("minimum", 100)])
    shape = Shape(dtype, tuple(map(window_output_size, dims, window)))
    operands = (graph.operand(dtype, dims), graph.constant(init, dtype))
    region = graph.binary_region(opcode, dtype)
    return graph.add("reduce-window", shape, operands, window=window, to_apply=region)


register(
    OpDef(
        opcode="reduce-window",
        operands=("inputs_and_init_values*",),
        attrs=(
            Attr("window", WindowAttr(), (), "window.dimensions"),
            Attr("to_apply", Computation(), proto="called_computation_ids[0]"),
        ),
        infer=_infer_reduce_window,
        evaluate=_evaluate_reduce_window,
        lower=Structure.REDUCTION,
        cost=_reduce_window_cost,
        example=_reduce_window_example,
        spec="reduce_window",
    )
)


def _infer_select_and_scatter(instruction: HloInstruction) -> Shape:
    operand, source, init = (o.shape for o in instruction.operands)
    window = attr(instruction, "window")
    check_window(instruction, window, operand.rank, "select_and_scatter")
    for d, w in enumerate(window):
        if w.base_dilation != 1 or w.window_dilation != 1:
            invalid(instruction, f"window dimension {d} is dilated; it must not be")
    dims = tuple(map(window_output_size, operand.dims, window))
    if source.dims != dims or source.dtype is not operand.dtype:
        invalid(
            instruction,
            f"source is {text(source)}, wanted {text(operand.with_dims(dims))}: "
            "one element for each position of the window",
            "select_and_scatter_c2",
        )
    scalar = Shape(operand.dtype)
    if not init.compatible(scalar):
        invalid(
            instruction,
            f"init_value is {text(init)}, wanted {text(scalar)}",
            "select_and_scatter_c3",
        )
    pair = [scalar, scalar]
    check_region(instruction, "select", pair, Shape(PRED), "select_and_scatter_c9")
    check_region(instruction, "scatter", pair, scalar, "select_and_scatter_c10")
    return operand.with_default_layout()


def _selected(
    instruction: HloInstruction, x: np.ndarray, dims: tuple[int, ...], context: Evaluator
) -> np.ndarray:
    """For each window position, the row-major number of the offset whose element is selected.

    The first element under the window stands until `select(it, challenger)` is false.
    -1 where the window covers no element.
    """
    chosen = np.full(dims, -1)
    best = np.zeros(dims, x.dtype)
    for number, offset in enumerate(window_offsets(attr(instruction, "window"))):
        mesh, there = window_taps(x.shape, attr(instruction, "window"), offset, dims)
        challenger = np.broadcast_to(x[mesh], dims)
        keeps = context.call_elementwise(attr(instruction, "select"), [best, challenger])
        takes = there & ((chosen < 0) | ~np.asarray(keeps))
        chosen[takes] = number
        best[takes] = challenger[takes]
    return chosen


def _evaluate_select_and_scatter(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    x, source, init = (np.asarray(o) for o in operands)
    result = np.full(x.shape, init, x.dtype)
    if not x.size or not source.size:
        return result
    chosen = _selected(instruction, x, source.shape, context)
    window = attr(instruction, "window")
    # At one offset all windows touch different elements, so each offset is one array operation.
    for number, offset in enumerate(window_offsets(window)):
        mesh, _ = window_taps(x.shape, window, offset, source.shape)
        mask = chosen == number
        places = tuple(np.broadcast_to(m, source.shape)[mask] for m in mesh)
        pair: list[Value] = [result[places], source[mask]]
        result[places] = context.call_elementwise(attr(instruction, "scatter"), pair)
    return result


def _select_and_scatter_cost(instruction: HloInstruction) -> Cost:
    """A scatter for each source element, and window - 1 selects."""
    source = instruction.operands[1].shape.element_count
    selects = region_cost(attr(instruction, "select"))
    scatters = region_cost(attr(instruction, "scatter"))
    others = prod(w.size for w in attr(instruction, "window")) - 1
    return Cost(
        source * (scatters.flops + others * selects.flops),
        source * (scatters.transcendentals + others * selects.transcendentals),
    )


def _select_and_scatter_example(graph: ExampleGraph) -> HloInstruction:
    dims = graph.dims(1)
    window = random_window(graph, dims, dilated=False)
    dtype = graph.pick([F32, F32, S32, F64])
    scalar = Shape(dtype)
    direction = graph.pick(["GE", "LE"])
    select = graph.region(
        "select",
        [scalar, scalar],
        lambda g, args: g.add("compare", Shape(PRED), args, direction=direction),
    )
    operands = (
        graph.operand(dtype, dims),
        graph.operand(dtype, tuple(map(window_output_size, dims, window))),
        graph.constant(0, dtype),
    )
    scatter = graph.binary_region("add", dtype)
    shape = Shape(dtype, dims)
    return graph.add(
        "select-and-scatter", shape, operands, window=window, select=select, scatter=scatter
    )


register(
    OpDef(
        opcode="select-and-scatter",
        operands=("operand", "source", "init_value"),
        attrs=(
            Attr("window", WindowAttr(), (), "window.dimensions"),
            Attr("select", Computation(), proto="called_computation_ids[0]"),
            Attr("scatter", Computation(), proto="called_computation_ids[1]"),
        ),
        infer=_infer_select_and_scatter,
        evaluate=_evaluate_select_and_scatter,
        lower=Structure.REDUCTION,
        cost=_select_and_scatter_cost,
        example=_select_and_scatter_example,
        spec="select_and_scatter",
    )
)
