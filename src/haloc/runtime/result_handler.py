"""`array_result_handler`: makes one array of the parts that executions give back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from haloc.runtime.array import ArrayImpl
from haloc.runtime.assembly import arranged_shards
from haloc.runtime.sharding import SingleDeviceSharding
from haloc.runtime.single_device_array import SingleDeviceArray


class ResultHandler:
    """Called with the arrays of one output, one a device, gives the array they are parts of."""

    def __init__(self, aval: Any, sharding: Any, committed: bool, skip_checks: bool):
        if aval is None or sharding is None:
            raise TypeError(f"array_result_handler(aval={aval}, sharding={sharding})")
        self._aval = aval
        self._sharding = sharding
        self._committed = committed
        self._skip_checks = skip_checks

    def __call__(self, arrays: ArrayImpl | Sequence[ArrayImpl]) -> ArrayImpl:
        """ValueError for arrays that do not fit the sharding, TypeError for what is no array."""
        given = [arrays] if isinstance(arrays, ArrayImpl) else arrays
        if not isinstance(given, list | tuple) or not all(isinstance(a, ArrayImpl) for a in given):
            raise TypeError(f"ResultHandler takes an array or a list of arrays, not {arrays!r}")
        shards = [s for a in given for s in a._live_shards()]
        count = len(self._sharding._addressable_device_assignment)
        if len(shards) != count:
            raise ValueError(
                "INVALID_ARGUMENT: Number of addressable output shards must match the number of "
                f"single-shard arrays: {count} vs. {len(shards)}"
            )
        if not self._skip_checks:
            shards = arranged_shards(self._aval, self._sharding, shards)
        return assembled(self._aval, self._sharding, shards, self._committed)


def array_result_handler(
    aval: Any, sharding: Any, committed: bool, _skip_checks: bool = False
) -> ResultHandler:
    """A function from arrays, one on each device of `sharding`, to the one array they are parts of.

    aval: any object with the whole array's shape and dtype. With _skip_checks the arrays must be in
    the order of the sharding's devices, and only their number is checked.
    """
    return ResultHandler(aval, sharding, committed, _skip_checks)


def assembled(
    aval: Any, sharding: Any, shards: Sequence[SingleDeviceArray], committed: bool
) -> ArrayImpl:
    """The array of these parts, which are in the order of the sharding's devices and fit."""
    if not isinstance(sharding, SingleDeviceSharding):
        return ArrayImpl(aval, sharding, list(shards), committed, _skip_checks=True)
    array = shards[0]._untracked(committed)
    array.client.track(array)
    return array
