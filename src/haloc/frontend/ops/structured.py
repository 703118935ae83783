"""Ops with computations in them: control flow, reductions, sorting; tuples, calls and tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.frontend.builder import XlaBuilder, XlaOp
from haloc.frontend.ops.arguments import add, add_to, ints, value
from haloc.ir.shape import Shape
from haloc.ops.attrs import WindowDim
from haloc.runtime.xla_computation import XlaComputation


def Tuple(builder: XlaBuilder, elements: Sequence[XlaOp]) -> XlaOp:
    return add_to(builder, "tuple", elements)


def GetTupleElement(tuple_data: XlaOp, index: int) -> XlaOp:
    return add("get-tuple-element", [tuple_data], index=int(index))


def elements(whole: XlaOp) -> list[XlaOp]:
    """The members of a tuple."""
    return [GetTupleElement(whole, n) for n in range(len(whole.shape.elements))]


def AfterAll(builder: XlaBuilder, tokens: Sequence[XlaOp]) -> XlaOp:
    """A token of the moment when all these have come."""
    return add_to(builder, "after-all", tokens)


def CreateToken(builder: XlaBuilder) -> XlaOp:
    return add_to(builder, "after-all")


def Call(builder: XlaBuilder, computation: XlaComputation, operands: Sequence[XlaOp]) -> XlaOp:
    return add_to(builder, "call", operands, to_apply=builder.embed(computation))


def While(condition: XlaComputation, body: XlaComputation, init: XlaOp) -> XlaOp:
    """`body` of the state again and again, while `condition` of it is true."""
    value(init)
    regions = {"condition": init.builder.embed(condition), "body": init.builder.embed(body)}
    return add("while", [init], **regions)


def Conditional(*arguments: Any, **named: Any) -> XlaOp:
    """Conditional(branch_index, branch_computations, branch_operands), an s32[] index; or
    Conditional(predicate, true_operand, true_computation, false_operand, false_computation)."""
    by_index = ("branch_index", "branch_computations", "branch_operands")
    by_pred = (
        "predicate",
        "true_operand",
        "true_computation",
        "false_operand",
        "false_computation",
    )
    count = len(arguments) + len(named)
    names = by_index if count == len(by_index) else by_pred
    found = dict(zip(names, arguments)) | named
    if set(found) != set(names) or count != len(names):
        raise TypeError(f"Conditional takes ({', '.join(by_index)}) or ({', '.join(by_pred)})")
    if names is by_index:
        chooser, operands = found["branch_index"], found["branch_operands"]
        branches = tuple(map(chooser.builder.embed, found["branch_computations"]))
        return add("conditional", [chooser, *operands], branch_computations=branches)
    chooser = found["predicate"]
    value(chooser)
    regions = {n: chooser.builder.embed(found[n]) for n in (by_pred[2], by_pred[4])}
    return add("conditional", [chooser, found[by_pred[1]], found[by_pred[3]]], **regions)


def Map(
    builder: XlaBuilder,
    operands: Sequence[XlaOp],
    computation: XlaComputation,
    dimensions: Sequence[int],
    static_operands: Sequence[XlaOp] = (),
) -> XlaOp:
    """A computation of scalars on the elements of arrays; `dimensions` are all of them."""
    if len(static_operands):
        raise InvalidArgumentError("Map: static_operands are not supported, as in XLA")
    region = builder.embed(computation)
    return add_to(builder, "map", operands, dimensions=ints(dimensions), to_apply=region)


def Reduce(
    builder: XlaBuilder,
    operands: Sequence[XlaOp],
    init_values: Sequence[XlaOp],
    computation: XlaComputation,
    dimensions_to_reduce: Sequence[int],
) -> XlaOp:
    """Fold dimensions of arrays of one shape; of several arrays the result is a tuple."""
    region = builder.embed(computation)
    dims = ints(dimensions_to_reduce)
    both = [*operands, *init_values]
    return add_to(builder, "reduce", both, dimensions=dims, to_apply=region)


def _window(
    sizes: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilations: Sequence[int] = (),
    window_dilations: Sequence[int] = (),
) -> tuple[WindowDim, ...]:
    ones = [1] * len(sizes)
    fields = zip(
        sizes,
        strides or ones,
        padding or [(0, 0)] * len(sizes),
        base_dilations or ones,
        window_dilations or ones,
        strict=True,
    )
    return tuple(
        WindowDim(int(size), int(stride), int(low), int(high), int(base), int(dilation))
        for size, stride, (low, high), base, dilation in fields
    )


def ReduceWindowWithGeneralPadding(
    operand: XlaOp | Sequence[XlaOp] | None = None,
    init_value: XlaOp | Sequence[XlaOp] | None = None,
    computation: XlaComputation | None = None,
    window_dimensions: Sequence[int] = (),
    window_strides: Sequence[int] = (),
    base_dilations: Sequence[int] = (),
    window_dilations: Sequence[int] = (),
    padding: Sequence[tuple[int, int]] = (),
    *,
    operands: Sequence[XlaOp] | None = None,
    init_values: Sequence[XlaOp] | None = None,
) -> XlaOp:
    """operand and init_value: one each, or as many of each (the result is a tuple then)."""
    arrays, inits = operands or operand, init_values or init_value
    arrays = [arrays] if isinstance(arrays, XlaOp) else list(arrays or ())
    inits = [inits] if isinstance(inits, XlaOp) else list(inits or ())
    if computation is None or not arrays:
        raise TypeError("ReduceWindowWithGeneralPadding: wanted operands and a computation")
    window = _window(window_dimensions, window_strides, padding, base_dilations, window_dilations)
    region = arrays[0].builder.embed(computation)
    return add("reduce-window", [*arrays, *inits], window=window, to_apply=region)


def SelectAndScatterWithGeneralPadding(
    operand: XlaOp,
    select: XlaComputation,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    source: XlaOp,
    init_value: XlaOp,
    scatter: XlaComputation,
) -> XlaOp:
    """Each element of `source` goes to the element of its window that `select` picks."""
    value(operand)
    regions = {"select": operand.builder.embed(select), "scatter": operand.builder.embed(scatter)}
    window = _window(window_dimensions, window_strides, padding)
    return add("select-and-scatter", [operand, source, init_value], window=window, **regions)


def Sort(
    builder: XlaBuilder,
    operands: Sequence[XlaOp],
    comparator: XlaComputation | None = None,
    dimension: int = -1,
    is_stable: bool = False,
) -> XlaOp:
    """Arrays sorted together along a dimension, -1 the last. comparator: whether the first of two
    comes before the second, for each array in turn; default: the first array, ascending."""
    if not operands:
        raise InvalidArgumentError("Sort: given no operands")
    shapes = [value(o).shape for o in operands]
    if comparator is None:
        comparator = comparison("compare-less-than", "LT", shapes)
    dim = dimension if dimension >= 0 else dimension + shapes[0].rank
    attrs: dict[str, Any] = {"is_stable": True} if is_stable else {}
    region = builder.embed(comparator)
    return add_to(builder, "sort", operands, dimensions=dim, **attrs, to_apply=region)


def comparison(name: str, direction: str, shapes: Sequence[Shape]) -> XlaComputation:
    """(a0, b0, a1, b1, ...) -> a0 < b0 in the total order of floats."""
    builder = XlaBuilder(name)
    for number, shape in enumerate(s for s in shapes for _ in "ab"):
        label = f"p.{number // 2}.{'rhs' if number % 2 else 'lhs'}"
        builder.add("parameter", Shape(shape.dtype), (), label, parameter_number=number)
    total = {"type": "TOTALORDER"} if shapes[0].dtype.is_float else {}
    builder.add("compare", None, builder.parameters[:2], direction=direction, **total)
    return builder.build()


def scalar_computation(opcode: str, shape: Shape, name: str = "") -> XlaComputation:
    """(x, y) -> opcode(x, y) on scalars."""
    builder = XlaBuilder(name or opcode)
    for number, label in enumerate("xy"):
        builder.add("parameter", Shape(shape.dtype), (), label, parameter_number=number)
    builder.add(opcode, None, builder.parameters)
    return builder.build()


def TopK(input: XlaOp, k: int) -> XlaOp:
    """(the k largest of the last dimension in falling order, their places), a tuple."""
    return add("topk", [input], k=int(k), largest=True)


def ApproxTopKReductionOutputSize(
    input_size: int,
    rank: int,
    top_k: int,
    recall_target: float,
    aggregate_to_topk: bool = True,
    input_size_override: int = -1,
) -> tuple[int, int]:
    """(size of the reduced dimension, log2 of how much it shrank). As on XLA's CPU and GPU, which
    have no approximate reduction: the size is that of the input."""
    if not 0 < recall_target <= 1:
        raise InvalidArgumentError(f"recall_target should range in (0,1], given {recall_target}")
    if rank < 1 or 0 <= input_size_override < input_size:
        raise InvalidArgumentError(
            f"rank {rank} and input_size_override {input_size_override} do not fit {input_size}"
        )
    return (top_k if aggregate_to_topk else input_size), 0


def ApproxTopK(
    builder: XlaBuilder,
    operands: Sequence[XlaOp],
    init_values: Sequence[XlaOp],
    top_k: int,
    reduction_dim: int,
    comparator: XlaComputation,
    recall_target: float = 0.9,
    aggregate_to_topk: bool = True,
    reduction_input_size_override: int = -1,
) -> XlaOp:
    """The exact top k, which any recall_target allows: sorted by `comparator`, then cut.

    A tuple, of the sorted operands whole where aggregate_to_topk is False.
    """
    ApproxTopKReductionOutputSize(
        value(operands[0]).shape.dims[reduction_dim],
        operands[0].shape.rank,
        top_k,
        recall_target,
        aggregate_to_topk,
        reduction_input_size_override,
    )
    for operand, init in zip(operands, init_values, strict=True):
        if value(init).shape != Shape(operand.shape.dtype):
            raise InvalidArgumentError(f"ApproxTopK: {init!r} does not start {operand!r}")
    whole = Sort(builder, operands, comparator, reduction_dim, is_stable=True)
    parts = elements(whole) if whole.shape.is_tuple else [whole]
    if aggregate_to_topk:
        parts = [_first(part, top_k, reduction_dim) for part in parts]
    return Tuple(builder, parts)


ApproxTopKFallback = ApproxTopK


def _first(x: XlaOp, count: int, dimension: int) -> XlaOp:
    limits = np.array(x.shape.dims)
    limits[dimension] = count
    return add("slice", [x], slice=tuple((0, int(limit), 1) for limit in limits))
