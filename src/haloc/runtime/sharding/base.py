"""`Sharding`: what all shardings of arrays can say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from haloc.runtime.device import Device
from haloc.runtime.device_assignment import DeviceList, check_and_canonicalize_memory_kind
from haloc.runtime.op_sharding import XlaHloSharding
from haloc.runtime.sharding.indices import shard_dims, shard_indices


class Sharding:
    """How the elements of an array are spread over devices. Immutable.

    A kind of sharding gives `_device_assignment` (the devices in order) and
    `_to_xla_hlo_sharding(ndim)`; everything else follows.
    """

    _memory_kind: str | None = None
    _device_assignment: tuple[Device, ...]

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> XlaHloSharding:
        """The sharding of an array of this many dimensions, as HLO writes it."""
        raise NotImplementedError(f"{type(self).__name__} does not say where the elements are")

    def _set_memory_kind(self, memory_kind: str | None) -> None:
        """ValueError for a kind that the devices do not have."""
        self._memory_kind = check_and_canonicalize_memory_kind(
            memory_kind, self._internal_device_list
        )

    # --- Devices ----------------------------------------------------------------------------------

    @cached_property
    def _internal_device_list(self) -> DeviceList:
        return DeviceList(tuple(self._device_assignment))

    @property
    def memory_kind(self) -> str | None:
        return self._memory_kind

    @cached_property
    def device_set(self) -> set[Device]:
        return set(self._device_assignment)

    @property
    def num_devices(self) -> int:
        return len(self.device_set)

    @cached_property
    def _addressable_device_assignment(self) -> tuple[Device, ...]:
        """The devices of this process, in order."""
        return tuple(self._internal_device_list.addressable_device_list)

    @property
    def addressable_devices(self) -> set[Device]:
        return set(self._addressable_device_assignment)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        return self._internal_device_list.is_fully_addressable

    # --- Elements ---------------------------------------------------------------------------------

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        raise NotImplementedError(f"{type(self).__name__} does not say where the elements are")

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of each device's part. ValueError where a dimension does not divide evenly."""
        dims = tuple(global_shape)
        found = self._shard_shapes.get(dims)
        if found is None:
            hlo = self._to_xla_hlo_sharding(len(dims))
            found = self._shard_shapes[dims] = shard_dims(hlo.ir, dims, self)
        return found

    # Answers given: few shardings are asked about many shapes, and many times about each.

    @cached_property
    def _shard_shapes(self) -> dict[tuple[int, ...], tuple[int, ...]]:
        return {}

    @cached_property
    def _indices_maps(self) -> dict[tuple[int, ...], dict[Device, Any]]:
        return {}

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Any]:
        """{device: its part, as an index into the whole array}, in the order of the devices."""
        dims = tuple(global_shape)
        found = self._indices_maps.get(dims)
        if found is None:
            devices = self._device_assignment
            hlo = self._to_xla_hlo_sharding(len(dims))
            indices = shard_indices(hlo.ir, dims, len(devices), self)
            found = self._indices_maps[dims] = dict(zip(devices, indices))
        return dict(found)

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Any]:
        """`devices_indices_map` of this process's devices."""
        here = self.addressable_devices
        return {d: i for d, i in self.devices_indices_map(global_shape).items() if d in here}

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether arrays of `ndim` dimensions lie alike, in the same kind of memory."""
        mine, theirs = self._to_xla_hlo_sharding(ndim), other._to_xla_hlo_sharding(ndim)
        return (
            mine == theirs
            and tuple(self._device_assignment) == tuple(other._device_assignment)
            and self.memory_kind == other.memory_kind
        )

    def with_memory_kind(self, kind: str) -> Sharding:
        """The same in another kind of memory."""
        raise NotImplementedError(f"{type(self).__name__} has no memory kind")
