"""`CApiArray`: an array in the memory of a plugin's device, and how it comes and goes."""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.ir.dtype import DType, dtype_from_numpy
from haloc.pjrt.abi import STRUCT, buffer_type_of, dtype_of_buffer_type
from haloc.pjrt.abi import HostBufferSemantics as Semantics
from haloc.pjrt.abi.memory import int64s, int64s_at
from haloc.pjrt.client.device import CApiDevice, CApiMemory
from haloc.pjrt.client.event import Event
from haloc.pjrt.client.plugin import Owned
from haloc.runtime.array_protocols import ArrayProtocols
from haloc.runtime.aval import ShapedArray

if TYPE_CHECKING:
    from haloc.pjrt.client.client import CApiClient

_TILED = 0


class CApiArray(ArrayProtocols):
    """An immutable array on one device. NumPy reads it (`np.asarray(x)`) from a copy on the host,
    made when it is first asked for."""

    def __init__(self, client: CApiClient, address: int):
        self.client = client
        self._handle = Owned(client.plugin, "Buffer", address, client.handle)
        self.address = address
        self._host: np.ndarray | None = None
        self.element_type: DType = dtype_of_buffer_type(self._ask("ElementType").type)
        args = self._ask("Dimensions")
        self.shape = int64s_at(args.dims, args.num_dims)
        # A token has no elements, and no dtype that NumPy knows.
        self.dtype = np.dtype(self.element_type.numpy or np.void)
        client.arrays.add(self)

    def _ask(self, function: str, **fields: Any) -> Any:
        return self.client.plugin.call(f"Buffer_{function}", buffer=self.address, **fields)

    # --- What it is -------------------------------------------------------------------------------

    @property
    def aval(self) -> ShapedArray:
        """Shape and dtype."""
        return ShapedArray(self.shape, self.dtype)

    @cached_property
    def memory(self) -> CApiMemory:
        return self.client.memory_at(self._ask("Memory").memory)

    @cached_property
    def device(self) -> CApiDevice:
        return self.client.device_at(self._ask("Device").device)

    def devices(self) -> set[CApiDevice]:
        return {self.device}

    def platform(self) -> str:
        return self.client.platform

    def on_device_size_in_bytes(self) -> int:
        """Bytes on the device, where elements may be packed or padded."""
        return self._ask("OnDeviceSizeInBytes").on_device_size_in_bytes

    def unsafe_buffer_pointer(self) -> int:
        """The address of the first element, in the device's memory."""
        return self._ask("UnsafePointer").buffer_pointer

    def is_on_cpu(self) -> bool:
        """Whether this process can read the memory."""
        return self._ask("IsOnCpu").is_on_cpu

    # --- Life -------------------------------------------------------------------------------------

    def ready_event(self) -> Event:
        """What is ready when the elements are."""
        return Event(self.client.plugin, self._ask("ReadyEvent").event)

    def block_until_ready(self) -> CApiArray:
        """Wait for the elements; raises the error of the execution that was to give them."""
        self._check_alive("BlockHostUntilReady")
        self.ready_event().wait()
        return self

    def is_ready(self) -> bool:
        """Whether `block_until_ready` would return, or raise, at once."""
        self._check_alive("IsReady")
        return self.ready_event().is_ready()

    def is_deleted(self) -> bool:
        """Whether it was deleted, or donated to an execution."""
        return self._ask("IsDeleted").is_deleted

    def delete(self) -> None:
        """Give the device's memory back. May be repeated."""
        self._host = None
        self._ask("Delete")

    def _check_alive(self, call: str) -> None:
        if self.is_deleted():
            raise InvalidArgumentError(f"{call}() called on deleted or donated buffer")

    # --- Elsewhere --------------------------------------------------------------------------------

    def copy_to_device(self, device: CApiDevice) -> CApiArray:
        """A copy in the default memory of a device of the same client."""
        return self.copy_to_memory(device.default_memory())

    def copy_to_memory(self, memory: CApiMemory) -> CApiArray:
        """A copy in a memory space of the same client."""
        if memory.client is not self.client:
            raise InvalidArgumentError(
                f"an array cannot be copied to {memory!r}, which belongs to another client"
            )
        return CApiArray(
            self.client, self._ask("CopyToMemory", dst_memory=memory.address).dst_buffer
        )

    def copy_to_host_async(self) -> None:
        """Copies are made when asked for: nothing is started."""
        self._check_alive("CopyToHostAsync")

    @property
    def _value(self) -> np.ndarray:
        """The elements in a read-only array of NumPy."""
        self._check_alive("ToLiteral")
        if self.element_type.numpy is None:
            raise InvalidArgumentError(f"a {self.element_type.name} has no elements to read")
        if self._host is None:
            self._host = self._fetched()
        return self._host

    def _fetched(self) -> np.ndarray:
        host = np.empty(self.shape, self.dtype)
        order = int64s(range(host.ndim)[::-1])
        layout = STRUCT["Buffer_MemoryLayout"].sized(type=_TILED)
        layout.tiled.struct_size = ctypes.sizeof(type(layout.tiled))
        layout.tiled.minor_to_major = ctypes.addressof(order)
        layout.tiled.minor_to_major_size = host.ndim
        args = self.client.plugin.call(
            "Buffer_ToHostBuffer",
            src=self.address,
            host_layout=ctypes.addressof(layout),
            dst=host.ctypes.data,
            dst_size=host.nbytes,
        )
        Event(self.client.plugin, args.event).wait()
        host.flags.writeable = False
        return host


def put(
    client: CApiClient, value: np.ndarray, memory: CApiMemory, semantics: Semantics
) -> CApiArray:
    """The array with NumPy's elements in a memory space.

    Where the semantics let the plugin read later than in the call, `value` is kept until it is
    done.
    """
    dense = np.ascontiguousarray(value).reshape(value.shape)
    dims = int64s(dense.shape)
    args = client.plugin.call(
        "Client_BufferFromHostBuffer",
        client=client.handle.address,
        data=dense.ctypes.data,
        type=buffer_type_of(dtype_from_numpy(dense.dtype)),
        dims=ctypes.addressof(dims),
        num_dims=dense.ndim,
        host_buffer_semantics=semantics,
        memory=memory.address,
    )
    done = Event(client.plugin, args.done_with_host_buffer)
    array = CApiArray(client, args.buffer)
    if semantics is not Semantics.IMMUTABLE_ONLY_DURING_CALL:
        done.on_ready(lambda error, held=dense: None)
    return array
