"""Ops in which replicas and partitions work together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.frontend.builder import XlaBuilder, XlaOp
from haloc.frontend.messages import ReplicaGroup
from haloc.frontend.ops.arguments import add, add_to, channel, groups_of, ints, shape_of, value
from haloc.frontend.ops.shaping import Reshape, Transpose
from haloc.frontend.ops.structured import scalar_computation
from haloc.ir.shape import Shape
from haloc.runtime.xla_computation import XlaComputation
from haloc.runtime.xla_shape import XlaLayout, XlaShape

Groups = Iterable[ReplicaGroup | Iterable[int]]


def _flags(use_global_device_ids: bool | None) -> dict[str, bool]:
    return {"use_global_device_ids": True} if use_global_device_ids else {}


def _with_layout(shape: Shape, layout: XlaLayout | None) -> tuple[Shape, dict[str, Any]]:
    if layout is None:
        return shape, {}
    return Shape(shape.dtype, shape.dims, layout.ir, shape.dynamic), {"constrain_layout": True}


def _resized(shape: Shape, dimension: int, size: int) -> Shape:
    if not 0 <= dimension < shape.rank:
        raise InvalidArgumentError(f"{shape.to_string(False)} has no dimension {dimension}")
    dims = list(shape.dims)
    dims[dimension] = size
    return shape.with_dims(tuple(dims))


def ReplicaId(builder: XlaBuilder) -> XlaOp:
    """u32[]: which replica runs this."""
    return add_to(builder, "replica-id")


def AllReduce(
    operand: XlaOp,
    computation: XlaComputation,
    replica_groups: Groups = (),
    channel_id: Any = None,
    shape_with_layout: XlaShape | None = None,
    use_global_device_ids: bool | None = None,
) -> XlaOp:
    """Fold each group's arrays, element by element; everyone gets the result."""
    value(operand)
    attrs = {**channel(channel_id), "replica_groups": groups_of(replica_groups)}
    if shape_with_layout is not None:
        if not shape_of(shape_with_layout).compatible(operand.shape):
            raise InvalidArgumentError(
                f"AllReduce: shape_with_layout {shape_with_layout} does not fit {operand!r}"
            )
        attrs["constrain_layout"] = True
    region = operand.builder.embed(computation)
    return add("all-reduce", [operand], **attrs, **_flags(use_global_device_ids), to_apply=region)


def CrossReplicaSum(operand: XlaOp, replica_groups: Groups = ()) -> XlaOp:
    """The sum over each group."""
    pred = value(operand).shape.dtype.is_pred
    return AllReduce(
        operand, scalar_computation("or" if pred else "add", operand.shape, "sum"), replica_groups
    )


def AllGather(
    operand: XlaOp,
    all_gather_dimension: int,
    shard_count: int,
    replica_groups: Groups = (),
    channel_id: Any = None,
    shape_with_layout: XlaLayout | None = None,
    use_global_device_ids: bool | None = None,
) -> XlaOp:
    """The arrays of each group behind one another along a dimension."""
    source, dim = value(operand).shape, int(all_gather_dimension)
    whole = _resized(source, dim, source.dims[dim] * shard_count if dim < source.rank else 0)
    shape, extra = _with_layout(whole, shape_with_layout)
    attrs = {**channel(channel_id), "replica_groups": groups_of(replica_groups), **extra}
    flags = _flags(use_global_device_ids)
    return add("all-gather", [operand], shape, **attrs, dimensions=(dim,), **flags)


def ReduceScatter(
    operand: XlaOp,
    computation: XlaComputation,
    scatter_dimension: int,
    shard_count: int,
    replica_groups: Groups = (),
    channel_id: Any = None,
    layout: XlaLayout | None = None,
    use_global_device_ids: bool | None = None,
) -> XlaOp:
    """Fold each group's arrays; its members get one piece each along a dimension."""
    source, dim = value(operand).shape, int(scatter_dimension)
    piece = source.dims[dim] // shard_count if dim < source.rank else 0
    shape, extra = _with_layout(_resized(source, dim, piece), layout)
    attrs = {**channel(channel_id), "replica_groups": groups_of(replica_groups), **extra}
    attrs |= _flags(use_global_device_ids)
    region = operand.builder.embed(computation)
    return add("reduce-scatter", [operand], shape, **attrs, dimensions=(dim,), to_apply=region)


def AllToAll(
    operand: XlaOp,
    split_dimension: int,
    concat_dimension: int,
    split_count: int,
    replica_groups: Groups = (),
    layout: XlaLayout | None = None,
    channel_id: Any = None,
) -> XlaOp:
    """Each member splits its array along one dimension, sends a part to each, and joins what it
    gets along another."""
    dims, split, concat = value(operand).shape.dims, int(split_dimension), int(concat_dimension)
    if split_count < 1 or split >= len(dims) or dims[split] % split_count:
        raise InvalidArgumentError(
            f"AllToAll: dimension {split} of {operand.shape.to_string(False)} does not split "
            f"into {split_count} parts"
        )
    if layout is not None:
        raise UnimplementedError("AllToAll(layout=...): haloc chooses the layout")
    attrs = {**channel(channel_id), "replica_groups": groups_of(replica_groups)}
    swapped = add("all-to-all", [operand], **attrs, dimensions=(split,))
    if split == concat:
        return swapped
    part = dims[split] // split_count
    apart = Reshape(swapped, (*dims[:split], split_count, part, *dims[split + 1 :]))
    order = [d for d in range(len(dims) + 1) if d != split]
    order.insert(concat, split)
    joined = [part if d == split else size for d, size in enumerate(dims)]
    joined[concat] *= split_count
    return Reshape(Transpose(apart, order), joined)


def CollectivePermute(
    operand: XlaOp,
    source_target_pairs: Sequence[tuple[int, int]],
    channel_id: Any = None,
    inplace: bool = False,
) -> XlaOp:
    """Arrays go from sources to targets; who is no target gets zeros."""
    return MultiCollectivePermute([operand], source_target_pairs, channel_id, inplace)


def MultiCollectivePermute(
    operands: Sequence[XlaOp],
    source_target_pairs: Sequence[tuple[int, int]],
    channel_id: Any = None,
    inplace: bool = False,
) -> XlaOp:
    """The same for several arrays; the result is a tuple when there is more than one."""
    if inplace:
        raise UnimplementedError("CollectivePermute(inplace=True)")
    pairs = tuple(ints(pair) for pair in source_target_pairs)
    return add(
        "collective-permute", list(operands), **channel(channel_id), source_target_pairs=pairs
    )
