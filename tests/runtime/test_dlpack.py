"""DLPack with torch and NumPy: types, sharing, who may write."""

from __future__ import annotations

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import haloc
from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.xla_client import (
    ArrayImpl,
    buffer_to_dlpack_managed_tensor,
    dlpack_managed_tensor_to_buffer,
    make_interpreter_client,
)

torch = pytest.importorskip("torch")

CLIENT = make_interpreter_client()
DEVICE = CLIENT.devices()[0]

TORCH_TYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
]  # fmt: skip


def put(value: object, dtype: object = None) -> ArrayImpl:
    return CLIENT.buffer_from_pyval(np.asarray(value, dtype), force_copy=True)


def numpy_type(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


@pytest.mark.parametrize("name", TORCH_TYPES)
def test_torch_and_back(name: str) -> None:
    array = put(np.array([[1, 0], [1, 1]]), numpy_type(name))
    tensor = torch.from_dlpack(array)
    assert tensor.dtype is getattr(torch, name)
    assert tensor.data_ptr() == array.unsafe_buffer_pointer()
    values = tensor.to(torch.complex128).numpy()
    np.testing.assert_array_equal(values, np.asarray(array).astype(np.complex128))
    again = haloc.from_dlpack(tensor, device=DEVICE)
    assert again.dtype == array.dtype
    assert again.unsafe_buffer_pointer() == array.unsafe_buffer_pointer()
    assert np.asarray(again).tobytes() == np.asarray(array).tobytes()


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"])
def test_sub_byte_types_cross_padded(name: str) -> None:
    array = put(np.array([1, 0, 1]), numpy_type(name))
    again = haloc.from_dlpack(array, device=DEVICE)
    assert again.dtype == array.dtype
    assert np.array_equal(np.asarray(again), np.asarray(array))
    with pytest.raises(UnimplementedError, match="has no DLPack equivalent"):
        array.__dlpack__()


def test_the_array_keeps_torchs_memory_alive() -> None:
    tensor = torch.arange(1000.0)
    pointer = tensor.data_ptr()
    array = haloc.from_dlpack(tensor, device=DEVICE)
    del tensor
    assert array.unsafe_buffer_pointer() == pointer
    assert np.asarray(array)[-1] == 999


def test_torch_keeps_the_arrays_memory_alive() -> None:
    array = put(np.arange(1000.0))
    tensor = torch.from_dlpack(array)
    array.delete()
    del array
    assert tensor[-1] == 999


def test_a_capsule_that_nobody_reads_lets_go() -> None:
    array = put(np.zeros(1 << 18))
    pointer = array.unsafe_buffer_pointer()
    array.__dlpack__()
    array.delete()
    assert put(np.zeros(1 << 18)).unsafe_buffer_pointer() == pointer


def test_new_capsules_are_read_only() -> None:
    array = put(np.arange(3.0))
    assert not np.from_dlpack(array).flags.writeable
    assert np.from_dlpack(array, copy=True).flags.writeable


def test_strides_and_offsets() -> None:
    tensor = torch.arange(24.0).reshape(4, 6)
    for view in (tensor.T, tensor[::2, 1::2], tensor[1:], tensor[:0]):
        array = haloc.from_dlpack(view, device=DEVICE)
        assert np.array_equal(np.asarray(array), view.numpy())
    with pytest.raises(BufferError, match="cannot be shared"):
        haloc.from_dlpack(tensor[:, ::2], device=DEVICE, copy=False)
    copied = haloc.from_dlpack(tensor, device=DEVICE, copy=True)
    assert copied.unsafe_buffer_pointer() != tensor.data_ptr()


def test_onto_the_default_device() -> None:
    array = haloc.from_dlpack(np.arange(3))
    assert array.device.platform == "cpu"
    assert np.asarray(array).tolist() == [0, 1, 2]


def test_jaxlibs_functions() -> None:
    capsule = buffer_to_dlpack_managed_tensor(put([1.5, 2.5]))
    array = dlpack_managed_tensor_to_buffer(capsule, DEVICE, None)
    assert np.asarray(array).tolist() == [1.5, 2.5]
    with pytest.raises(InvalidArgumentError, match='got "used_dltensor"'):
        dlpack_managed_tensor_to_buffer(capsule, DEVICE, None)
    capsule = np.arange(3).__dlpack__()
    assert dlpack_managed_tensor_to_buffer(capsule, CLIENT).device is DEVICE


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda: put(1.0).__dlpack__(stream=1), BufferError, "a CPU has no streams"),
        (lambda: put(1.0).__dlpack__(dl_device=(2, 0)), BufferError, "is in CPU memory"),
        (lambda: haloc.from_dlpack(3), TypeError, "a int has no __dlpack__"),
        (lambda: dlpack_managed_tensor_to_buffer(3, DEVICE), TypeError, "is a PyCapsule, not"),
        (
            lambda: dlpack_managed_tensor_to_buffer(np.arange(3).__dlpack__(), "cpu"),
            TypeError,
            "device is a str",
        ),
        (lambda: buffer_to_dlpack_managed_tensor(np.arange(3)), TypeError, "not an array"),
    ],
)
def test_wrong_calls(use, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        use()


def test_tensors_alive_at_exit_do_no_harm() -> None:
    script = (
        "import numpy as np, torch, haloc\n"
        "from haloc import xla_client\n"
        "client = xla_client.make_interpreter_client()\n"
        "t = torch.from_dlpack(client.buffer_from_pyval(np.arange(5.0)))\n"
        "a = haloc.from_dlpack(torch.arange(5.0), device=client.devices()[0])\n"
        "capsule = a.__dlpack__()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
