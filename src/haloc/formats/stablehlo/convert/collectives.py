"""Collectives between devices."""

from __future__ import annotations

from typing import Any

from haloc.formats.stablehlo.convert import reading
from haloc.formats.stablehlo.convert.context import Scope, converts, result_shape, results_shape
from haloc.formats.stablehlo.convert.regions import addition, scalar_region
from haloc.formats.stablehlo.convert.structure import channel
from haloc.formats.stablehlo.mlir import MlirOp, SdyAxis, SdyMesh, Struct, SymbolRef
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.attrs import ReplicaGroups


def replica_groups(scope: Scope, op: MlirOp) -> ReplicaGroups:
    """Rows of a matrix, padded with -1; or axes of a mesh."""
    value = reading.get(op, "replica_groups")
    if isinstance(value, Struct) and value.name == "stablehlo.replica_group_mesh_axes":
        return _mesh_groups(scope, op, value.fields)
    rows = reading.matrix(op, "replica_groups")
    lists = tuple(tuple(int(v) for v in row if v >= 0) for row in rows)
    return ReplicaGroups(lists=tuple(row for row in lists if row))


def _mesh_groups(scope: Scope, op: MlirOp, fields: dict[str, Any]) -> ReplicaGroups:
    mesh = fields.get("mesh")
    if isinstance(mesh, SymbolRef):
        mesh = scope.program.meshes.get(mesh.name)
    if not isinstance(mesh, SdyMesh):
        reading.fail(op, "replica_groups names a mesh that the module does not have")
    ids = ",".join(map(str, mesh.device_ids)) if mesh.device_ids else None
    axes = [a for a in fields.get("axes", ()) if isinstance(a, SdyAxis)]
    refs = tuple((a.name, a.pre_size, a.size) if a.size else a.name for a in axes)
    return ReplicaGroups(mesh=(mesh.axes, ids, refs))


def _common(scope: Scope, op: MlirOp) -> dict[str, Any]:
    attrs = channel(op) | {"replica_groups": replica_groups(scope, op)}
    if reading.flag(op, "use_global_device_ids"):
        attrs["use_global_device_ids"] = True
    return attrs


@converts("stablehlo.cross-replica-sum")
def _cross_replica_sum(scope: Scope, op: MlirOp) -> HloInstruction:
    shape = result_shape(op)
    region = addition(scope, shape.dtype)
    groups = replica_groups(scope, op)
    operands = scope.operands(op, 1)
    return scope.add("all-reduce", shape, operands, replica_groups=groups, to_apply=region)


@converts("stablehlo.all_reduce")
def _all_reduce(scope: Scope, op: MlirOp) -> None:
    region = scalar_region(scope, op, 0)
    attrs = _common(scope, op)
    made = scope.add("all-reduce", results_shape(op), scope.operands(op), **attrs, to_apply=region)
    scope.results(op, made)


@converts("stablehlo.all_gather")
def _all_gather(scope: Scope, op: MlirOp) -> None:
    dims = (reading.integer(op, "all_gather_dim"),)
    attrs = _common(scope, op)
    made = scope.add("all-gather", results_shape(op), scope.operands(op), dimensions=dims, **attrs)
    scope.results(op, made)


@converts("stablehlo.reduce_scatter")
def _reduce_scatter(scope: Scope, op: MlirOp) -> None:
    region = scalar_region(scope, op, 0)
    attrs = _common(scope, op) | {"dimensions": (reading.integer(op, "scatter_dimension"),)}
    operands = scope.operands(op)
    made = scope.add("reduce-scatter", results_shape(op), operands, **attrs, to_apply=region)
    scope.results(op, made)


@converts("stablehlo.collective_permute")
def _collective_permute(scope: Scope, op: MlirOp) -> HloInstruction:
    pairs = tuple(reading.pairs(op, "source_target_pairs"))
    attrs = channel(op)
    operands = scope.operands(op, 1)
    return scope.add(
        "collective-permute", result_shape(op), operands, source_target_pairs=pairs, **attrs
    )


@converts("stablehlo.collective_broadcast")
def _collective_broadcast(scope: Scope, op: MlirOp) -> HloInstruction:
    attrs = channel(op) | {"replica_groups": replica_groups(scope, op)}
    return scope.add("collective-broadcast", result_shape(op), scope.operands(op, 1), **attrs)


@converts("stablehlo.all_to_all")
def _all_to_all(scope: Scope, op: MlirOp) -> list[HloInstruction]:
    """Each operand is exchanged by itself."""
    split = reading.integer(op, "split_dimension")
    concat = reading.integer(op, "concat_dimension")
    count = reading.integer(op, "split_count")
    attrs = channel(op) | {"replica_groups": replica_groups(scope, op)}
    operands = scope.operands(op)
    for shape in (o.shape for o in operands):
        if not 0 <= split < shape.rank or not 0 <= concat < shape.rank:
            fault = f"{shape.to_string(False)} has no dimension {max(split, concat)}"
            reading.fail(op, fault)
        if count <= 0 or shape.dims[split] % count:
            fault = f"dimension {split} of size {shape.dims[split]} is not split by {count}"
            reading.fail(op, fault)
    return [
        _rejoined(
            scope,
            scope.add("all-to-all", o.shape, (o,), dimensions=(split,), **attrs),
            split,
            concat,
            count,
            result_shape(op, number),
        )
        for number, o in enumerate(operands)
    ]


def _rejoined(
    scope: Scope, made: HloInstruction, split: int, concat: int, count: int, result: Shape
) -> HloInstruction:
    """HLO splits and joins along one dimension; another one is reached by a transpose."""
    if split == concat:
        return made
    shape = made.shape
    dims = list(shape.dims)
    dims[split : split + 1] = [count, dims[split] // count]
    apart = scope.add("reshape", shape.with_dims(tuple(dims)), (made,))
    # Move the dimension of the pieces in front of the one they are joined along.
    target = concat + 1 if concat > split else concat
    order = [d for d in range(len(dims)) if d != split]
    order.insert(order.index(target), split)
    moved_dims = tuple(dims[d] for d in order)
    moved = scope.add("transpose", shape.with_dims(moved_dims), (apart,), dimensions=tuple(order))
    return scope.add("reshape", result, (moved,))


def ragged_all_to_all(scope: Scope, op: MlirOp) -> None:
    """A custom call, with the attributes of a collective in its backend_config."""
    config = op.attributes.get("backend_config")
    if not isinstance(config, dict) or "replica_groups" not in config:
        reading.fail(op, "ragged_all_to_all needs replica_groups in its backend_config")
    inner = MlirOp(op.name, op.operands, config, [], op.results, op.location, op.position)
    attrs: dict[str, Any] = {"replica_groups": replica_groups(scope, inner)}
    if number := reading.integer(inner, "channel_id", 0):
        attrs["channel_id"] = number
    made = scope.add("ragged-all-to-all", result_shape(op), scope.operands(op, 6), **attrs)
    scope.results(op, made)


@converts("stablehlo.async_start")
def _async_start(scope: Scope, op: MlirOp) -> HloInstruction:
    """async-start of the region's computation; the future is its state."""
    called, operands = scalar_region(scope, op, 0), scope.operands(op)
    inputs = tuple_shape(*(o.shape for o in operands))
    state = tuple_shape(inputs, called.root.shape)
    return scope.add("async-start", state, operands, calls=called)


@converts("stablehlo.async_done")
def _async_done(scope: Scope, op: MlirOp) -> None:
    (state,) = scope.operands(op, 1)
    if state.opcode != "async-start":
        reading.unimplemented(op, "a future that is not the result of async_start beside it")
    scope.results(op, scope.add("async-done", state.shape.elements[1], (state,)))
