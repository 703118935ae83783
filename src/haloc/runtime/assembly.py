"""Checks of arrays that are to become the shards of one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from haloc.runtime.array_protocols import name_of

if TYPE_CHECKING:
    from haloc.runtime.single_device_array import SingleDeviceArray


def arranged_shards(
    aval: Any, sharding: Any, arrays: Sequence[SingleDeviceArray]
) -> list[SingleDeviceArray]:
    """The arrays in the order of the sharding's devices.

    ValueError for arrays that are not one on each device of this process that the sharding has, or
    of another shape or dtype than the shards of `aval` have.
    """
    devices = sharding._addressable_device_assignment
    if len(arrays) != len(devices):
        raise ValueError(
            f"Expected {len(devices)} per-device arrays (this is how many devices are addressable "
            f"by the sharding), but got {len(arrays)}"
        )
    by_device = {a._spec.device: a for a in arrays}
    if len(by_device) != len(arrays):
        ids = [a._spec.device.id for a in arrays]
        raise ValueError(
            "When making an array from single-device arrays, the input arrays must be from "
            f"distinct devices, but got device IDs {ids}"
        )
    if by_device.keys() != set(devices):
        _refuse_devices({d.id for d in devices}, {d.id for d in by_device})
    shape, dtype = tuple(aval.shape), np.dtype(aval.dtype)
    part = tuple(sharding.shard_shape(shape))
    for array in arrays:
        if array.dtype != dtype:
            raise ValueError(
                f"Input buffers to `Array` must have matching dtypes. Got {array.dtype}, expected "
                f"{dtype} for buffer: {array}"
            )
        if array.shape != part and array.size != np.prod(part):
            raise ValueError(
                f"Expected shard shape {part} doesn't match the single device array shape "
                f"{array.shape}. Shape of Array is {name_of(dtype, shape)} with sharding "
                f"{sharding}"
            )
    return [by_device[d] for d in devices]


def _refuse_devices(wanted: set[int], given: set[int]) -> None:
    message = "Addressable devices and per-device arrays devices do not match."
    if wanted - given:
        message += (
            f" Sharding contains devices {wanted - given} that are not present in per-device "
            "arrays."
        )
    if given - wanted:
        message += (
            f" Per-device arrays contain devices {given - wanted} that are not present in the "
            "sharding."
        )
    raise ValueError(message)
