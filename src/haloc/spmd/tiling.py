"""`Tiling`: how one array is cut over partitions, whatever way its sharding was written."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.ir.shape import Shape
from haloc.ir.sharding import AxisRef, HloSharding, ShardingKind


@dataclass(frozen=True)
class Tiling:
    """tiles: number of tiles of each dimension. coordinates: [partition][dimension], which tile a
    partition holds; several may hold the same one."""

    tiles: tuple[int, ...]
    coordinates: tuple[tuple[int, ...], ...]

    def tile_size(self, shape: Shape, dimension: int) -> int:
        """Elements along a dimension of a tile. The last tiles may be partly or wholly padding."""
        return -(-shape.dims[dimension] // self.tiles[dimension])

    def shard_shape(self, shape: Shape) -> Shape:
        return shape.with_dims(tuple(self.tile_size(shape, d) for d in range(len(shape.dims))))

    def split_dimensions(self) -> list[int]:
        return [d for d, count in enumerate(self.tiles) if count > 1]

    def neighbours(self, dimension: int) -> list[list[int]]:
        """Partitions whose tiles differ along one dimension only, in the order of the tiles: each
        in one list."""
        rows: dict[tuple[int, ...], dict[int, list[int]]] = {}
        for partition, own in enumerate(self.coordinates):
            rest = (*own[:dimension], *own[dimension + 1 :])
            rows.setdefault(rest, {}).setdefault(own[dimension], []).append(partition)
        groups = []
        for row in rows.values():
            # Where several partitions hold the same tiles, the first of each work together, ...
            for copies in zip(*(row[k] for k in sorted(row)), strict=True):
                groups.append(list(copies))
        return groups


def tiling_of(sharding: HloSharding, rank: int, partitions: int) -> Tiling | None:
    """The tiling that a sharding means for an array of this rank; None if every partition holds
    the whole. UnimplementedError for a sharding over part of the devices or partly manual."""
    if sharding.kind in (ShardingKind.REPLICATED, ShardingKind.UNKNOWN):
        return None
    if sharding.kind is ShardingKind.MESH:
        tiles, ids = _mesh_tiles(sharding)
    elif sharding.kind is ShardingKind.TILED:
        if set(sharding.subgroups) - {"replicated"}:
            raise UnimplementedError(f"sharding={sharding}: subgroups other than replicated")
        tiles, ids = sharding.tiles, sharding.tile_assignment
    else:
        raise UnimplementedError(f"sharding={sharding} of an array that is to be partitioned")
    if len(tiles) != rank:
        raise InvalidArgumentError(f"sharding={sharding} has {len(tiles)} dimensions, not {rank}")
    if ids.size != partitions:
        raise UnimplementedError(
            f"sharding={sharding} is over {ids.size} devices of {partitions} partitions"
        )
    if prod(tiles) == 1:
        return None
    places = ids.reshape(prod(tiles), -1)
    coordinates: list[tuple[int, ...]] = [()] * partitions
    for place, tile in enumerate(np.ndindex(*tiles)):
        for partition in places[place]:
            coordinates[int(partition)] = tuple(map(int, tile))
    return Tiling(tuple(tiles), tuple(coordinates))


def _mesh_tiles(sharding: HloSharding) -> tuple[tuple[int, ...], np.ndarray]:
    """Tiles per dimension, and the device ids with the split axes in front, in that order."""
    mesh = sharding.mesh
    if mesh is None or sharding.manual_axes or sharding.unreduced_axes:
        raise UnimplementedError(f"sharding={sharding}: manual or unreduced axes")
    sizes = dict(mesh.axes)
    names = [name for name, _ in mesh.axes]
    tiles, order = [], []
    for dimension in sharding.dim_shardings:
        for axis in dimension.axes:
            order.append(_whole_axis(axis, sizes, sharding))
        tiles.append(prod(sizes[axis.name] for axis in dimension.axes))
    rest = [n for n in names if n not in order]
    ids = mesh.ids().transpose([names.index(n) for n in [*order, *rest]])
    return tuple(tiles), ids


def _whole_axis(axis: AxisRef, sizes: dict[str, int], sharding: HloSharding) -> str:
    if axis.size and axis.size != sizes[axis.name]:
        raise UnimplementedError(f"sharding={sharding}: part {axis} of a mesh axis")
    return axis.name
