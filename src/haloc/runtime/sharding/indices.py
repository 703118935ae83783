"""Which part of an array each device holds, by the array's HloSharding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from haloc.ir.sharding import HloSharding, ShardingKind

Index = tuple[slice, ...]
"""A device's part of an array: one slice a dimension, `slice(None)` where it is not split."""


def tiles_of(sharding: HloSharding, rank: int) -> tuple[int, ...]:
    """How many parts each of `rank` dimensions is split into.

    ValueError for a sharding that does not say where the elements are.
    """
    if sharding.is_replicated or sharding.kind is ShardingKind.MAXIMAL:
        return (1,) * rank
    if not sharding.is_tiled or set(sharding.subgroups) - {"replicated", "unreduced"}:
        raise ValueError(f"sharding {sharding} does not tell which device holds which elements")
    tiles = sharding.tiles
    if len(tiles) != rank:
        raise ValueError(f"sharding {sharding} is of {len(tiles)} dimensions, the array of {rank}")
    return tiles


def shard_dims(sharding: HloSharding, dims: Sequence[int], name: object = None) -> tuple[int, ...]:
    """The dimensions of one device's part. ValueError, which calls the sharding `name`, where a
    dimension does not divide evenly."""
    tiles = tiles_of(sharding, len(dims))
    for axis, (size, count) in enumerate(zip(dims, tiles, strict=True)):
        if size % count:
            raise ValueError(
                f"Sharding {name or sharding} implies that array axis {axis} is partitioned "
                f"{count} times, but the dimension size is {size} (full shape: {tuple(dims)}, "
                f"per-dimension tiling factors: {list(tiles)} should evenly divide the shape)"
            )
    return tuple(size // count for size, count in zip(dims, tiles, strict=True))


def shard_indices(
    sharding: HloSharding, dims: Sequence[int], device_count: int, name: object = None
) -> list[Index]:
    """Each device's part of an array of these dimensions, in the order of the devices."""
    part = shard_dims(sharding, dims, name)
    tiles = tiles_of(sharding, len(dims))
    if all(count == 1 for count in tiles):
        return [(slice(None),) * len(dims)] * device_count
    assignment = sharding.tile_assignment
    if assignment.size != device_count:
        raise ValueError(
            f"sharding {name or sharding} is of {assignment.size} devices, given {device_count}"
        )
    found: list[Index] = [()] * device_count
    for place in np.ndindex(assignment.shape):
        found[int(assignment[place])] = tuple(
            slice(None) if count == 1 else slice(at * size, (at + 1) * size)
            for at, size, count in zip(place, part, tiles)
        )
    return found
