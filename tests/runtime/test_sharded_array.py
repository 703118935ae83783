"""Arrays on several devices: made of shards, read whole, waited for, deleted."""

from __future__ import annotations

import itertools
import pickle
import threading

import numpy as np
import pytest

from haloc.errors import InternalError, InvalidArgumentError
from haloc.runtime.pending import Pending
from haloc.runtime.single_device_array import SingleDeviceArray
from haloc.xla_client import (
    ArrayImpl,
    Mesh,
    NamedSharding,
    PartitionSpec,
    ShapedArray,
    Sharding,
    SingleDeviceSharding,
    batched_device_put,
    make_interpreter_client,
)

CLIENT = make_interpreter_client(num_devices=8)
DEVICES = CLIENT.devices()


def mesh(**axes: int) -> Mesh:
    count = int(np.prod([*axes.values()]))
    return Mesh(np.array(DEVICES[:count]).reshape([*axes.values()]), tuple(axes))


def spread(value: np.ndarray, sharding: Sharding) -> ArrayImpl:
    """The value cut up by the sharding's indices, and put together as an array."""
    indices = sharding.devices_indices_map(value.shape)
    parts = [np.ascontiguousarray(value[index]) for index in indices.values()]
    aval = ShapedArray(value.shape, value.dtype)
    return batched_device_put(aval, sharding, parts, list(indices), force_copy=True)


SPLIT = NamedSharding(mesh(x=4), PartitionSpec("x"))


@pytest.mark.parametrize("grid", [(8, 1), (4, 2), (2, 4), (1, 8)])
@pytest.mark.parametrize(
    "entries",
    [
        entries
        for entries in itertools.product([None, "x", "y", ("x", "y"), ("y", "x")], repeat=2)
        if len({a for e in entries for a in e or ()}) == sum(len(e or ()) for e in entries)
    ],
    ids=str,
)
def test_what_is_cut_up_reads_whole(grid: tuple[int, int], entries: tuple) -> None:
    value = np.arange(8 * 16, dtype=np.int32).reshape(8, 16)
    sharding = NamedSharding(mesh(x=grid[0], y=grid[1]), PartitionSpec(*entries))
    array = spread(value, sharding)
    assert np.array_equal(np.asarray(array), value)
    for shard in array.addressable_shards:
        assert shard.data is not None
        assert np.array_equal(np.asarray(shard.data), value[shard.index])
        assert shard.data.shape == sharding.shard_shape(value.shape)
    # Each part has as many replicas as the other parts have.
    parts = {str(s.index) for s in array.global_shards}
    replicas = [s.replica_id for s in array.global_shards]
    assert sorted(replicas) == sorted([*range(8 // len(parts))] * len(parts))
    whole = all(size == part for size, part in zip(value.shape, sharding.shard_shape((8, 16))))
    assert array.is_fully_replicated is whole


def test_no_elements() -> None:
    array = spread(np.zeros((4, 0), np.float32), SPLIT)
    assert np.asarray(array).shape == (4, 0)
    assert repr(array) == "Array([], shape=(4, 0), dtype=float32)"


def test_the_value_is_read_only_and_made_once() -> None:
    array = spread(np.arange(8.0), SPLIT)
    value = np.asarray(array)
    assert not value.flags.writeable
    assert np.asarray(array) is value


def test_copies_are_read_without_a_copy() -> None:
    array = spread(np.arange(3.0), NamedSharding(mesh(x=4), PartitionSpec()))
    assert np.shares_memory(np.asarray(array), np.asarray(array.addressable_data(0)))


def test_one_device_under_a_named_sharding() -> None:
    sharding = NamedSharding(mesh(x=1), PartitionSpec("x"))
    array = spread(np.arange(3.0), sharding)
    assert array.sharding is sharding
    assert array.device is DEVICES[0]
    assert array.unsafe_buffer_pointer() == array.addressable_data(0).unsafe_buffer_pointer()
    assert np.from_dlpack(array).tolist() == [0, 1, 2]


def test_pickled_by_value() -> None:
    array = pickle.loads(pickle.dumps(spread(np.arange(8.0), SPLIT)))
    assert isinstance(array.sharding, SingleDeviceSharding)
    assert array.committed
    assert np.asarray(array).tolist() == [*range(8)]


class TestLife:
    def test_it_and_its_makers_are_deleted_apart(self) -> None:
        parts: list[ArrayImpl] = [
            CLIENT.buffer_from_pyval(np.full(2, i, np.float32), DEVICES[i]) for i in range(4)
        ]
        array = ArrayImpl(ShapedArray((8,), np.float32), SPLIT, parts, True)
        parts[0].delete()
        assert np.asarray(array).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
        clone = array.clone()
        array.delete()
        array.delete()
        assert array.is_deleted()
        assert array._arrays is None
        assert not parts[1].is_deleted()
        assert np.asarray(clone).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]

    def test_deletion_gives_memory_back(self) -> None:
        array = spread(np.zeros(1 << 18, np.float32), SPLIT)
        pointers = {a.unsafe_buffer_pointer() for a in array._arrays or ()}
        array.delete()
        again = spread(np.zeros(1 << 18, np.float32), SPLIT)
        assert {a.unsafe_buffer_pointer() for a in again._arrays or ()} == pointers

    def test_it_counts_once_among_the_live(self) -> None:
        client = make_interpreter_client(num_devices=2)
        two = Mesh(np.array(client.devices()), ("x",))
        array = spread(np.arange(2.0), NamedSharding(two, PartitionSpec("x")))
        assert [a is array for a in client.live_arrays()] == [True]
        assert [a is array for a in client.devices()[1].live_buffers()] == [True]

    def test_a_deleted_array_keeps_its_shape(self) -> None:
        array = spread(np.arange(8.0), SPLIT)
        array.delete()
        assert (array.shape, array.dtype, array.sharding) == ((8,), np.float64, SPLIT)
        with pytest.raises(InvalidArgumentError, match=r"deleted with shape=float64\[8\]"):
            array.global_shards  # noqa: B018  # the property raises


class TestPending:
    def pending_array(self) -> tuple[list[Pending], ArrayImpl]:
        waits = [Pending() for _ in range(4)]
        parts: list[ArrayImpl] = []
        for device, pending in zip(DEVICES, waits):
            full = CLIENT.buffer_from_pyval(np.full(2, 7.0), device, force_copy=True)
            assert isinstance(full, SingleDeviceArray)
            assert full._block is not None
            parts.append(SingleDeviceArray(full._spec, full._block, True, pending))
        aval = ShapedArray((8,), np.float64)
        return waits, ArrayImpl(aval, SPLIT, parts, True, _skip_checks=True)

    def test_it_is_ready_when_all_shards_are(self) -> None:
        waits, array = self.pending_array()
        for pending in waits:
            assert not array.is_ready()
            pending.finish()
        assert array.is_ready()
        assert array.block_until_ready() is array

    def test_reading_waits_for_all_shards(self) -> None:
        waits, array = self.pending_array()
        read: list[list[float]] = []
        thread = threading.Thread(target=lambda: read.append(np.asarray(array).tolist()))
        thread.start()
        for pending in waits:
            assert read == []
            pending.finish()
        thread.join(5)
        assert read == [[7.0] * 8]

    def test_the_error_of_one_shard_is_everyones(self) -> None:
        waits, array = self.pending_array()
        for pending in waits[:3]:
            pending.finish()
        waits[3].fail(InternalError("device 3 lost"))
        for _ in range(2):
            with pytest.raises(InternalError, match="device 3 lost"):
                array.block_until_ready()
            with pytest.raises(InternalError, match="device 3 lost"):
                np.asarray(array)
