"""Buffers whose elements come later, in pieces: AsyncHostToDeviceTransferManager."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.ir.dtype import DType
from haloc.pjrt.abi import STRUCT, dtype_of_buffer_type
from haloc.pjrt.native.handles import Handle
from haloc.pjrt.native.library import library
from haloc.pjrt.plugin.buffers import new_buffer, new_storage, place_of, storage_pointer
from haloc.pjrt.plugin.client import CLIENTS
from haloc.pjrt.plugin.entry import bytes_at, entry, int64s_at
from haloc.pjrt.plugin.events import has_happened, new_error


class _Coming:
    """One buffer of a manager: its memory, and the event of its being complete."""

    def __init__(self, dtype: DType, dims: tuple[int, ...]):
        self.dtype, self.dims = dtype, dims
        self.nbytes = int(np.prod(dims, dtype=np.int64)) * dtype.byte_size
        self.storage = new_storage(self.nbytes)
        self.event = library().call("event_create")
        self.is_retrieved = False

    def end(self, error: int = 0) -> None:
        if not library().call("event_set", self.event, error):
            library().call("error_free", error)
            raise InvalidArgumentError("the transfer to this buffer has ended before")

    def release(self) -> None:
        """Give up the manager's share; whoever waits for elements that never came is told."""
        if not has_happened(self.event):
            self.end(new_error(1, "the transfer manager was destroyed before its transfers ended"))
        library().call("storage_release", self.storage)
        library().call("event_release", self.event)


class _Manager:
    def __init__(self, place: tuple[int, int], coming: list[_Coming]):
        self.place = place
        self.coming = coming
        self.handle = Handle("AsyncHostToDeviceTransferManager")

    def at(self, number: int) -> _Coming:
        if not 0 <= number < len(self.coming):
            raise InvalidArgumentError(
                f"buffer_index {number}; the transfer manager has {len(self.coming)} buffers"
            )
        return self.coming[number]


_MANAGERS: dict[int, _Manager] = {}
_lock = threading.Lock()


@entry("Client_CreateBuffersForAsyncHostToDevice")
def create_buffers(args: Any) -> None:
    client = CLIENTS[args.client]
    kind = STRUCT["ShapeSpec"]
    coming = []
    at = args.shape_specs
    for _ in range(args.num_shape_specs):
        spec = kind.from_address(at)
        dims = int64s_at(spec.dims, spec.num_dims)
        coming.append(_Coming(dtype_of_buffer_type(spec.element_type), dims))
        at += ctypes.sizeof(kind)
    manager = _Manager(place_of(client, None, args.memory), coming)
    with _lock:
        _MANAGERS[manager.handle.address] = manager
    args.transfer_manager = manager.handle.address


@entry("AsyncHostToDeviceTransferManager_Destroy")
def destroy(args: Any) -> None:
    with _lock:
        manager = _MANAGERS.pop(args.transfer_manager)
    for coming in manager.coming:
        coming.release()


@entry("AsyncHostToDeviceTransferManager_TransferData")
def transfer_data(args: Any) -> None:
    coming = _MANAGERS[args.transfer_manager].at(args.buffer_index)
    end = args.offset + args.transfer_size
    if args.offset < 0 or args.transfer_size < 0 or end > coming.nbytes:
        raise InvalidArgumentError(
            f"TransferData: bytes {args.offset} to {end} of a buffer of {coming.nbytes}"
        )
    ctypes.memmove(storage_pointer(coming.storage) + args.offset, args.data, args.transfer_size)
    args.done_with_h2d_transfer = library().call("ready_event")
    if args.is_last_transfer:
        coming.end()


@entry("AsyncHostToDeviceTransferManager_TransferLiteral")
def transfer_literal(args: Any) -> None:
    coming = _MANAGERS[args.transfer_manager].at(args.buffer_index)
    dtype = dtype_of_buffer_type(args.shape_element_type)
    dims = int64s_at(args.shape_dims, args.shape_num_dims)
    if (dtype, dims) != (coming.dtype, coming.dims):
        raise InvalidArgumentError(
            f"TransferLiteral of {dtype.name}{list(dims)} to a buffer of "
            f"{coming.dtype.name}{list(coming.dims)}"
        )
    ctypes.memmove(storage_pointer(coming.storage), args.data, coming.nbytes)
    args.done_with_h2d_transfer = library().call("ready_event")
    coming.end()


@entry("AsyncHostToDeviceTransferManager_RetrieveBuffer")
def retrieve_buffer(args: Any) -> None:
    manager = _MANAGERS[args.transfer_manager]
    coming = manager.at(args.buffer_index)
    if coming.is_retrieved:
        raise InvalidArgumentError(f"buffer {args.buffer_index} has been retrieved before")
    coming.is_retrieved = True
    native = library()
    native.call("storage_retain", coming.storage)
    native.call("event_retain", coming.event)
    made = new_buffer(coming.dtype, coming.dims, coming.storage, *manager.place)
    native.call("buffer_await", made, coming.event)
    args.buffer_out = made


@entry("AsyncHostToDeviceTransferManager_Device")
def device(args: Any) -> None:
    args.device_out = _MANAGERS[args.transfer_manager].place[0]


@entry("AsyncHostToDeviceTransferManager_BufferCount")
def buffer_count(args: Any) -> None:
    args.buffer_count = len(_MANAGERS[args.transfer_manager].coming)


@entry("AsyncHostToDeviceTransferManager_BufferSize")
def buffer_size(args: Any) -> None:
    args.buffer_size = _MANAGERS[args.transfer_manager].at(args.buffer_index).nbytes


@entry("AsyncHostToDeviceTransferManager_SetBufferError")
def set_buffer_error(args: Any) -> None:
    message = bytes_at(args.error_message, args.error_message_size).decode(errors="replace")
    coming = _MANAGERS[args.transfer_manager].at(args.buffer_index)
    coming.end(new_error(args.error_code, message))
