"""Buffers as Python sees them: what the native functions leave to it."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from haloc.analysis.memory import packed_size_bytes
from haloc.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError
from haloc.ir.dtype import DType
from haloc.pjrt.abi import (
    STRUCT,
    buffer_type_of,
    dtype_of_buffer_type,
)
from haloc.pjrt.abi.memory import int64s
from haloc.pjrt.native.buffers import slot
from haloc.pjrt.native.library import library
from haloc.pjrt.plugin.client import CLIENTS, PluginClient
from haloc.pjrt.plugin.entry import bytes_at, entry, int64s_at
from haloc.pjrt.plugin.events import failed_event, wait_for

_TILED = 0


class Buffer:
    """A view of the buffer at an address."""

    def __init__(self, address: int):
        self.address = address

    def _slot(self, name: str) -> int:
        return ctypes.c_int64.from_address(self.address + slot(name)).value

    @property
    def dtype(self) -> DType:
        return dtype_of_buffer_type(self._slot("type"))

    @property
    def dims(self) -> tuple[int, ...]:
        return int64s_at(self._slot("dims"), self._slot("num_dims"))

    @property
    def storage(self) -> int:
        return self._slot("storage")

    @property
    def references(self) -> int:
        """Of the memory: buffers that share it, and views outside."""
        return ctypes.c_int64.from_address(self.storage).value

    @property
    def is_own(self) -> bool:
        """The memory is the heap's, not somebody else's."""
        return ctypes.c_int64.from_address(self.storage + 16).value != 0

    @property
    def is_deleted(self) -> bool:
        return bool(self._slot("is_deleted"))

    @property
    def pointer(self) -> int:
        """Of its elements, once it has them: waits. Raises the error it has instead."""
        self.check_alive()
        wait_for(self.event)
        return self._slot("data")

    @property
    def nbytes(self) -> int:
        return self._slot("nbytes")

    @property
    def device(self) -> int:
        return self._slot("device")

    @property
    def memory(self) -> int:
        return self._slot("memory")

    @property
    def event(self) -> int:
        return self._slot("event")

    def check_alive(self) -> None:
        if self.is_deleted:
            raise InvalidArgumentError("Invalid buffer passed: buffer has been deleted or donated.")

    def as_array(self) -> np.ndarray:
        """A view of the memory."""
        return array_at(self.pointer, self.dtype, self.dims)


def array_at(pointer: int, dtype: DType, dims: tuple[int, ...]) -> np.ndarray:
    numpy_dtype = np.dtype(dtype.numpy)  # type: ignore[arg-type]
    nbytes = int(np.prod(dims, dtype=np.int64)) * numpy_dtype.itemsize
    if not nbytes:
        return np.empty(dims, numpy_dtype)
    memory = (ctypes.c_ubyte * nbytes).from_address(pointer)
    return np.frombuffer(memory, np.uint8).view(numpy_dtype).reshape(dims)


def new_storage(nbytes: int) -> int:
    storage = library().call("storage_allocate", nbytes)
    if not storage:
        raise ResourceExhaustedError(f"Out of memory while trying to allocate {nbytes} bytes.")
    return storage


def storage_pointer(storage: int) -> int:
    return ctypes.c_uint64.from_address(storage + 8).value


def new_buffer(dtype: DType, dims: tuple[int, ...], storage: int, device: int, memory: int) -> int:
    """The address of a buffer that takes over one reference to the storage."""
    count = int(np.prod(dims, dtype=np.int64))
    nbytes = count * dtype.byte_size
    packed = packed_size_bytes(dtype, count)
    array = int64s(dims)
    return library().call(
        "buffer_create",
        buffer_type_of(dtype),
        len(dims),
        ctypes.addressof(array),
        nbytes,
        packed,
        storage,
        device,
        memory,
    )


def place_of(client: PluginClient, device: int | None, memory: int | None) -> tuple[int, int]:
    """Handles of the device and the memory that a caller means who names one of them."""
    if memory:
        owner = client.memory_of[memory].device
        device = next(a for a, d in client.device_of.items() if d is owner)
        return device, memory
    if not device:
        device = client.devices[0].address
    return device, next(h for h in client.devices if h.address == device).get("memory")


def _check_layout(pointer: int | None, rank: int, what: str) -> tuple[int, ...]:
    """Minor-to-major order that a PJRT_Buffer_MemoryLayout asks for."""
    if not pointer:
        return tuple(reversed(range(rank)))
    layout = STRUCT["Buffer_MemoryLayout"].from_address(pointer)
    if layout.type != _TILED or layout.tiled.num_tiles:
        raise UnimplementedError(f"{what}: tiles and strides are not supported as a layout")
    return int64s_at(layout.tiled.minor_to_major, layout.tiled.minor_to_major_size)


def _check_row_major(pointer: int | None, rank: int, what: str) -> None:
    order = _check_layout(pointer, rank, what)
    if order != tuple(reversed(range(rank))):
        raise UnimplementedError(f"{what}: minor_to_major {order}; arrays are row-major")


@entry("Client_BufferFromHostBuffer")
def buffer_from_host(args: Any) -> None:
    client = CLIENTS[args.client]
    dtype = dtype_of_buffer_type(args.type)
    if dtype.numpy is None:
        raise InvalidArgumentError(f"a host buffer cannot be a {dtype.name}")
    dims = int64s_at(args.dims, args.num_dims)
    _check_row_major(args.device_layout, len(dims), "BufferFromHostBuffer(device_layout)")
    device, memory = place_of(client, args.device, args.memory)
    numpy_dtype = np.dtype(dtype.numpy)
    storage = new_storage(int(np.prod(dims, dtype=np.int64)) * numpy_dtype.itemsize)
    target = array_at(storage_pointer(storage), dtype, dims)
    if target.size:
        strides = int64s_at(args.byte_strides, args.num_byte_strides)
        np.copyto(target, _strided(args.data, numpy_dtype, dims, strides))
    args.done_with_host_buffer = library().call("ready_event")
    args.buffer = new_buffer(dtype, dims, storage, device, memory)


def _strided(
    data: int, dtype: np.dtype, dims: tuple[int, ...], strides: tuple[int, ...]
) -> np.ndarray:
    """Host memory seen by its strides, in bytes, which may be negative or zero."""
    if not strides:
        return array_at_bytes(data, dtype, dims)
    reach = [(n - 1) * s for n, s in zip(dims, strides)]
    low = sum(r for r in reach if r < 0)
    high = sum(r for r in reach if r > 0) + dtype.itemsize
    memory = (ctypes.c_ubyte * (high - low)).from_address(data + low)
    return np.ndarray(dims, dtype, memory, -low, strides)


def array_at_bytes(data: int, dtype: np.dtype, dims: tuple[int, ...]) -> np.ndarray:
    count = int(np.prod(dims, dtype=np.int64)) * dtype.itemsize
    return np.ndarray(dims, dtype, (ctypes.c_ubyte * count).from_address(data))


@entry("Buffer_ToHostBuffer")
def buffer_to_host(args: Any) -> None:
    buffer = Buffer(args.src)
    array = buffer.as_array()
    order = _check_layout(args.host_layout, array.ndim, "ToHostBuffer(host_layout)")
    if not args.dst:
        args.dst_size = array.nbytes
        return
    if args.dst_size < array.nbytes:
        raise InvalidArgumentError(
            f"ToHostBuffer: dst has {args.dst_size} bytes, the array {array.nbytes}"
        )
    arranged = np.ascontiguousarray(array.transpose(order[::-1]))
    ctypes.memmove(args.dst, arranged.ctypes.data, array.nbytes)
    args.event = library().call("ready_event")


@entry("Buffer_CopyToMemory")
def buffer_copy_to_memory(args: Any) -> None:
    args.dst_buffer = _copy(Buffer(args.buffer), None, args.dst_memory)


@entry("Buffer_CopyToDevice")
def buffer_copy_to_device(args: Any) -> None:
    args.dst_buffer = _copy(Buffer(args.buffer), args.dst_device, None)


def _copy(buffer: Buffer, device: int | None, memory: int | None) -> int:
    client = next(c for c in CLIENTS.values() if buffer.device in c.device_of)
    place = place_of(client, device, memory)
    storage = new_storage(buffer.nbytes)
    ctypes.memmove(storage_pointer(storage), buffer.pointer, buffer.nbytes)
    return new_buffer(buffer.dtype, buffer.dims, storage, *place)


@entry("Buffer_CopyRawToHost")
def buffer_copy_raw_to_host(args: Any) -> None:
    buffer = Buffer(args.buffer)
    end = args.offset + args.transfer_size
    if args.offset < 0 or args.transfer_size < 0 or end > buffer.nbytes:
        raise InvalidArgumentError(
            f"CopyRawToHost: bytes {args.offset} to {end} of a buffer of {buffer.nbytes}"
        )
    ctypes.memmove(args.dst, buffer.pointer + args.offset, args.transfer_size)
    args.event = library().call("ready_event")


@entry("Buffer_Bitcast")
def buffer_bitcast(args: Any) -> None:
    """The same memory as an array of another type."""
    buffer = Buffer(args.buffer)
    dtype = dtype_of_buffer_type(args.element_type)
    dims = int64s_at(args.dims, args.num_dims)
    _check_row_major(args.device_layout, len(dims), "Bitcast(device_layout)")
    nbytes = int(np.prod(dims, dtype=np.int64)) * dtype.byte_size
    if nbytes != buffer.nbytes:
        raise InvalidArgumentError(
            f"Bitcast of {buffer.dtype.name}{list(buffer.dims)} ({buffer.nbytes} bytes) to "
            f"{dtype.name}{list(dims)} ({nbytes} bytes)"
        )
    buffer.check_alive()
    wait_for(buffer.event)
    library().call("storage_retain", buffer.storage)
    args.out_buffer = new_buffer(dtype, dims, buffer.storage, buffer.device, buffer.memory)


@entry("Client_CreateErrorBuffer")
def create_error_buffer(args: Any) -> None:
    """A buffer that has an error in place of a value."""
    message = bytes_at(args.error_message, args.error_message_size).decode(errors="replace")
    dtype = dtype_of_buffer_type(args.shape_element_type)
    dims = int64s_at(args.shape_dims, args.shape_num_dims)
    place = place_of(CLIENTS[args.client], None, args.memory)
    count = int(np.prod(dims, dtype=np.int64))
    made = new_buffer(dtype, dims, new_storage(count * dtype.byte_size), *place)
    library().call("buffer_await", made, failed_event(args.error_code, message))
    args.buffer = made


@entry("Client_CreateUninitializedBuffer")
def create_uninitialized_buffer(args: Any) -> None:
    dtype = dtype_of_buffer_type(args.shape_element_type)
    dims = int64s_at(args.shape_dims, args.shape_num_dims)
    place = place_of(CLIENTS[args.client], args.device, args.memory)
    count = int(np.prod(dims, dtype=np.int64))
    storage = new_storage(count * np.dtype(dtype.numpy).itemsize)  # type: ignore[arg-type]
    args.buffer = new_buffer(dtype, dims, storage, *place)


@entry("Client_CreateViewOfDeviceBuffer")
def create_view(args: Any) -> None:
    dtype = dtype_of_buffer_type(args.element_type)
    dims = int64s_at(args.dims, args.num_dims)
    _check_row_major(args.layout, len(dims), "CreateViewOfDeviceBuffer(layout)")
    memory = args.memory if args.has("memory") else None
    place = place_of(CLIENTS[args.client], args.device, memory)
    # The deleter of a view is told (pointer, argument); a storage knows one argument.
    native = library()
    notice = native.call(
        "notice_create",
        args.device_buffer_ptr or 0,
        args.on_delete_callback or 0,
        args.on_delete_callback_arg or 0,
    )
    storage = native.call(
        "storage_create", args.device_buffer_ptr or 0, 0, native.address("notice_deliver"), notice
    )
    args.buffer = new_buffer(dtype, dims, storage, *place)
