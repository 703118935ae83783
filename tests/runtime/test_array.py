"""ArrayImpl: what it says, how NumPy reads it, deletion."""

from __future__ import annotations

import sys
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from haloc.xla_client import ArrayImpl, Client, XlaRuntimeError, batched_block_until_ready

Put = Callable[..., ArrayImpl]


def test_what_it_says(client: Client, put: Put) -> None:
    array = put(np.ones((2, 3), np.float32))
    assert (array.shape, array.ndim, array.size) == ((2, 3), 2, 6)
    assert (array.dtype, array.itemsize, array.nbytes) == (np.float32, 4, 24)
    assert array.device is client.devices()[0]
    assert array.devices() == {client.devices()[0]}
    assert array.on_device_size_in_bytes() == 24
    assert array.platform() == client.platform
    assert len(array) == 2


def test_numpy_reads_it_without_a_copy_and_cannot_write(put: Put) -> None:
    array = put([1.0, 2.0])
    view = np.asarray(array)
    assert view.ctypes.data == array.unsafe_buffer_pointer()
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.flags.writeable = True
    assert np.asarray(array) is view


def test_np_array_copies(put: Put) -> None:
    array = put([1.0, 2.0])
    copy = np.array(array)
    copy[0] = 9
    assert np.asarray(array).tolist() == [1.0, 2.0]


def test_reading_as_another_type(put: Put) -> None:
    array = put(np.array([1, 2], np.int32))
    assert np.asarray(array, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(array, np.float64, copy=False)


def test_a_view_outlives_the_array(put: Put) -> None:
    array = put(np.full(1000, 3.0))
    view = np.asarray(array)[10:]
    array.delete()
    del array
    assert (view == 3).all()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="PEP 688 came with Python 3.12")
def test_buffer_protocol(put: Put) -> None:
    view = memoryview(put(np.array([1, 2], np.int32)))  # type: ignore[arg-type]
    assert view.readonly
    assert view.tolist() == [1, 2]


def test_dlpack(put: Put) -> None:
    array = put(np.arange(6.0).reshape(2, 3))
    assert array.__dlpack_device__() == (1, 0)
    shared = np.from_dlpack(array)
    assert shared.ctypes.data == array.unsafe_buffer_pointer()
    assert shared.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.array([[1, 2]], np.float32), "Array([[1., 2.]], dtype=float32)"),
        (np.array(3, np.int32), "Array(3, dtype=int32)"),
        (np.zeros((0, 2), np.int8), "Array([], shape=(0, 2), dtype=int8)"),
        (np.array([1.5], ml_dtypes.bfloat16), "Array([1.5], dtype=bfloat16)"),
        (np.eye(2, dtype=bool), "Array([[ True, False],\n       [False,  True]], dtype=bool)"),
    ],
)
def test_repr_is_like_numpy(put: Put, value: np.ndarray, text: str) -> None:
    assert repr(put(value)) == text
    assert str(put(value)) == str(value)


def test_scalars_become_numbers(put: Put) -> None:
    assert float(put(1.5)) == 1.5
    assert int(put(3)) == 3
    assert complex(put(1j)) == 1j
    assert bool(put(True))
    assert [10, 20, 30][put(1)] == 20
    assert put(2.5).item() == 2.5
    assert put([[1, 2]]).tolist() == [[1, 2]]


def test_only_scalars_become_numbers(put: Put) -> None:
    message = r"Only scalar arrays can be converted to Python scalars; got arr.ndim=1"
    for convert in (float, int, complex):
        with pytest.raises(TypeError, match=message):
            convert(put([1.0]))
    with pytest.raises(TypeError, match="unsized"):
        len(put(1.0))


def test_arrays_are_unhashable(put: Put) -> None:
    with pytest.raises(TypeError, match="unhashable type: 'SingleDeviceArray'"):
        hash(put(1.0))


def test_readiness(put: Put) -> None:
    array = put([1.0])
    assert array.is_ready()
    assert array.block_until_ready() is array
    batched_block_until_ready([array, put([2.0])])
    batched_block_until_ready([])


def test_clone_shares_memory_and_lives_on(put: Put) -> None:
    array = put([1.0, 2.0])
    clone = array.clone()
    assert clone.unsafe_buffer_pointer() == array.unsafe_buffer_pointer()
    array.delete()
    assert np.asarray(clone).tolist() == [1.0, 2.0]


def test_deletion(put: Put) -> None:
    array = put(np.ones((2, 3), np.float32))
    assert not array.is_deleted()
    array.delete()
    array.delete()
    assert array.is_deleted()
    assert (array.shape, array.dtype) == ((2, 3), np.float32)
    assert repr(array) == "<deleted Array float32[2,3]>"


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda a: a.block_until_ready(), "BlockHostUntilReady() called on deleted or donated"),
        (lambda a: a.is_ready(), "IsReady() called on deleted or donated buffer"),
        (lambda a: a.clone(), "Clone() called on deleted or donated buffer"),
        (lambda a: a.platform(), "platform() called on deleted or donated buffer"),
        (lambda a: a.on_device_size_in_bytes(), "GetOnDeviceSizeInBytes() called on deleted"),
        (lambda a: a.unsafe_buffer_pointer(), "UnsafeBufferPointer() called on deleted"),
        (np.asarray, "Array has been deleted with shape=float32[2]."),
        (str, "Array has been deleted with shape=float32[2]."),
        (lambda a: a.devices(), "Array has been deleted with shape=float32[2]."),
        (lambda a: a.tolist(), "Array has been deleted with shape=float32[2]."),
        (lambda a: a.__dlpack__(), "Array has been deleted with shape=float32[2]."),
        (lambda a: batched_block_until_ready([a]), "BlockHostUntilReady() called on deleted"),
    ],
)
def test_a_deleted_array_refuses(
    put: Put, use: Callable[[ArrayImpl], object], message: str
) -> None:
    array = put(np.ones(2, np.float32))
    array.delete()
    with pytest.raises(XlaRuntimeError) as caught:
        use(array)
    assert message in str(caught.value)
    assert caught.value.code == "INVALID_ARGUMENT"


def test_deletion_returns_memory_to_the_pool(client: Client) -> None:
    array = client.buffer_from_pyval(np.zeros(1 << 18, np.float32), force_copy=True)
    pointer = array.unsafe_buffer_pointer()
    array.delete()
    again = client.buffer_from_pyval(np.zeros(1 << 18, np.float32), force_copy=True)
    assert again.unsafe_buffer_pointer() == pointer


def test_live_arrays_newest_first(client: Client) -> None:
    first, second, third = (client.buffer_from_pyval(float(i)) for i in range(3))
    second.delete()
    alive = client.live_arrays()
    assert [a is b for a, b in zip(alive, [third, first], strict=True)] == [True, True]
    assert client.live_buffers()[0] is third
    del alive, third
    assert len(client.live_arrays()) == 1
    assert client.devices()[0].live_buffers()[0] is first


def test_tracking_many_arrays_forgets_the_dead(client: Client) -> None:
    kept = [client.buffer_from_pyval(float(i)) for i in range(10)]
    for i in range(5000):
        client.buffer_from_pyval(float(i))
    assert len(client.arrays._refs) < 3000
    assert [float(a) for a in client.live_arrays()] == [float(i) for i in range(9, -1, -1)]
    assert len(kept) == 10


def test_cuda_interface_is_refused(put: Put) -> None:
    assert not hasattr(put(1.0), "__cuda_array_interface__")
