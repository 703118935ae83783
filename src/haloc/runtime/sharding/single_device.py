"""`SingleDeviceSharding`: all of an array on one device."""

from __future__ import annotations

from typing import Any

from haloc.runtime.device import Device, Memory
from haloc.runtime.op_sharding import XlaHloSharding
from haloc.runtime.sharding.base import Sharding


class SingleDeviceSharding(Sharding):
    """memory_kind: of the device; default its default memory. ValueError for one it has not."""

    def __init__(self, device: Device, memory_kind: str | None = None):
        self._device = device
        self._device_assignment = (device,)
        self._set_memory_kind(memory_kind)

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        return SingleDeviceSharding(self._device, kind)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> XlaHloSharding:
        return XlaHloSharding.replicate()

    def _key(self) -> tuple[Any, ...]:
        return (self._device, self._memory_kind)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SingleDeviceSharding):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self._memory_kind})"


def sharding_of(memory: Memory) -> SingleDeviceSharding:
    """The sharding of arrays in this memory; one object for all of them."""
    found = memory.sharding
    if found is None:
        found = memory.sharding = SingleDeviceSharding(memory.device, memory.kind)
    return found
