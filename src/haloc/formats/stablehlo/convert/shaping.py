"""Ops that move elements: broadcasts, slices, padding, gathers and scatters."""

from __future__ import annotations

from haloc.formats.stablehlo.convert import reading
from haloc.formats.stablehlo.convert.context import Scope, converts, result_shape
from haloc.formats.stablehlo.convert.regions import scalar_region
from haloc.formats.stablehlo.mlir import MlirOp
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape, tuple_shape


@converts("stablehlo.broadcast_in_dim")
def _broadcast_in_dim(scope: Scope, op: MlirOp) -> HloInstruction:
    (operand,) = scope.operands(op, 1)
    dims = reading.ints(op, "broadcast_dimensions")
    return broadcast_in_dim(scope, op, operand, result_shape(op), dims)


def broadcast_in_dim(
    scope: Scope, op: MlirOp, operand: HloInstruction, shape: Shape, dims: tuple[int, ...]
) -> HloInstruction:
    """HLO's broadcast does not stretch dimensions of size 1: these are dropped first."""
    if len(dims) != operand.shape.rank or any(not 0 <= d < shape.rank for d in dims):
        reading.fail(
            op,
            f"dims = {list(dims)} do not map {operand.shape.to_string(False)} into "
            f"{shape.to_string(False)}",
        )
    sizes = operand.shape.dims
    stretched = [i for i, d in enumerate(dims) if sizes[i] == 1 and shape.dims[d] != 1]
    if stretched:
        kept = [i for i in range(len(dims)) if i not in stretched]
        smaller = operand.shape.with_dims(tuple(sizes[i] for i in kept))
        operand = scope.add("reshape", smaller, (operand,))
        dims = tuple(dims[i] for i in kept)
    return scope.add("broadcast", shape, (operand,), dimensions=dims)


@converts("stablehlo.broadcast")
def _broadcast(scope: Scope, op: MlirOp) -> HloInstruction:
    (operand,) = scope.operands(op, 1)
    added = len(reading.ints(op, "broadcast_sizes"))
    dims = tuple(range(added, added + operand.shape.rank))
    return scope.add("broadcast", result_shape(op), (operand,), dimensions=dims)


@converts("stablehlo.concatenate")
def _concatenate(scope: Scope, op: MlirOp) -> HloInstruction:
    operands = scope.operands(op)
    if len(operands) == 1:
        return operands[0]
    dim = reading.integer(op, "dimension")
    return scope.add("concatenate", result_shape(op), operands, dimensions=dim)


@converts("stablehlo.slice")
def _slice(scope: Scope, op: MlirOp) -> HloInstruction:
    names = ("start_indices", "limit_indices", "strides")
    starts, limits, strides = (reading.ints(op, name) for name in names)
    if not len(starts) == len(limits) == len(strides):
        reading.fail(op, "start_indices, limit_indices and strides differ in length")
    ranges = tuple(zip(starts, limits, strides, strict=True))
    return scope.add("slice", result_shape(op), scope.operands(op, 1), slice=ranges)


@converts("stablehlo.pad")
def _pad(scope: Scope, op: MlirOp) -> HloInstruction:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    low, high, interior = (reading.ints(op, name) for name in names)
    if not len(low) == len(high) == len(interior):
        reading.fail(op, "low, high and interior differ in length")
    padding = tuple(zip(low, high, interior, strict=True))
    return scope.add("pad", result_shape(op), scope.operands(op, 2), padding=padding)


GATHER_DIMS = (
    "offset_dims",
    "collapsed_slice_dims",
    "start_index_map",
    "operand_batching_dims",
    "start_indices_batching_dims",
)
SCATTER_DIMS = (
    "update_window_dims",
    "inserted_window_dims",
    "scatter_dims_to_operand_dims",
    "input_batching_dims",
    "scatter_indices_batching_dims",
)


@converts("stablehlo.gather")
def _gather(scope: Scope, op: MlirOp) -> HloInstruction:
    return gather(scope, op, scope.operands(op, 2), reading.ints(op, "slice_sizes"))


def gather(
    scope: Scope, op: MlirOp, operands: list[HloInstruction], sizes: tuple[int, ...]
) -> HloInstruction:
    numbers = reading.struct(op, "dimension_numbers", "gather")
    made = scope.add("gather", result_shape(op), operands, slice_sizes=sizes)
    made.attrs |= {name: tuple(numbers.get(name, ())) for name in GATHER_DIMS}
    made.attrs["index_vector_dim"] = numbers.get("index_vector_dim", 0)
    if reading.flag(op, "indices_are_sorted"):
        made.attrs["indices_are_sorted"] = True
    return made


@converts("stablehlo.scatter")
def _scatter(scope: Scope, op: MlirOp) -> None:
    numbers = reading.struct(op, "scatter_dimension_numbers", "scatter")
    region = scalar_region(scope, op, 0)
    shapes = [result_shape(op, i) for i in range(len(op.results))]
    shape = shapes[0] if len(shapes) == 1 else tuple_shape(*shapes)
    made = scope.add("scatter", shape, scope.operands(op), to_apply=region)
    made.attrs |= {name: tuple(numbers.get(name, ())) for name in SCATTER_DIMS}
    made.attrs["index_vector_dim"] = numbers.get("index_vector_dim", 0)
    for name in ("indices_are_sorted", "unique_indices"):
        if reading.flag(op, name):
            made.attrs[name] = True
    scope.results(op, made)


@converts("stablehlo.torch_index_select")
def _torch_index_select(scope: Scope, op: MlirOp) -> HloInstruction:
    """result = operand with dimension `dim` read at the indices, batch dimensions in common."""
    operand, index = scope.operands(op, 2)
    dim = reading.integer(op, "dim")
    batch = reading.integer(op, "batch_dims", 0)
    rank, index_rank = operand.shape.rank, index.shape.rank
    common = tuple(range(batch))
    sizes = tuple(1 if d in (*common, dim) else operand.shape.dims[d] for d in range(rank))
    # Result: operand dims before dim, index dims after the batch, operand dims behind dim.
    index_dims = range(dim, dim + index_rank - batch)
    offset = tuple(d for d in range(batch, rank + index_rank - batch - 1) if d not in index_dims)
    return scope.add(
        "gather",
        result_shape(op),
        (operand, index),
        offset_dims=offset,
        collapsed_slice_dims=(dim,),
        start_index_map=(dim,),
        operand_batching_dims=common,
        start_indices_batching_dims=common,
        index_vector_dim=index_rank,
        slice_sizes=sizes,
    )


@converts("stablehlo.get_dimension_size")
def _get_dimension_size(scope: Scope, op: MlirOp) -> HloInstruction:
    (operand,) = scope.operands(op, 1)
    dim = reading.integer(op, "dimension")
    if not 0 <= dim < operand.shape.rank:
        reading.fail(op, f"{operand.shape.to_string(False)} has no dimension {dim}")
    if operand.shape.is_static:
        return scope.constant(operand.shape.dims[dim], result_shape(op).dtype)
    return scope.add("get-dimension-size", result_shape(op), (operand,), dimensions=dim)


@converts("tensor.cast", "builtin.unrealized_conversion_cast")
def _cast(scope: Scope, op: MlirOp) -> HloInstruction:
    """A change of the static type only."""
    return scope.operands(op, 1)[0]


@converts("shape.shape_of")
def _shape_of(scope: Scope, op: MlirOp) -> HloInstruction:
    (operand,) = scope.operands(op, 1)
    if not operand.shape.is_static:
        reading.unimplemented(op, f"of {op.operands[0].type}: dynamic shapes are not executed")
    return scope.constant(operand.shape.dims, result_shape(op).dtype)
