"""`Shard`: one device's part of an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from haloc.runtime.array import ArrayImpl
    from haloc.runtime.device import Device
    from haloc.runtime.single_device_array import SingleDeviceArray


class Shard:
    """device: where it is. index: its place in the whole array. replica_id: how many devices before
    this one hold the same part. data: its elements as an array, None on another process's device.
    """

    __slots__ = ("data", "device", "index", "replica_id")

    def __init__(self, device: Device, index: Any, replica_id: int, data: SingleDeviceArray | None):
        self.device = device
        self.index = index
        self.replica_id = replica_id
        self.data = data

    def __repr__(self) -> str:
        return (
            f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, "
            f"data={self.data})"
        )


def shards_of(array: ArrayImpl) -> list[Shard]:
    """The shards on all devices, in the order of the sharding's devices."""
    data = {x._spec.device: x for x in array._live_shards()}
    seen: dict[Any, int] = {}
    shards = []
    for device, index in array.sharding.devices_indices_map(array.shape).items():
        key = tuple((i.start, i.stop) if isinstance(i, slice) else i for i in index)
        replica = seen.get(key, 0)
        seen[key] = replica + 1
        shards.append(Shard(device, index, replica, data.get(device)))
    return shards
