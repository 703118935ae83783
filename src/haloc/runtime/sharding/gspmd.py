"""`GSPMDSharding`: a list of devices and an HloSharding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from haloc.runtime.device import Device
from haloc.runtime.device_assignment import DeviceList
from haloc.runtime.op_sharding import OpSharding, XlaHloSharding
from haloc.runtime.sharding.base import Sharding


class GSPMDSharding(Sharding):
    """The sharding's device numbers are places in the list of devices.

    ValueError for a memory kind that the devices have not; TypeError for another kind of sharding.
    """

    def __init__(
        self,
        devices: DeviceList | Sequence[Device],
        op_sharding: OpSharding | XlaHloSharding,
        memory_kind: str | None = None,
    ):
        if isinstance(op_sharding, OpSharding):
            op_sharding = XlaHloSharding.from_proto(op_sharding)
        if not isinstance(op_sharding, XlaHloSharding):
            raise TypeError(
                "GSPMDSharding: op_sharding is an OpSharding or an HloSharding, not "
                f"{type(op_sharding).__name__}"
            )
        self._device_assignment = self._devices = tuple(devices)
        self._hlo_sharding = op_sharding
        self._set_memory_kind(memory_kind)

    @classmethod
    def get_replicated(
        cls, device_assignment: DeviceList | Sequence[Device], *, memory_kind: str | None = None
    ) -> GSPMDSharding:
        """All of an array on every device."""
        return cls(device_assignment, XlaHloSharding.replicate(), memory_kind)

    @property
    def is_fully_replicated(self) -> bool:
        return self._hlo_sharding.is_replicated() or self.num_devices == 1

    def with_memory_kind(self, kind: str) -> GSPMDSharding:
        return GSPMDSharding(self._devices, self._hlo_sharding, kind)

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """ValueError for a shape with fewer dimensions than the sharding has."""
        tiles = self._hlo_sharding.ir.tiles
        if len(aval_shape) < len(tiles):
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(tiles)}, but was "
                f"applied to a value of rank {len(aval_shape)}"
            )

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> XlaHloSharding:
        return self._hlo_sharding

    def _key(self) -> tuple[Any, ...]:
        return (self._devices, self._hlo_sharding, self._memory_kind)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, GSPMDSharding) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"GSPMDSharding({self._hlo_sharding!r}, memory_kind={self._memory_kind})"
