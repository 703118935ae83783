"""Devices and their memory spaces, as a client hands them out."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.interpreter.arguments import fitted
from haloc.ir.dtype import DType
from haloc.ir.shape import Layout, default_layout
from haloc.runtime.array_spec import ArraySpec
from haloc.runtime.memory_pool import memory_limit_bytes

if TYPE_CHECKING:
    from haloc.runtime.array import ArrayImpl
    from haloc.runtime.client import Client
    from haloc.runtime.device_queues import Task
    from haloc.runtime.sharding import SingleDeviceSharding
    from haloc.runtime.xla_shape import XlaShape

MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")
"""On a CPU all three are the same host memory."""

_MEMORY_CLASSES = {
    "device": "CpuDeviceMemory",
    "pinned_host": "PinnedHostMemory",
    "unpinned_host": "UnpinnedHostMemorySpace",
}
"""PJRT's names, which people see in `str(memory)`."""

_SPECS_KEPT = 1 << 16
"""A forgotten spec costs its arrays a slower check when they become arguments, nothing else."""


class Memory:
    """One memory space of one device. Compared by identity."""

    def __init__(self, device: Device, kind: str, id: int):
        self.kind = kind
        self.id = id
        self.device = device
        self._specs: dict[tuple[DType, tuple[int, ...], Layout | None], ArraySpec] = {}
        self.known_specs: dict[tuple[np.dtype[Any], tuple[int, ...]], ArraySpec] = {}
        """The row-major specs by NumPy dtype, for types that were found to be HLO's."""
        self.sharding: SingleDeviceSharding | None = None
        """Of the arrays here, once asked for."""

    def spec(self, dtype: DType, dims: tuple[int, ...], layout: Layout | None = None) -> ArraySpec:
        """The one spec of arrays of this type, these dimensions and this layout (default:
        row-major) in this memory."""
        if layout is not None and layout == default_layout(len(dims)):
            layout = None
        key = (dtype, dims, layout)
        found = self._specs.get(key)
        if found is None:
            if len(self._specs) >= _SPECS_KEPT:
                self._specs.clear()
                self.known_specs.clear()
            found = self._specs.setdefault(key, ArraySpec(self, dtype, dims, layout))
        return found

    @property
    def platform(self) -> str:
        return self.device.platform

    @property
    def process_index(self) -> int:
        return self.device.process_index

    def addressable_by_devices(self) -> list[Device]:
        return [self.device]

    def __repr__(self) -> str:
        return f"{self.kind.upper() if self.kind != 'device' else 'CPU_DEVICE'}_{self.id}"

    def __str__(self) -> str:
        return (
            f"{_MEMORY_CLASSES[self.kind]}(id={self.id}, process_index={self.process_index}, "
            f"client={self.platform})"
        )


class Device:
    """One device of a client. The same object for as long as the client lives; compared by
    identity."""

    def __init__(self, client: Client, id: int, local_hardware_id: int):
        self.client = client
        self.id = id
        self.local_hardware_id = local_hardware_id
        self.process_index = client.process_index()
        self.queue: deque[Task] = deque()
        """What it has to do, that which it does first; see `haloc.runtime.device_queues`."""
        first_memory = len(MEMORY_KINDS) * local_hardware_id
        self._memories = [Memory(self, k, first_memory + i) for i, k in enumerate(MEMORY_KINDS)]
        self.spec = self._memories[0].spec
        """`spec(dtype, dims, layout)` of the arrays in the default memory."""
        self.known_specs = self._memories[0].known_specs

    @property
    def platform(self) -> str:
        return self.client.platform

    @property
    def device_kind(self) -> str:
        return self.client.platform

    @property
    def host_id(self) -> int:
        return self.process_index

    @property
    def task_id(self) -> int:
        return self.process_index

    def addressable_memories(self) -> list[Memory]:
        return list(self._memories)

    def default_memory(self) -> Memory:
        return self._memories[0]

    def memory(self, kind: str) -> Memory:
        """The memory space of this kind; InvalidArgumentError listing the kinds there are."""
        for memory in self._memories:
            if memory.kind == kind:
                return memory
        raise InvalidArgumentError(
            f"Could not find memory addressable by device {self.device_kind}. Device "
            f"{self.device_kind} can address the following memory kinds: "
            f"{', '.join(MEMORY_KINDS)}. Got memory kind: {kind}"
        )

    def transfer_to_infeed(self, value: Any) -> None:
        """Queue an array, or a tuple of arrays (NumPy's, of the shape that the program's next
        infeed on this device has)."""
        self.client.transfers.transfer_to_infeed(_literal(value), self.local_hardware_id or 0)

    def transfer_from_outfeed(self, shape: XlaShape) -> Any:
        """The next value that a program's outfeed on this device gives: an array of NumPy or a
        tuple of them. Waits for it; DeadlineExceededError when it does not come.
        InvalidArgumentError when it is not of `shape`."""
        value = self.client.transfers.transfer_from_outfeed(self.local_hardware_id or 0)
        return fitted(value, shape.ir, "what the program gives to outfeed")

    def memory_stats(self) -> dict[str, int]:
        """Sizes in bytes, by the names that GPU allocators use.

        bytes_in_use, largest_alloc_size: of the arrays that live on this device, memory that
        several share once. bytes_limit: the memory there is. pool_bytes, peak_pool_bytes: what the
        client has got from the system for all its devices, scratch and free memory included.
        (jaxlib has no statistics of CPUs: None.)
        """
        blocks = {}
        for array in self.client.live_arrays():
            for shard in array._arrays or ():
                block = shard._block
                if block is not None and shard.device is self:
                    blocks[block.pointer] = block.size_bytes
        pool = self.client.pool
        return {
            "bytes_in_use": sum(blocks.values()),
            "largest_alloc_size": max(blocks.values(), default=0),
            "bytes_limit": memory_limit_bytes(),
            "pool_bytes": pool.held_bytes,
            "peak_pool_bytes": pool.peak_held_bytes,
        }

    def live_buffers(self) -> list[ArrayImpl]:
        """The arrays on this device, newest first."""
        return [a for a in self.client.live_arrays() if self in a.sharding.device_set]

    def get_stream_for_external_ready_events(self) -> int:
        raise UnimplementedError(
            "PjRtDevice::GetStreamForExternalReadyEvents only implemented for GPU"
        )

    def __reduce__(self) -> str:
        raise TypeError(f"cannot pickle {self!r}: a device belongs to a client of this process")

    def __copy__(self) -> Device:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Device:
        return self

    def __repr__(self) -> str:
        return f"{self._type_name}(id={self.id})"

    def __str__(self) -> str:
        return f"TFRT_CPU_{self.id}" if self.platform == "cpu" else repr(self)

    @property
    def _type_name(self) -> str:
        return f"{self.platform.capitalize()}Device"


def _literal(value: Any) -> Any:
    """An array or tuple of arrays with memory of its own."""
    if isinstance(value, tuple | list):
        return tuple(map(_literal, value))
    return np.array(value)
