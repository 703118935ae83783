"""DLPack, both ways: memory shared with torch, NumPy and others.

NumPy makes and reads the capsules. It has no words for bfloat16, float8 and sub-byte types, so
those cross as unsigned integers of the same size, and the type is written into the capsule behind
NumPy's back (or read before NumPy sees it). One byte holds one sub-byte element, as in haloc, which
DLPack 1.0 calls padded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.ir.dtype import DType, dtype_from_name, dtype_from_numpy

K_DL_CPU = 1

_UINT, _FLOAT_CODES = 1, {
    "bf16": 4,
    "f8e3m4": 7,
    "f8e4m3": 8,
    "f8e4m3b11fnuz": 9,
    "f8e4m3fn": 10,
    "f8e4m3fnuz": 11,
    "f8e5m2": 12,
    "f8e5m2fnuz": 13,
    "f8e8m0fnu": 14,
    "f4e2m1fn": 17,
}  # fmt: skip
_INTEGER_CODES = {"s4": 0, "s2": 0, "u4": 1, "u2": 1}
_CODES = {dtype_from_name(n): c for n, c in (_FLOAT_CODES | _INTEGER_CODES).items()}
"""DLPack's type codes of the element types that NumPy does not write."""

_TYPES = {(code, dtype.bits): dtype for dtype, code in _CODES.items()}

_PADDED_SUB_BYTE = 4
"""The flag of DLPack 1.1: each sub-byte element has a byte of its own."""


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_get_name = ctypes.pythonapi.PyCapsule_GetName
_get_name.restype, _get_name.argtypes = ctypes.c_char_p, (ctypes.py_object,)
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)


@contextmanager
def _opened(capsule: Any) -> Iterator[tuple[_Tensor, _Versioned | None]]:
    """The tensor in a capsule, and the versioned struct around it if it has one."""
    if type(capsule).__name__ != "PyCapsule":
        raise TypeError(f"a DLPack tensor is a PyCapsule, not a {type(capsule).__name__}")
    name = _get_name(capsule) or b""
    if name not in (b"dltensor", b"dltensor_versioned"):
        raise InvalidArgumentError(
            f'DLPack tensor must be a capsule with name "dltensor", got "{name.decode()}". Note '
            "that a DLPack tensor may be consumed at most once."
        )
    address = _get_pointer(capsule, name)
    if name == b"dltensor":
        yield _Tensor.from_address(address), None
    else:
        versioned = _Versioned.from_address(address)
        yield versioned.tensor, versioned


# --- Out ----------------------------------------------------------------------------------------


def to_capsule(
    value: np.ndarray,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A capsule of an array's memory, with the arguments of `__dlpack__`.

    max_version: of (1, 0) or more: the capsule is versioned and says whether it is read-only. An
    older one cannot: then `value` must be writable for NumPy, and consumers must not write.
    UnimplementedError for an element type that DLPack, or its old version, has no word for;
    BufferError for a device or stream that is not the CPU's.
    """
    if stream is not None:
        raise BufferError(f"__dlpack__(stream={stream!r}): a CPU has no streams")
    if dl_device is not None and tuple(dl_device) != (K_DL_CPU, 0):
        raise BufferError(f"__dlpack__(dl_device={dl_device}): the array is in CPU memory, (1, 0)")
    dtype = dtype_from_numpy(value.dtype)
    is_versioned = max_version is not None and max_version[0] >= 1
    if dtype.bits < 8 and not dtype.is_pred and not is_versioned:
        raise UnimplementedError(f"XLA type {dtype.name.upper()} has no DLPack equivalent")
    version = {"max_version": max_version} if is_versioned else {}
    code = _CODES.get(dtype)
    carried = value if code is None else value.view(f"u{dtype.byte_size}")
    capsule = carried.__dlpack__(copy=copy, **version)
    if code is not None:
        with _opened(capsule) as (tensor, versioned):
            tensor.code, tensor.bits = code, dtype.bits
            if versioned is not None and dtype.bits < 8:
                versioned.flags |= _PADDED_SUB_BYTE
    return capsule


# --- In -----------------------------------------------------------------------------------------


class _Carrier:
    """A capsule as NumPy wants it."""

    def __init__(self, capsule: Any):
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (K_DL_CPU, 0)


def from_capsule(capsule: Any) -> np.ndarray:
    """The memory in a capsule as a NumPy array, which keeps it alive; the capsule is used up.

    TypeError for what is no capsule, InvalidArgumentError for one that is used up or in another
    device's memory, UnimplementedError for element types that haloc does not have.
    """
    with _opened(capsule) as (tensor, versioned):
        if tensor.device.type != K_DL_CPU:
            raise InvalidArgumentError(
                f"a DLPack tensor on device type {tensor.device.type} cannot be read; wanted CPU "
                f"memory ({K_DL_CPU})"
            )
        dtype = _foreign_type(tensor, versioned)
        if dtype is not None:
            tensor.code, tensor.bits = _UINT, 8 * dtype.byte_size
    value = np.from_dlpack(_Carrier(capsule))
    return value if dtype is None else value.view(dtype.numpy)


def _foreign_type(tensor: _Tensor, versioned: _Versioned | None) -> DType | None:
    """The element type if NumPy cannot read it."""
    dtype = _TYPES.get((tensor.code, tensor.bits))
    is_padded = versioned is not None and bool(versioned.flags & _PADDED_SUB_BYTE)
    packs = tensor.bits < 8 and tensor.bits > 1 and not is_padded
    if tensor.lanes != 1 or packs or (dtype is None and tensor.code not in (0, 1, 2, 5, 6)):
        raise UnimplementedError(
            f"a DLPack tensor of type code {tensor.code}, {tensor.bits} bits, {tensor.lanes} "
            "lane(s) cannot be read"
        )
    return dtype
