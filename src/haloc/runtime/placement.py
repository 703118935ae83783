"""Functions that put many arrays on devices, or move them between devices, at once."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.ir.dtype import dtype_from_numpy
from haloc.runtime.array import ArrayImpl
from haloc.runtime.assembly import arranged_shards
from haloc.runtime.device import Device
from haloc.runtime.device_assignment import DeviceList
from haloc.runtime.host_buffer import (
    HostBufferSemantics,
    copy_to_memory,
    host_array,
    put_in_memory,
)
from haloc.runtime.keyword_names import also_named
from haloc.runtime.result_handler import assembled
from haloc.runtime.single_device_array import SingleDeviceArray


class ArrayCopySemantics(IntEnum):
    """What becomes of an array that is copied or moved.

    ALWAYS_COPY: nothing. REUSE_INPUT: the result may share its memory. DONATE_INPUT: it is deleted,
    and the result may have its memory.
    """

    ALWAYS_COPY = 0
    REUSE_INPUT = 1
    DONATE_INPUT = 2


def batched_block_until_ready(x: Sequence[ArrayImpl]) -> None:
    """Wait for all arrays; InvalidArgumentError for a deleted one and for what is no array."""
    for array in x:
        if not isinstance(array, ArrayImpl):
            raise InvalidArgumentError(
                f"batched_block_until_ready takes arrays only, got {type(array).__name__}"
            )
        array.block_until_ready()


@also_named(shards="xs")
def batched_device_put(
    aval: Any,
    sharding: Any,
    xs: Sequence[Any],
    devices: Sequence[Device],
    committed: bool = True,
    force_copy: bool = False,
    host_buffer_semantics: HostBufferSemantics = HostBufferSemantics.ZERO_COPY,
) -> ArrayImpl:
    """One array of parts: xs[i] goes to the i-th device that `sharding` has in this process.

    aval: any object with the whole array's shape and dtype. xs: NumPy arrays, Python numbers (which
    take the dtype of aval) or arrays of haloc; the documents call them shards, and either keyword
    will do. devices: the devices of the sharding, in any order. committed: True unless given, as
    in jaxlib (the documents say False). Memory is shared as by `Client.buffer_from_pyval`, and with
    arrays that are already there.

    ValueError when xs and devices differ in number, InvalidArgumentError for parts that do not fit,
    TypeError without aval or sharding.
    """
    if aval is None or sharding is None:
        raise TypeError(f"batched_device_put(aval={aval}, sharding={sharding}): both are needed")
    if len(xs) != len(devices):
        raise ValueError(f"Argument sizes (xs and devices) must match: {len(xs)} vs {len(devices)}")
    wanted = sharding._addressable_device_assignment
    if len(xs) != len(wanted):
        raise InvalidArgumentError(
            "Number of addressable shard data does not match the number of addressable devices in "
            f"the sharding: {len(xs)} vs. {len(wanted)}"
        )
    if set(devices) != set(wanted):
        raise InvalidArgumentError(f"devices are {list(devices)}, the sharding's {list(wanted)}")
    dtype, part = np.dtype(aval.dtype), tuple(sharding.shard_shape(tuple(aval.shape)))
    share = host_buffer_semantics is HostBufferSemantics.ZERO_COPY and not force_copy
    shards = []
    for value, device in zip(xs, wanted, strict=True):
        memory = _memory(device, sharding)
        if isinstance(value, ArrayImpl):
            _check_part(value, dtype, part)
            shards.append(copy_to_memory(value, memory, share=not force_copy))
            continue
        array = np.asarray(value, dtype) if type(value) in _NUMBERS else host_array(value)
        _check_part(array, dtype, part)
        shards.append(put_in_memory(array, memory, share=share))
    return assembled(aval, sharding, shards, committed)


_NUMBERS = frozenset({bool, int, float, complex})


def _memory(device: Device, sharding: Any) -> Any:
    kind = sharding.memory_kind
    return device.default_memory() if kind is None else device.memory(kind)


def _check_part(value: Any, dtype: np.dtype[Any], part: tuple[int, ...]) -> None:
    if tuple(value.shape) != part:
        raise InvalidArgumentError(
            f"Host buffer shape does not match shard shape: {list(value.shape)} vs. {list(part)}"
        )
    if value.dtype != dtype:
        given, wanted = (dtype_from_numpy(d).name.upper() for d in (value.dtype, dtype))
        raise InvalidArgumentError(
            f"Host buffer dtype does not match array spec dtype: {given} vs. {wanted}"
        )


def batched_copy_array_to_devices_with_sharding(
    arrays: Sequence[ArrayImpl],
    devices: Sequence[DeviceList],
    sharding: Sequence[Any],
    array_copy_semantics: Sequence[ArrayCopySemantics],
) -> list[ArrayImpl]:
    """Each array on other devices: its k-th part goes to the k-th device of its DeviceList, in the
    kind of memory its new sharding has.

    InvalidArgumentError when the four differ in number, for a list with another number of devices
    than the array has, and for a sharding of other devices; TypeError for what is no DeviceList.
    """
    counts = [len(x) for x in (arrays, devices, sharding, array_copy_semantics)]
    if len(set(counts)) > 1:
        raise InvalidArgumentError(
            "batched_copy_array_to_devices_with_sharding: the numbers of arrays, device lists, "
            f"shardings and semantics differ: {counts}"
        )
    given = zip(arrays, devices, sharding, array_copy_semantics, strict=True)
    return [_copied(*one) for one in given]


def _copied(
    array: ArrayImpl, devices: DeviceList, sharding: Any, semantics: ArrayCopySemantics
) -> ArrayImpl:
    if not isinstance(array, ArrayImpl):
        raise TypeError(f"not an array: {type(array).__name__}")
    if not isinstance(devices, DeviceList):
        raise TypeError(f"devices[i] is a {type(devices).__name__}, not a DeviceList")
    semantics = ArrayCopySemantics(semantics)
    parts = array._live_shards()
    if len(parts) != len(devices):
        raise InvalidArgumentError(
            "CopyArrays only supports destination device list of the same size as the array device "
            f"lists: {len(devices)} vs. {len(parts)}"
        )
    share = semantics is not ArrayCopySemantics.ALWAYS_COPY
    shards = [
        copy_to_memory(part, _memory(device, sharding), share=share)
        for part, device in zip(parts, devices, strict=True)
    ]
    copy = assembled(
        array.aval, sharding, arranged_shards(array.aval, sharding, shards), array._committed
    )
    if semantics is ArrayCopySemantics.DONATE_INPUT:
        array.delete()
    return copy


def reorder_shards(
    x: ArrayImpl, dst_sharding: Any, array_copy_semantics: ArrayCopySemantics
) -> ArrayImpl:
    """The array whose parts lie where they do, but whose devices count in another order.

    No data move: the k-th part of the result is the part of x on the k-th device of dst_sharding,
    so that the value changes as the order of the devices does. InvalidArgumentError for
    ALWAYS_COPY and for a sharding of other devices.
    """
    semantics = ArrayCopySemantics(array_copy_semantics)
    if semantics is ArrayCopySemantics.ALWAYS_COPY:
        raise InvalidArgumentError(f"Invalid ArrayCopySemantics: {int(semantics)}")
    shards = x._live_shards()
    devices = dst_sharding._addressable_device_assignment
    if len(shards) != len(devices):
        raise InvalidArgumentError(
            f"Array is expected to have {len(devices)} addressable shards, but has {len(shards)} "
            "addressable shards"
        )
    for number, shard in enumerate(shards):
        if shard._spec.device not in devices:
            raise InvalidArgumentError(
                f"Array shard {number} is on device id={shard._spec.device.id}, but sharding does "
                "not have a shard on that device."
            )
    parts: list[SingleDeviceArray] = arranged_shards(x.aval, dst_sharding, shards)
    reordered = assembled(x.aval, dst_sharding, parts, x._committed)
    if semantics is ArrayCopySemantics.DONATE_INPUT:
        x.delete()
    return reordered
