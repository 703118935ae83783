"""From the whole array to shards and back, in instructions each partition runs."""

from __future__ import annotations

import numpy as np

from haloc.errors import UnimplementedError
from haloc.ir.dtype import S32, U32
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.expand import Beside
from haloc.ops.replica_groups import ReplicaGroups
from haloc.spmd.tiling import Tiling


def own_shard(at: Beside, whole: HloInstruction, tiling: Tiling) -> HloInstruction:
    """The tile of `whole`, which all partitions have, that is this partition's.

    A dimension that its tiles do not divide is padded with zeros.
    """
    padded = _padded(at, whole, tiling)
    partition = at.add("partition-id", Shape(U32))
    offsets = [
        _offset(
            at, partition, [own[d] * tiling.tile_size(whole.shape, d) for own in tiling.coordinates]
        )
        if tiling.tiles[d] > 1
        else at.constant(0, S32)
        for d in range(len(whole.shape.dims))
    ]
    shape = tiling.shard_shape(whole.shape)
    return at.add("dynamic-slice", shape, (padded, *offsets), dynamic_slice_sizes=shape.dims)


def _padded(at: Beside, whole: HloInstruction, tiling: Tiling) -> HloInstruction:
    dims = whole.shape.dims
    full = tuple(tiling.tile_size(whole.shape, d) * n for d, n in enumerate(tiling.tiles))
    if full == dims:
        return whole
    zero = at.constant(0, whole.shape.dtype)
    padding = tuple((0, after - before, 0) for before, after in zip(dims, full))
    return at.add("pad", whole.shape.with_dims(full), (whole, zero), padding=padding)


def _offset(at: Beside, partition: HloInstruction, offsets: list[int]) -> HloInstruction:
    """offsets[partition], an s32[]."""
    table = at.constant(np.array(offsets), S32)
    one = at.add("dynamic-slice", Shape(S32, (1,)), (table, partition), dynamic_slice_sizes=(1,))
    return at.reshape(one, ())


def whole_array(
    at: Beside,
    shard: HloInstruction,
    shape: Shape,
    tiling: Tiling,
    num_replicas: int,
    next_channel: int,
) -> HloInstruction:
    """The array of `shape` whose tiles the partitions hold, gathered one dimension at a time.

    Uses channels from next_channel on, one for each dimension that is cut.
    """
    gathered = shard
    partitions = len(tiling.coordinates)
    for number, dimension in enumerate(tiling.split_dimensions()):
        groups = tuple(
            tuple(replica * partitions + partition for partition in group)
            for replica in range(num_replicas)
            for group in tiling.neighbours(dimension)
        )
        dims = list(gathered.shape.dims)
        dims[dimension] *= tiling.tiles[dimension]
        gathered = at.add(
            "all-gather",
            gathered.shape.with_dims(tuple(dims)),
            (gathered,),
            channel_id=next_channel + number,
            replica_groups=ReplicaGroups(lists=groups),
            dimensions=(dimension,),
            use_global_device_ids=True,
        )
    if gathered.shape.dims == shape.dims:
        return gathered
    if gathered.shape.rank != shape.rank:
        raise UnimplementedError(f"a shard of {shape} with shape {shard.shape}")
    return at.slice(gathered, *((0, size, 1) for size in shape.dims))
