"""Shardings made from other shardings. The names are jaxlib's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.runtime.op_sharding import OpShardingType, XlaHloSharding


def PartiallyReplicateTiledShardingOnDims(
    sharding: XlaHloSharding, dims: Sequence[int]
) -> XlaHloSharding:
    """The sharding that no longer splits the dimensions `dims`: devices that held different parts
    of them hold copies. One that is not tiled stays as it is.

    InvalidArgumentError for a dimension that the sharding does not have.
    """
    if not sharding.is_tiled():
        return sharding
    ir, tiles = sharding.ir, sharding.ir.tiles
    for dim in dims:
        if not 0 <= dim < len(tiles):
            raise InvalidArgumentError(f"sharding {sharding} has no dimension {dim}")
    copied = [d for d in range(len(tiles)) if d in dims]
    if all(tiles[d] == 1 for d in copied):
        return sharding
    kinds = [OpShardingType[kind.upper()] for kind in ir.subgroups]
    kept = [d for d in range(len(tiles)) if d not in copied]
    subgroups = range(len(tiles), len(ir.tile_dims))
    others = [d for d in subgroups if kinds[d - len(tiles)] is not OpShardingType.REPLICATED]
    copies = [d for d in subgroups if d not in others]
    order = [*kept, *others, *copied, *copies]
    shape = [1 if d in copied else size for d, size in enumerate(tiles)]
    shape += [ir.tile_dims[d] for d in others]
    shape.append(int(np.prod([ir.tile_dims[d] for d in (*copied, *copies)])))
    types = [kinds[d - len(tiles)] for d in others] + [OpShardingType.REPLICATED]
    try:
        sizes, axes = sharding.mesh_axes()
    except InvalidArgumentError:  # device ids in no order
        ids = ir.tile_assignment.transpose(order).reshape(shape)
        return XlaHloSharding.subgroup_with_device_ordering(ids, types)
    return XlaHloSharding.iota_tile(shape, sizes, [a for d in order for a in axes[d]], types)
