"""Host values to device arrays: which values are taken, and when memory is shared."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.ir.dtype import dtype_from_numpy
from haloc.ir.shape import Layout
from haloc.runtime.array import ArrayImpl
from haloc.runtime.array_spec import ArraySpec
from haloc.runtime.device import Memory
from haloc.runtime.memory_pool import ALIGNMENT_BYTES, HostBlock, MemoryPool
from haloc.runtime.single_device_array import AnyBlock, SingleDeviceArray, view_of


class HostBufferSemantics(Enum):
    """What the caller promises about a host buffer.

    ZERO_COPY: it will not change while the array lives, so the array is that memory where it can
    be: laid out as the array is to be (row-major by default), and 64-byte aligned as in jaxlib, or
    16-byte aligned and larger than 16 KB (NumPy's memory is). With the other two the memory is read
    during the call only: a copy.
    """

    IMMUTABLE_ONLY_DURING_CALL = 0
    IMMUTABLE_UNTIL_TRANSFER_COMPLETES = 1
    ZERO_COPY = 2

    def __repr__(self) -> str:
        return str(self)


_PYTHON_SCALARS = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}


def host_array(value: Any) -> np.ndarray:
    """The NumPy array of what `buffer_from_pyval` accepts, in native byte order, not yet copied.

    Python's int, float and complex become s64, f64 and c128. TypeError for None;
    InvalidArgumentError for lists, strings and other types, and for dtypes that HLO has not.
    """
    if type(value) is np.ndarray and value.dtype.isnative:
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if isinstance(value, np.ma.MaskedArray):
            raise InvalidArgumentError("Not supported: a masked array; fill it first (.filled())")
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        return array
    scalar = _PYTHON_SCALARS.get(type(value))
    if scalar is np.int64:
        try:
            return np.asarray(value, np.int64)
        except OverflowError:
            raise InvalidArgumentError(
                "Unable to convert Python scalar to S64. This most likely means the value "
                f"({value}) overflows the range of the type."
            ) from None
    if scalar is not None:
        return np.asarray(value, scalar)
    if value is None:
        raise TypeError("buffer_from_pyval: the value is None; wanted an array or a number")
    raise InvalidArgumentError(
        "Not supported: only haloc arrays, NumPy arrays and scalars, and Python scalars become "
        f"buffers. Got type {type(value)}"
    )


_DATA_FIELD = object.__basicsize__


def _data_pointer(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _peek_data_pointer(array: np.ndarray) -> int:
    # The address of the elements is the first field after the object header. Going through
    # `__array_interface__` takes longer than copying a small array.
    return ctypes.c_void_p.from_address(id(array) + _DATA_FIELD).value or 0


def _fastest_data_pointer() -> Callable[[np.ndarray], int]:
    """The peek where it gives what NumPy says: on CPython, so far."""
    if sys.implementation.name == "cpython":
        probes = (np.arange(3), np.arange(8.0)[::-2])
        if all(_peek_data_pointer(p) == _data_pointer(p) for p in probes):
            return _peek_data_pointer
    return _data_pointer


data_pointer = _fastest_data_pointer()
"""The address of an array's first element."""

_SMALL_BYTES = 16 * 1024

SHARED_ALIGNMENT_BYTES = 16
"""What memory that is shared needs. Kernels ask for an element's alignment only; 16 is what custom
calls may count on, and what `malloc`, so NumPy, gives."""


def host_block(array: np.ndarray, spec: ArraySpec, pool: MemoryPool, *, share: bool) -> AnyBlock:
    """The memory of a device array with `array`'s elements.

    That is the array's own memory when `share` holds, it lies as the spec's layout says, and it is
    aligned as the pool's blocks are, or enough for every kernel and library and too large to copy
    in no time; else a copy.
    """
    size_bytes = spec.size_bytes
    logical = array
    if spec.order is not None:  # row-major from here on
        array = array.transpose(spec.order)
    if share and size_bytes and array.flags.c_contiguous:
        pointer = data_pointer(array)
        enough = SHARED_ALIGNMENT_BYTES if size_bytes > _SMALL_BYTES else ALIGNMENT_BYTES
        if pointer % enough == 0:
            return HostBlock(array, pointer)
    block = pool.allocate(size_bytes)
    if size_bytes > _SMALL_BYTES:
        np.copyto(view_of(block, spec, read_only=False), logical)
    elif size_bytes:
        # Making a view to copy into takes longer than a second copy of so little.
        ctypes.memmove(block.pointer, array.tobytes(), size_bytes)
    return block


def put_in_memory(
    array: np.ndarray,
    memory: Memory,
    *,
    share: bool,
    committed: bool = True,
    layout: Layout | None = None,
) -> SingleDeviceArray:
    """An array of these elements in a memory space; not among the live arrays yet.

    layout: row-major by default. InvalidArgumentError for a dtype that HLO does not have.
    """
    if layout is not None:
        spec = memory.spec(dtype_from_numpy(array.dtype), array.shape, layout)
    else:
        known = memory.known_specs.get((array.dtype, array.shape))
        spec = known or memory.spec(dtype_from_numpy(array.dtype), array.shape)
        memory.known_specs[array.dtype, array.shape] = spec
    block = host_block(array, spec, memory.device.client.pool, share=share)
    return SingleDeviceArray(spec, block, committed)


def copy_to_memory(
    array: ArrayImpl, memory: Memory, *, share: bool, layout: Layout | None = None
) -> SingleDeviceArray:
    """An array with the same elements in a memory space; not among the live arrays yet.

    share: an array that is there already may be shared. layout: the array's own by default.
    """
    first, *others = array._live_shards()
    layout = layout or first._spec.layout
    if share and not others and first._spec is memory.spec(first._spec.dtype, array.shape, layout):
        return first._untracked(array._committed)
    committed = array._committed
    return put_in_memory(array._value, memory, share=False, committed=committed, layout=layout)
