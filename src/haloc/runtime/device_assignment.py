"""`DeviceList` and `DeviceAssignment`: which devices a program runs on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.formats.proto import encode
from haloc.runtime.device import MEMORY_KINDS, Device


class DeviceList:
    """An immutable list of devices, hashable. Made from a tuple."""

    def __init__(self, devices: tuple[Device, ...]):
        if not isinstance(devices, tuple):
            raise TypeError(f"DeviceList takes a tuple of devices, not {type(devices).__name__}")
        self._devices = devices

    def __len__(self) -> int:
        return len(self._devices)

    def __getitem__(self, index: int | slice) -> Any:
        return self._devices[index]

    def __iter__(self) -> Iterator[Device]:
        return iter(self._devices)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceList):
            return NotImplemented
        return self._devices == other._devices

    def __hash__(self) -> int:
        return hash(self._devices)

    def __repr__(self) -> str:
        return repr(self._devices)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        return all(_is_addressable(d) for d in self._devices)

    @property
    def addressable_device_list(self) -> DeviceList:
        """The devices of this process, in order."""
        if self.is_fully_addressable:
            return self
        return DeviceList(tuple(d for d in self._devices if _is_addressable(d)))

    @property
    def process_indices(self) -> set[int]:
        return {d.process_index for d in self._devices}

    @property
    def default_memory_kind(self) -> str | None:
        return MEMORY_KINDS[0] if self._devices else None

    @property
    def memory_kinds(self) -> tuple[str, ...]:
        return MEMORY_KINDS if self._devices else ()

    @property
    def device_kind(self) -> str | None:
        return self._devices[0].device_kind if self._devices else None


def _is_addressable(device: Device) -> bool:
    return device.process_index == device.client.process_index()


def check_and_canonicalize_memory_kind(
    memory_kind: str | None, device_list: DeviceList
) -> str | None:
    """The memory kind of arrays on these devices: the given one, or the default for None.

    None where there are no devices to ask. ValueError for a kind that they do not have.
    """
    if not isinstance(device_list, DeviceList):
        raise TypeError(f"device_list is a {type(device_list).__name__}, not a DeviceList")
    if memory_kind is None:
        return device_list.default_memory_kind
    for device in device_list:
        try:
            device.memory(memory_kind)
        except InvalidArgumentError as error:
            raise ValueError(error.message) from None
    return memory_kind


class DeviceAssignment:
    """Device ids by (replica, computation). `DeviceAssignment.create(2-D integer array)`."""

    def __init__(self, ids: np.ndarray):
        self.ids = ids

    @staticmethod
    def create(assignment: np.ndarray) -> DeviceAssignment:
        """TypeError for anything but a two-dimensional array of integers, InvalidArgumentError for
        one without elements."""
        if not isinstance(assignment, np.ndarray) or assignment.ndim != 2:
            raise TypeError("DeviceAssignment.create takes a two-dimensional NumPy array of ids")
        if assignment.dtype.kind not in "iu":
            raise TypeError(f"device ids are integers, not {assignment.dtype}")
        if not assignment.size:
            raise InvalidArgumentError(f"a device assignment of shape {assignment.shape} is empty")
        return DeviceAssignment(np.array(assignment, np.int64))

    def replica_count(self) -> int:
        return self.ids.shape[0]

    def computation_count(self) -> int:
        return self.ids.shape[1]

    def serialize(self) -> bytes:
        """XLA's DeviceAssignmentProto."""
        columns = [{"replica_device_ids": column.tolist()} for column in self.ids.T]
        message = {
            "replica_count": self.replica_count(),
            "computation_count": self.computation_count(),
            "computation_devices": columns,
        }
        return encode("DeviceAssignmentProto", message)

    def __repr__(self) -> str:
        columns = (" ".join(map(str, column)) for column in self.ids.T)
        listed = " ".join(f"Computation{i}{{{c}}}" for i, c in enumerate(columns))
        return (
            f"DeviceAssignment{{replica_count={self.replica_count()}, "
            f"computation_count={self.computation_count()}, {listed}}}"
        )
