"""Collectives between devices. One that is started and done apart runs where it starts."""

from __future__ import annotations

import numpy as np

from haloc.formats.stablehlo.convert.rows import I64, dense
from haloc.formats.stablehlo.export.context import (
    Scope,
    Tree,
    exports,
    refuse_attributes,
    region_of,
    tree_of,
)
from haloc.formats.stablehlo.export.structure import DEVICE_TO_DEVICE, channel
from haloc.formats.stablehlo.export.types import type_of
from haloc.formats.stablehlo.mlir import UNIT, Attribute, DenseElements, RankedTensor
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.table import attr


def _groups(scope: Scope, instruction: HloInstruction) -> DenseElements:
    """A row a group; shorter rows are padded with -1. No groups stand for one of all."""
    header = scope.program.source.header
    replicas, partitions = header.get("replica_count", 1), header.get("num_partitions", 1)
    is_global = instruction.attrs.get("use_global_device_ids", False)
    count = replicas * partitions if is_global else replicas
    groups = attr(instruction, "replica_groups")
    rows = groups.groups(count) if groups is not None else (tuple(range(count)),)
    width = max(map(len, rows), default=0)
    array = np.full((len(rows), width), -1, np.int64)
    for row, members in zip(array, rows, strict=True):
        row[: len(members)] = members
    return DenseElements(RankedTensor(array.shape, "i64"), array)


def _common(scope: Scope, instruction: HloInstruction) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {"replica_groups": _groups(scope, instruction)}
    attributes |= _channel(instruction)
    if instruction.attrs.get("use_global_device_ids"):
        attributes["use_global_device_ids"] = UNIT
    return attributes


def _channel(instruction: HloInstruction) -> dict[str, Attribute]:
    number = attr(instruction, "channel_id")
    return {"channel_handle": channel(number, DEVICE_TO_DEVICE)} if number else {}


def _emit(
    scope: Scope,
    instruction: HloInstruction,
    name: str,
    attributes: dict[str, Attribute],
    shape: Shape,
) -> Tree:
    """An op of its instruction's operands with results of `shape`."""
    regions = []
    if "to_apply" in instruction.attrs:
        regions = [region_of(scope, attr(instruction, "to_apply"))]
    types = [type_of(s) for s in shape.leaves()]
    made = scope.op(name, scope.operands(instruction), types, attributes, regions)
    return tree_of(shape, made)


@exports("all-reduce", "all-reduce-start")
def _all_reduce(scope: Scope, instruction: HloInstruction) -> Tree:
    attributes = _common(scope, instruction)
    return _emit(scope, instruction, "stablehlo.all_reduce", attributes, instruction.shape)


@exports("all-gather", "all-gather-start")
def _all_gather(scope: Scope, instruction: HloInstruction) -> Tree:
    """A started one has (operands, results) for its shape."""
    started = instruction.opcode.endswith("-start")
    shape = instruction.shape.elements[1] if started else instruction.shape
    (dimension,) = attr(instruction, "dimensions")
    attributes = _common(scope, instruction) | {"all_gather_dim": I64.write(dimension)}
    return _emit(scope, instruction, "stablehlo.all_gather", attributes, shape)


@exports("reduce-scatter")
def _reduce_scatter(scope: Scope, instruction: HloInstruction) -> Tree:
    (dimension,) = attr(instruction, "dimensions")
    attributes = _common(scope, instruction) | {"scatter_dimension": I64.write(dimension)}
    return _emit(scope, instruction, "stablehlo.reduce_scatter", attributes, instruction.shape)


@exports("collective-permute", "collective-permute-start")
def _collective_permute(scope: Scope, instruction: HloInstruction) -> Tree:
    """A started one has (operand, result, contexts...) for its shape."""
    refuse_attributes(instruction, "slice_sizes")
    started = instruction.opcode.endswith("-start")
    shape = instruction.shape.elements[1] if started else instruction.shape
    pairs = np.array(attr(instruction, "source_target_pairs"), np.int64).reshape(-1, 2)
    attributes = _channel(instruction) | {"source_target_pairs": dense(pairs)}
    return _emit(scope, instruction, "stablehlo.collective_permute", attributes, shape)


@exports("all-reduce-done", "all-gather-done", "collective-permute-done")
def _done(scope: Scope, instruction: HloInstruction) -> Tree:
    return scope.tree(instruction.operands[0])


@exports("collective-broadcast")
def _collective_broadcast(scope: Scope, instruction: HloInstruction) -> Tree:
    """StableHLO's takes one array."""
    attributes: dict[str, Attribute] = {"replica_groups": _groups(scope, instruction)}
    attributes |= _channel(instruction)
    results: list[Tree] = []
    for operand, shape in zip(instruction.operands, instruction.shape.leaves(), strict=True):
        values, types = [scope.value(operand)], [type_of(shape)]
        results += scope.op("stablehlo.collective_broadcast", values, types, dict(attributes))
    return tuple(results) if instruction.shape.is_tuple else results[0]


@exports("all-to-all")
def _all_to_all(scope: Scope, instruction: HloInstruction) -> Tree:
    """Of one array: split and joined along a dimension. Of several, each goes to one participant:
    they are joined along a new first dimension, exchanged, and taken apart."""
    dims = attr(instruction, "dimensions")
    groups = _groups(scope, instruction)
    attributes: dict[str, Attribute] = {"replica_groups": groups, **_channel(instruction)}
    if dims is not None:
        attributes |= _exchange(dims[0], groups.array.shape[1])
        return _emit(scope, instruction, "stablehlo.all_to_all", attributes, instruction.shape)
    count = len(instruction.operands)
    attributes |= _exchange(0, count)
    part = instruction.operands[0].shape
    single, whole = part.with_dims((1, *part.dims)), part.with_dims((count, *part.dims))
    rows = [
        scope.op("stablehlo.reshape", [o], [type_of(single)])[0]
        for o in scope.operands(instruction)
    ]
    joined = scope.op("stablehlo.concatenate", rows, [type_of(whole)], {"dimension": I64.write(0)})
    (moved,) = scope.op("stablehlo.all_to_all", joined, [type_of(whole)], attributes)
    results: list[Tree] = []
    for number in range(count):
        starts = [number] + [0] * part.rank
        limits = [number + 1, *part.dims]
        cut: dict[str, Attribute] = {
            "start_indices": dense(starts),
            "limit_indices": dense(limits),
            "strides": dense([1] * len(limits)),
        }
        piece = scope.op("stablehlo.slice", [moved], [type_of(single)], cut)
        results += scope.op("stablehlo.reshape", piece, [type_of(part)])
    return tuple(results)


def _exchange(dimension: int, count: int) -> dict[str, Attribute]:
    return {
        "split_dimension": I64.write(dimension),
        "concat_dimension": I64.write(dimension),
        "split_count": I64.write(count),
    }
