"""`PmapSharding`: the sharding of `pmap`'s arguments and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from haloc.runtime.device import Device
from haloc.runtime.op_sharding import XlaHloSharding
from haloc.runtime.sharding.base import Sharding
from haloc.runtime.sharding.sharding_spec import (
    Chunked,
    NoSharding,
    Replicated,
    ShardedAxis,
    ShardingSpec,
)


class PmapSharding(Sharding):
    """devices: an array of as many devices as the spec's mesh has places; ValueError otherwise."""

    def __init__(self, devices: np.ndarray | Sequence[Device], sharding_spec: ShardingSpec):
        self.devices = np.array(devices, object)
        self.sharding_spec = sharding_spec
        places = int(np.prod(sharding_spec.mesh_shape))
        if self.devices.size != places:
            raise ValueError(f"{sharding_spec} is of {places} devices, given {self.devices.size}")
        self._device_assignment = tuple(self.devices.flat)
        self._set_memory_kind(None)

    @classmethod
    def default(
        cls, shape: Sequence[int], sharded_dim: int | None = 0, devices: Sequence[Device] = ()
    ) -> PmapSharding:
        """Dimension `sharded_dim` split into parts of size 1, one a device; None: a copy on each.

        ValueError where there are not as many devices as parts.
        """
        splits: list[NoSharding | Chunked] = [NoSharding() for _ in shape]
        if sharded_dim is None:
            return cls(devices, ShardingSpec(splits, [Replicated(len(devices))]))
        splits[sharded_dim] = Chunked([shape[sharded_dim]])
        return cls(devices, ShardingSpec(splits, [ShardedAxis(0)]))

    @property
    def is_fully_replicated(self) -> bool:
        return all(isinstance(s, NoSharding) for s in self.sharding_spec.sharding)

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Unstacked dimensions are left out."""
        return self.sharding_spec.shard_shape(global_shape)

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Any]:
        return dict(zip(self._device_assignment, self.sharding_spec.indices(global_shape)))

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        return self == other

    def with_memory_kind(self, kind: str) -> PmapSharding:
        raise NotImplementedError("pmap does not support memories.")

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> XlaHloSharding:
        raise NotImplementedError("pmap doesn't use OpSharding.")

    def _key(self) -> tuple[Any, ...]:
        return (self.devices.shape, self._device_assignment, self.sharding_spec)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, PmapSharding) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"PmapSharding(sharding_spec={self.sharding_spec}, devices={self.devices})"
