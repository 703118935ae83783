"""Ops that move elements: slices, padding, gathers, scatters; copies, which move nothing here."""

from __future__ import annotations

from haloc.errors import UnimplementedError
from haloc.formats.stablehlo.convert.rows import I64, INTS
from haloc.formats.stablehlo.convert.shaping import GATHER_DIMS, SCATTER_DIMS
from haloc.formats.stablehlo.export.context import Scope, Tree, exports, region_of
from haloc.formats.stablehlo.export.types import tensor_of
from haloc.formats.stablehlo.mlir import Attribute, RankedTensor, Struct
from haloc.ir.module import HloInstruction
from haloc.ir.shape import default_layout
from haloc.ops.table import attr


@exports("slice")
def _slice(scope: Scope, instruction: HloInstruction) -> Tree:
    ranges = attr(instruction, "slice")
    names = ("start_indices", "limit_indices", "strides")
    attributes: dict[str, Attribute] = {
        name: INTS.write([r[i] for r in ranges]) for i, name in enumerate(names)
    }
    return scope.emit("stablehlo.slice", instruction, attributes)


@exports("pad")
def _pad(scope: Scope, instruction: HloInstruction) -> Tree:
    padding = attr(instruction, "padding")
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    attributes: dict[str, Attribute] = {
        name: INTS.write([p[i] for p in padding]) for i, name in enumerate(names)
    }
    return scope.emit("stablehlo.pad", instruction, attributes)


def _numbers(kind: str, instruction: HloInstruction, names: tuple[str, ...]) -> Struct:
    fields: dict[str, Attribute] = {
        name: attr(instruction, name) for name in names if attr(instruction, name)
    }
    fields["index_vector_dim"] = attr(instruction, "index_vector_dim")
    return Struct(f"stablehlo.{kind}", fields)


@exports("gather")
def _gather(scope: Scope, instruction: HloInstruction) -> Tree:
    attributes: dict[str, Attribute] = {
        "dimension_numbers": _numbers("gather", instruction, GATHER_DIMS),
        "slice_sizes": INTS.write(attr(instruction, "slice_sizes")),
    }
    if attr(instruction, "indices_are_sorted"):
        attributes["indices_are_sorted"] = True
    return scope.emit("stablehlo.gather", instruction, attributes)


@exports("scatter")
def _scatter(scope: Scope, instruction: HloInstruction) -> Tree:
    attributes: dict[str, Attribute] = {
        "scatter_dimension_numbers": _numbers("scatter", instruction, SCATTER_DIMS)
    }
    for name in ("indices_are_sorted", "unique_indices"):
        if attr(instruction, name):
            attributes[name] = True
    regions = [region_of(scope, attr(instruction, "to_apply"))]
    return scope.emit("stablehlo.scatter", instruction, attributes, regions)


@exports("copy")
def _copy(scope: Scope, instruction: HloInstruction) -> Tree:
    """StableHLO has values, not places: a copy is its operand."""
    return scope.tree(instruction.operands[0])


@exports("bitcast")
def _bitcast(scope: Scope, instruction: HloInstruction) -> Tree:
    """In row-major layouts the same elements in the same order, their bits read anew."""
    (operand,) = instruction.operands
    given, wanted = operand.shape, instruction.shape
    if any(s.layout != default_layout(s.rank) for s in (given, wanted)) or (
        given.dtype.bits != wanted.dtype.bits
    ):
        raise UnimplementedError(f"bitcast from {given} to {wanted}: StableHLO has no layouts")
    values = scope.operands(instruction)
    if given.dtype is not wanted.dtype:
        type_ = tensor_of(given.with_dtype(wanted.dtype))
        values = scope.op("stablehlo.bitcast_convert", values, [type_])
    return scope.emit("stablehlo.reshape", instruction, operands=values)


@exports("dynamic-reshape")
def _dynamic_reshape(scope: Scope, instruction: HloInstruction) -> Tree:
    """The sizes become one vector."""
    operand, *sizes = scope.operands(instruction)
    if not sizes:
        return scope.emit("stablehlo.reshape", instruction)
    element = tensor_of(instruction.operands[1].shape).element
    one, whole = RankedTensor((1,), element), RankedTensor((len(sizes),), element)
    parts = [scope.op("stablehlo.reshape", [s], [one])[0] for s in sizes]
    joined = scope.op("stablehlo.concatenate", parts, [whole], {"dimension": I64.write(0)})
    return scope.emit("stablehlo.dynamic_reshape", instruction, operands=[operand, *joined])
