"""Ops that make arrays, and move elements about."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, overload

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.frontend.builder import XlaBuilder, XlaOp
from haloc.frontend.messages import (
    GatherDimensionNumbers,
    PaddingConfig,
    ScatterDimensionNumbers,
)
from haloc.frontend.ops.arguments import add, add_to, element_type, ints, shape_of, value
from haloc.frontend.ops.elementwise import stretch
from haloc.ir.shape import Shape
from haloc.runtime.xla_computation import XlaComputation
from haloc.runtime.xla_shape import PrimitiveType, XlaShape


def Parameter(
    builder: XlaBuilder,
    parameter_number: int,
    shape: XlaShape,
    name: str = "",
    replicated_at_leaf_buffers: Sequence[bool] = (),
) -> XlaOp:
    """A parameter of the computation. InvalidArgumentError when the number is taken."""
    if any(p.attrs["parameter_number"] == parameter_number for p in builder.parameters):
        raise InvalidArgumentError(f"parameter {parameter_number} already registered")
    attrs: dict[str, Any] = {"parameter_number": int(parameter_number)}
    if len(replicated_at_leaf_buffers):
        attrs["parameter_replication"] = tuple(map(bool, replicated_at_leaf_buffers))
    return add_to(builder, "parameter", (), shape_of(shape), name, **attrs)


def Constant(builder: XlaBuilder, literal: Any) -> XlaOp:
    """literal: a NumPy array or number; of Python's numbers s64, f64, c128, pred."""
    return XlaOp(builder, builder.constant(np.asarray(literal)))


ConstantLiteral = Constant


@overload
def Iota(builder: XlaBuilder, shape: XlaShape, iota_dimension: int, /) -> XlaOp: ...
@overload
def Iota(builder: XlaBuilder, type: PrimitiveType, size: int, /) -> XlaOp: ...
def Iota(builder: XlaBuilder, shape: Any = None, iota_dimension: Any = None, **named: int) -> XlaOp:
    """0, 1, 2, ... along a dimension of a shape; or of a type, so many."""
    shape, number = named.get("type", shape), named.get("size", iota_dimension)
    if isinstance(shape, XlaShape):
        return add_to(builder, "iota", (), shape.ir, iota_dimension=int(number))
    vector = Shape(element_type(shape), (int(number),))
    return add_to(builder, "iota", (), vector, iota_dimension=0)


def Broadcast(operand: XlaOp, sizes: Sequence[int]) -> XlaOp:
    """New dimensions of these sizes in front."""
    dims = value(operand).shape.dims
    placed = range(len(sizes), len(sizes) + len(dims))
    shape = operand.shape.with_dims((*ints(sizes), *dims))
    return add("broadcast", [operand], shape, dimensions=tuple(placed))


def BroadcastInDim(
    operand: XlaOp, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> XlaOp:
    """The operand's dimension i is the result's broadcast_dimensions[i], stretched where it is 1.

    shape: the sizes of the result.
    """
    dims, sizes, places = value(operand).shape.dims, ints(shape), ints(broadcast_dimensions)
    fits = len(places) == len(dims) and all(
        0 <= d < len(sizes) and size in (1, sizes[d]) for size, d in zip(dims, places)
    )
    if not fits or len(set(places)) != len(places):
        raise InvalidArgumentError(
            f"BroadcastInDim: dimensions {places} do not place {operand.shape.to_string(False)} "
            f"in {sizes}"
        )
    if dims == sizes and places == tuple(range(len(sizes))):
        return operand
    return stretch(operand, sizes, places)


def Reshape(operand: XlaOp, new_sizes: Sequence[int]) -> XlaOp:
    value(operand)
    return add("reshape", [operand], operand.shape.with_dims(ints(new_sizes)))


def Collapse(operand: XlaOp, dimensions: Sequence[int]) -> XlaOp:
    """Consecutive dimensions become one."""
    dims, merged = value(operand).shape.dims, ints(dimensions)
    if len(merged) <= 1:
        return operand
    first, last = merged[0], merged[-1]
    if merged != tuple(range(first, last + 1)) or not 0 <= first <= last < len(dims):
        raise InvalidArgumentError(
            f"Collapse: {merged} are no consecutive dimensions of {operand.shape.to_string(False)}"
        )
    return Reshape(operand, (*dims[:first], prod(dims[first : last + 1]), *dims[last + 1 :]))


def DynamicReshape(
    operand: XlaOp,
    dim_sizes: Sequence[XlaOp],
    new_size_bounds: Sequence[int],
    dims_are_dynamic: Sequence[bool],
) -> XlaOp:
    """To sizes known when the program runs, within bounds."""
    dynamic = tuple(map(bool, dims_are_dynamic))
    shape = Shape(value(operand).shape.dtype, ints(new_size_bounds), None, dynamic)
    return add("dynamic-reshape", [operand, *dim_sizes], shape)


def Transpose(operand: XlaOp, permutation: Sequence[int]) -> XlaOp:
    return add("transpose", [operand], dimensions=ints(permutation))


def Rev(operand: XlaOp, dimensions: Sequence[int]) -> XlaOp:
    """Reversed along these dimensions."""
    return add("reverse", [operand], dimensions=ints(dimensions))


def Slice(
    operand: XlaOp,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int],
) -> XlaOp:
    ranges = tuple(zip(ints(start_indices), ints(limit_indices), ints(strides), strict=True))
    return add("slice", [operand], slice=ranges)


def SliceInDim(
    operand: XlaOp, start_index: int, limit_index: int, stride: int, dimno: int
) -> XlaOp:
    """A slice of one dimension; the others are whole."""
    dims = value(operand).shape.dims
    ranges = [(0, size, 1) for size in dims]
    ranges[dimno] = (start_index, limit_index, stride)
    return Slice(operand, *zip(*ranges))


def DynamicSlice(
    operand: XlaOp, start_indices: Sequence[XlaOp], slice_sizes: Sequence[int]
) -> XlaOp:
    """start_indices: a scalar a dimension."""
    attrs = {"dynamic_slice_sizes": ints(slice_sizes)}
    return add("dynamic-slice", [operand, *start_indices], **attrs)


def DynamicUpdateSlice(operand: XlaOp, update: XlaOp, start_indices: Sequence[XlaOp]) -> XlaOp:
    return add("dynamic-update-slice", [operand, update, *start_indices])


def ConcatInDim(builder: XlaBuilder, operands: Sequence[XlaOp], dimension: int) -> XlaOp:
    return add_to(builder, "concatenate", operands, dimensions=int(dimension))


def Pad(operand: XlaOp, padding_value: XlaOp, padding_config: PaddingConfig) -> XlaOp:
    padding = tuple(
        (d.edge_padding_low, d.edge_padding_high, d.interior_padding)
        for d in padding_config.dimensions
    )
    return add("pad", [operand, padding_value], padding=padding)


def Gather(
    a: XlaOp,
    start_indices: XlaOp,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    indices_are_sorted: bool = False,
) -> XlaOp:
    numbers = dimension_numbers
    names = ("offset_dims", "collapsed_slice_dims", "start_index_map")
    attrs: dict[str, Any] = {n: ints(getattr(numbers, n)) for n in names}
    batching = ("operand_batching_dims", "start_indices_batching_dims")
    attrs |= {n: ints(getattr(numbers, n)) for n in batching if len(getattr(numbers, n))}
    attrs |= {"index_vector_dim": numbers.index_vector_dim, "slice_sizes": ints(slice_sizes)}
    if indices_are_sorted:
        attrs["indices_are_sorted"] = True
    return add("gather", [a, start_indices], **attrs)


def Scatter(
    input: XlaOp | Sequence[XlaOp] | None = None,
    scatter_indices: XlaOp | None = None,
    updates: XlaOp | Sequence[XlaOp] | None = None,
    update_computation: XlaComputation | None = None,
    dimension_numbers: ScatterDimensionNumbers | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    *,
    inputs: Sequence[XlaOp] | None = None,
) -> XlaOp:
    """inputs and updates: an array each, or as many of each (the result is a tuple then)."""
    given = input if inputs is None else inputs
    first = [given] if isinstance(given, XlaOp) else list(given or ())
    last = [updates] if isinstance(updates, XlaOp) else list(updates or ())
    if scatter_indices is None or update_computation is None or dimension_numbers is None:
        raise TypeError("Scatter: wanted scatter_indices, update_computation, dimension_numbers")
    names = (
        "update_window_dims",
        "inserted_window_dims",
        "scatter_dims_to_operand_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
    )
    found = {n: ints(getattr(dimension_numbers, n)) for n in names}
    attrs: dict[str, Any] = {n: v for n, v in found.items() if v or "batching" not in n}
    attrs["index_vector_dim"] = dimension_numbers.index_vector_dim
    attrs |= {"indices_are_sorted": True} if indices_are_sorted else {}
    attrs |= {"unique_indices": True} if unique_indices else {}
    attrs["to_apply"] = value(scatter_indices) and scatter_indices.builder.embed(update_computation)
    return add("scatter", [*first, scatter_indices, *last], **attrs)


def GetDimensionSize(operand: XlaOp, dimension: int) -> XlaOp:
    """s32[]; of a dynamic dimension the size it has when the program runs."""
    return add("get-dimension-size", [operand], dimensions=int(dimension))


def SetDimensionSize(operand: XlaOp, val: XlaOp, dimension: int) -> XlaOp:
    """The dimension is dynamic from now on, and its size is `val`."""
    shape = value(operand).shape
    flags = [*(shape.dynamic or (False,) * shape.rank)]
    flags[dimension] = True
    dynamic = Shape(shape.dtype, shape.dims, None, tuple(flags))
    return add("set-dimension-size", [operand, val], dynamic, dimensions=int(dimension))


def RemoveDynamicDimension(operand: XlaOp, dimension: int) -> XlaOp:
    """The dimension has its bound as its size."""
    shape = value(operand).shape
    flags = [*(shape.dynamic or (False,) * shape.rank)]
    flags[dimension] = False
    size = XlaOp(operand.builder, operand.builder.constant(np.int32(shape.dims[dimension])))
    static = Shape(shape.dtype, shape.dims, None, tuple(flags))
    return add("set-dimension-size", [operand, size], static, dimensions=int(dimension))
