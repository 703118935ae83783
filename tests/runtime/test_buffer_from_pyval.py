"""buffer_from_pyval: what it takes, what dtype comes out, when memory is shared."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest

from haloc.ir.dtype import ARRAY_DTYPES, DType
from haloc.xla_client import Client, HostBufferSemantics, XlaRuntimeError, make_interpreter_client


def aligned(count: int, dtype: type = np.float32, offset_bytes: int = 0) -> np.ndarray:
    """An array whose memory starts `offset_bytes` after a multiple of 64."""
    size = count * np.dtype(dtype).itemsize
    raw = np.zeros(size + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset_bytes
    return raw[start : start + size].view(dtype)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, np.bool_),
        (7, np.int64),
        (-(2**63), np.int64),
        (1.5, np.float64),
        (1 + 2j, np.complex128),
        (np.float32(2), np.float32),
        (np.int8(-3), np.int8),
        (ml_dtypes.bfloat16(1.5), ml_dtypes.bfloat16),
    ],
)
def test_scalars(client: Client, value: object, dtype: object) -> None:
    array = client.buffer_from_pyval(value)
    assert array.shape == ()
    assert array.dtype == np.dtype(dtype)
    assert np.asarray(array)[()] == value


@pytest.mark.parametrize("dtype", ARRAY_DTYPES, ids=str)
def test_every_element_type_survives(client: Client, dtype: DType) -> None:
    if dtype.is_pred:
        data = np.array([[True, False], [False, False]])
    else:
        data = np.array([[0.5, 1], [1, 2]]).astype(dtype.numpy)
    array = client.buffer_from_pyval(data)
    assert array.dtype == dtype.numpy
    assert np.asarray(array).tobytes() == data.tobytes()


@pytest.mark.parametrize(
    ("dtype", "count", "size_bytes"),
    [("int4", 3, 2), ("uint4", 4, 2), ("int2", 3, 1), ("float4_e2m1fn", 3, 2), ("bfloat16", 3, 6)],
)
def test_narrow_elements_count_packed(
    client: Client, dtype: str, count: int, size_bytes: int
) -> None:
    array = client.buffer_from_pyval(np.zeros(count, getattr(ml_dtypes, dtype)))
    assert array.on_device_size_in_bytes() == size_bytes


@pytest.mark.parametrize("dims", [(0,), (3, 0), (0, 0, 2)])
def test_empty_arrays(client: Client, dims: tuple[int, ...]) -> None:
    array = client.buffer_from_pyval(np.zeros(dims, np.float32))
    assert array.shape == dims
    assert np.asarray(array).shape == dims
    assert array.on_device_size_in_bytes() == 0


@pytest.mark.parametrize("size", [(2, 3), (100, 200)])
def test_other_memory_orders_are_made_row_major(client: Client, size: tuple[int, int]) -> None:
    data = np.arange(size[0] * size[1], dtype=np.float32).reshape(size)
    for strided in (np.asfortranarray(data), data.T, data[::-1, ::2], data[:, :0]):
        array = client.buffer_from_pyval(strided)
        assert np.array_equal(np.asarray(array), strided)
        assert np.asarray(array).flags.c_contiguous


@pytest.mark.parametrize("dtype", [">f4", ">i2", ">c16"])
def test_big_endian_values_are_kept(client: Client, dtype: str) -> None:
    data = np.array([1, 2, 3]).astype(dtype)
    array = client.buffer_from_pyval(data)
    assert array.dtype.isnative
    assert np.array_equal(np.asarray(array), data)


class TestSharing:
    """The array is the NumPy array's memory iff ZERO_COPY, aligned, row-major, not force_copy.

    Aligned means to 64 bytes, as in jaxlib; to 16 bytes where there is something to save.
    """

    client = make_interpreter_client()

    def shares(self, data: np.ndarray, **options: object) -> bool:
        array = self.client.buffer_from_pyval(data, **options)
        return array.unsafe_buffer_pointer() == data.ctypes.data

    def test_aligned_memory_is_shared(self) -> None:
        data = aligned(8)
        array = self.client.buffer_from_pyval(data)
        data[0] = 42
        assert np.asarray(array)[0] == 42

    @pytest.mark.parametrize("offset_bytes", [4, 16, 32])
    def test_a_little_less_aligned_memory_is_copied(self, offset_bytes: int) -> None:
        assert not self.shares(aligned(8, offset_bytes=offset_bytes))

    @pytest.mark.parametrize(("offset_bytes", "shared"), [(4, False), (8, False), (16, True)])
    def test_much_memory_needs_16_bytes(self, offset_bytes: int, shared: bool) -> None:
        assert self.shares(aligned(5000, offset_bytes=offset_bytes)) is shared

    def test_force_copy_copies(self) -> None:
        assert not self.shares(aligned(8), force_copy=True)

    def test_sharing_is_the_default(self) -> None:
        assert self.shares(aligned(8), host_buffer_semantics=HostBufferSemantics.ZERO_COPY)
        assert self.shares(aligned(8))

    @pytest.mark.parametrize(
        "semantics",
        [
            HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
            HostBufferSemantics.IMMUTABLE_UNTIL_TRANSFER_COMPLETES,
        ],
    )
    def test_other_semantics_copy(self, semantics: HostBufferSemantics) -> None:
        assert not self.shares(aligned(8), host_buffer_semantics=semantics)

    def test_other_orders_are_copied(self) -> None:
        assert not self.shares(aligned(16).reshape(4, 4).T)

    def test_large_copies_are_copies(self) -> None:
        data = aligned(100_000)
        array = self.client.buffer_from_pyval(data, force_copy=True)
        data[:] = 1
        assert not np.asarray(array).any()

    def test_shared_memory_outlives_the_numpy_array(self) -> None:
        data = aligned(1000)
        data[:] = 7
        array = self.client.buffer_from_pyval(data)
        del data
        gc.collect()
        assert (np.asarray(array) == 7).all()


def test_an_array_on_the_same_device_shares_memory(client: Client) -> None:
    first = client.buffer_from_pyval(np.arange(3))
    second = client.buffer_from_pyval(first)
    assert second is not first
    assert second.unsafe_buffer_pointer() == first.unsafe_buffer_pointer()


def test_an_array_goes_to_another_device() -> None:
    client = make_interpreter_client(num_devices=2)
    here, there = client.devices()
    first = client.buffer_from_pyval(np.arange(3), here)
    second = client.buffer_from_pyval(first, there)
    assert second.devices() == {there}
    assert second.unsafe_buffer_pointer() != first.unsafe_buffer_pointer()
    assert np.asarray(second).tolist() == [0, 1, 2]


def test_arrays_are_not_committed_to_their_device(client: Client) -> None:
    assert not client.buffer_from_pyval(1.0).committed
    assert not client.buffer_from_pyval(1.0, client.devices()[0]).committed


def test_an_int_beyond_64_bits(client: Client) -> None:
    with pytest.raises(XlaRuntimeError, match=r"value \(1180591620717411303424\) overflows"):
        client.buffer_from_pyval(2**70)
