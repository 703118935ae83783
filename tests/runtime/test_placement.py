"""Putting and moving arrays: memory kinds, sharing, order, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from haloc.errors import InvalidArgumentError
from haloc.xla_client import (
    ArrayCopySemantics,
    ArrayImpl,
    Device,
    DeviceList,
    Mesh,
    NamedSharding,
    PartitionSpec,
    ShapedArray,
    SingleDeviceSharding,
    array_result_handler,
    batched_copy_array_to_devices_with_sharding,
    batched_device_put,
    make_interpreter_client,
    reorder_shards,
)

CLIENT = make_interpreter_client(num_devices=4)
DEVICES = CLIENT.devices()
AVAL = ShapedArray((8,), np.float32)


def split(devices: list[Device], memory_kind: str | None = None) -> NamedSharding:
    return NamedSharding(Mesh(np.array(devices), ("x",)), PartitionSpec("x"), memory_kind)


def put(memory_kind: str | None = None) -> ArrayImpl:
    parts = [np.arange(2, dtype=np.float32) + 2 * i for i in range(4)]
    sharding = split(DEVICES, memory_kind)
    return batched_device_put(AVAL, sharding, parts, DEVICES, force_copy=True)


def copied(array: ArrayImpl, sharding: NamedSharding, how: ArrayCopySemantics) -> ArrayImpl:
    to = DeviceList(sharding._device_assignment)
    return batched_copy_array_to_devices_with_sharding([array], [to], [sharding], [how])[0]


def pointers(array: ArrayImpl) -> list[int]:
    return [a.unsafe_buffer_pointer() for a in array._arrays or ()]


@pytest.mark.parametrize("kind", ["device", "pinned_host", "unpinned_host"])
def test_arrays_live_in_every_memory(kind: str) -> None:
    array = put(kind)
    assert array.sharding.memory_kind == kind
    for device, part in zip(DEVICES, array._arrays or (), strict=True):
        assert part.memory is device.memory(kind)
        assert part.sharding == SingleDeviceSharding(device, kind)
    assert np.asarray(array).tolist() == [*range(8)]


def test_a_program_takes_arrays_from_host_memory() -> None:
    client = make_interpreter_client()
    device = client.devices()[0]
    sharding = SingleDeviceSharding(device, "pinned_host")
    aval = ShapedArray((2,), np.float32)
    array = batched_device_put(aval, sharding, [np.ones(2, np.float32)], [device])
    text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT r = f32[2] add(x, x) }"
    (result,) = client.compile_and_load(text, [device]).execute([array])
    assert np.asarray(result).tolist() == [2, 2]


class TestPut:
    def test_numbers_take_the_dtype_of_aval(self) -> None:
        everywhere = NamedSharding(Mesh(np.array(DEVICES), ("x",)), PartitionSpec())
        array = batched_device_put(ShapedArray((), np.float32), everywhere, [3] * 4, DEVICES)
        assert (array.dtype, float(array)) == (np.float32, 3.0)

    def test_arrays_that_are_there_are_shared(self) -> None:
        array = put()
        parts = list(array._arrays or ())
        again = batched_device_put(AVAL, array.sharding, parts, DEVICES)
        assert pointers(again) == pointers(array)
        copy = batched_device_put(AVAL, array.sharding, parts, DEVICES, force_copy=True)
        assert not set(pointers(copy)) & set(pointers(array))

    def test_other_devices_are_refused(self) -> None:
        parts = [np.zeros(4, np.float32)] * 2
        with pytest.raises(InvalidArgumentError, match=r"devices are .*id=3.*, the sharding's"):
            batched_device_put(AVAL, split(DEVICES[:2]), parts, DEVICES[2:])


class TestCopy:
    def test_between_memories(self) -> None:
        array = put()
        host = split(DEVICES, "pinned_host")
        moved = copied(array, host, ArrayCopySemantics.REUSE_INPUT)
        assert moved.sharding == host
        assert not set(pointers(moved)) & set(pointers(array))
        assert np.asarray(moved).tolist() == [*range(8)]

    def test_what_is_reused_and_what_is_copied(self) -> None:
        array = put()
        how = ArrayCopySemantics
        assert pointers(copied(array, split(DEVICES), how.REUSE_INPUT)) == pointers(array)
        copy = copied(array, split(DEVICES), how.ALWAYS_COPY)
        assert not set(pointers(copy)) & set(pointers(array))

    def test_donation_deletes_and_keeps_the_memory(self) -> None:
        array = put()
        before = pointers(array)
        moved = copied(array, split(DEVICES), ArrayCopySemantics.DONATE_INPUT)
        assert array.is_deleted()
        assert pointers(moved) == before
        assert np.asarray(moved).tolist() == [*range(8)]

    def test_the_value_stays_when_devices_change_order(self) -> None:
        moved = copied(put(), split(DEVICES[::-1]), ArrayCopySemantics.ALWAYS_COPY)
        assert np.asarray(moved).tolist() == [*range(8)]
        assert np.asarray(moved.addressable_data(0)).tolist() == [0, 1]
        assert moved.addressable_data(0).device is DEVICES[3]

    def test_a_sharding_of_other_devices(self) -> None:
        with pytest.raises(ValueError, match="per-device arrays devices do not match"):
            batched_copy_array_to_devices_with_sharding(
                [put()],
                [DeviceList(tuple(DEVICES))],
                [split([*DEVICES[:3], OTHER])],
                [ArrayCopySemantics.ALWAYS_COPY],
            )


OTHER = make_interpreter_client().devices()[0]


class TestReorder:
    def test_memory_stays_and_the_value_changes(self) -> None:
        array = put()
        order = [2, 0, 3, 1]
        turned = reorder_shards(
            array, split([DEVICES[i] for i in order]), ArrayCopySemantics.REUSE_INPUT
        )
        assert pointers(turned) == [pointers(array)[i] for i in order]
        assert np.asarray(turned).tolist() == [4, 5, 0, 1, 6, 7, 2, 3]
        assert not array.is_deleted()

    def test_donation(self) -> None:
        array = put()
        turned = reorder_shards(array, split(DEVICES), ArrayCopySemantics.DONATE_INPUT)
        assert array.is_deleted()
        assert np.asarray(turned).tolist() == [*range(8)]


class TestHandlers:
    def test_results_of_an_execution(self) -> None:
        device = DEVICES[0]
        text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT r = f32[2] add(x, x) }"
        executable = CLIENT.compile_and_load(text, [device])
        handler = array_result_handler(
            ShapedArray((2,), np.float32), SingleDeviceSharding(device), True
        )
        argument = CLIENT.buffer_from_pyval(np.ones(2, np.float32))
        (result,) = executable.execute_sharded([argument]).consume_with_handlers([handler])
        assert np.asarray(result).tolist() == [2, 2]
        assert result.committed

    @pytest.mark.parametrize("aval", [None, AVAL])
    def test_what_it_needs(self, aval: ShapedArray | None) -> None:
        with pytest.raises(TypeError, match="array_result_handler"):
            array_result_handler(aval, None, True)
