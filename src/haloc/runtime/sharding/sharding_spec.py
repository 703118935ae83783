"""`ShardingSpec`: how `pmap` splits dimensions, and which mesh dimension each split is on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np


@dataclass(frozen=True)
class NoSharding:
    """A dimension that is not split."""

    def __repr__(self) -> str:
        return "NoSharding()"


@dataclass(frozen=True, init=False)
class Chunked:
    """A dimension split into equal parts, by several mesh dimensions one after the other."""

    chunks: list[int]

    def __init__(self, chunks: Sequence[int]):
        object.__setattr__(self, "chunks", [int(c) for c in chunks])

    def __hash__(self) -> int:
        return hash(tuple(self.chunks))

    def __repr__(self) -> str:
        return f"Chunked({','.join(map(str, self.chunks))})"


@dataclass(frozen=True)
class Unstacked:
    """A dimension that parts do not have: each holds one index of it."""

    size: int

    def __repr__(self) -> str:
        return f"Unstacked({self.size})"


@dataclass(frozen=True)
class ShardedAxis:
    """A mesh dimension along which the axis-th split dimension goes on."""

    axis: int


@dataclass(frozen=True)
class Replicated:
    """A mesh dimension along which parts are equal."""

    replicas: int


DimSplit: TypeAlias = NoSharding | Chunked | Unstacked
MeshDim: TypeAlias = ShardedAxis | Replicated


@dataclass(frozen=True, init=False)
class ShardingSpec:
    """sharding: one entry a dimension of the array. mesh_mapping: one a dimension of the grid of
    devices; ShardedAxis counts the chunks and Unstacked entries of `sharding`, in order."""

    sharding: tuple[DimSplit, ...]
    mesh_mapping: tuple[MeshDim, ...]

    def __init__(self, sharding: Sequence[DimSplit], mesh_mapping: Sequence[MeshDim]):
        object.__setattr__(self, "sharding", tuple(sharding))
        object.__setattr__(self, "mesh_mapping", tuple(mesh_mapping))
        axes = sorted(m.axis for m in self.mesh_mapping if isinstance(m, ShardedAxis))
        if axes != list(range(len(self._split_sizes()))):
            raise ValueError(f"{self}: each split dimension needs one ShardedAxis")

    def _split_sizes(self) -> list[int]:
        """Sizes of the splits that ShardedAxis counts."""
        sizes: list[int] = []
        for split in self.sharding:
            if isinstance(split, Chunked):
                sizes += split.chunks
            elif isinstance(split, Unstacked):
                sizes.append(split.size)
        return sizes

    @property
    def mesh_shape(self) -> tuple[int, ...]:
        sizes = self._split_sizes()
        return tuple(
            sizes[m.axis] if isinstance(m, ShardedAxis) else m.replicas for m in self.mesh_mapping
        )

    def shard_shape(self, dims: Sequence[int]) -> tuple[int, ...]:
        """ValueError for dimensions that the splits do not fit."""
        if len(dims) != len(self.sharding):
            raise ValueError(f"{self} is of {len(self.sharding)} dimensions, the array {len(dims)}")
        part = []
        for size, split in zip(dims, self.sharding, strict=True):
            count = prod(split.chunks) if isinstance(split, Chunked) else 1
            wrong = isinstance(split, Unstacked) and split.size != size
            if wrong or size % count:
                raise ValueError(f"dimension of size {size} cannot be split as {split}")
            if not isinstance(split, Unstacked):
                part.append(size // count)
        return tuple(part)

    def indices(self, dims: Sequence[int]) -> list[tuple[slice | int, ...]]:
        """Each device's part of an array of these dimensions, devices in the grid's order."""
        self.shard_shape(dims)
        return [self._index(place, dims) for place in np.ndindex(self.mesh_shape)]

    def _index(self, place: Sequence[int], dims: Sequence[int]) -> tuple[slice | int, ...]:
        at = {m.axis: p for m, p in zip(self.mesh_mapping, place) if isinstance(m, ShardedAxis)}
        axis = 0
        index: list[slice | int] = []
        for size, split in zip(dims, self.sharding, strict=True):
            if isinstance(split, Unstacked):
                index.append(at[axis])
                axis += 1
            elif isinstance(split, Chunked):
                chunk = 0
                for count in split.chunks:
                    chunk = chunk * count + at[axis]
                    axis += 1
                part = size // prod(split.chunks)
                index.append(slice(chunk * part, (chunk + 1) * part))
            else:
                index.append(slice(None))
        return tuple(index)

    def __repr__(self) -> str:
        return f"ShardingSpec({self.sharding}, {self.mesh_mapping})"
