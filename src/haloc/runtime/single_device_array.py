"""Arrays in one memory space of one device, and their memory as NumPy sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from haloc.analysis.memory import packed_size_bytes
from haloc.errors import InvalidArgumentError
from haloc.runtime import traceback
from haloc.runtime.array import ArrayImpl, deleted_error, refuse_other_aval
from haloc.runtime.array_spec import ArraySpec
from haloc.runtime.aval import ShapedArray
from haloc.runtime.dlpack import to_capsule
from haloc.runtime.memory_pool import Block, HostBlock, array_interface
from haloc.runtime.pending import Pending
from haloc.runtime.sharding.single_device import sharding_of

if TYPE_CHECKING:
    from haloc.runtime.client import Client
    from haloc.runtime.device import Device, Memory

AnyBlock: TypeAlias = "Block | HostBlock"


class SingleDeviceArray(ArrayImpl):
    """An array in one memory space of one device.

    A `pending` array's memory is still being written; whatever reads it waits, and gets the error
    of the work that failed to write it.
    """

    __slots__ = ("_block", "_pending", "_spec")

    def __init__(
        self,
        spec: ArraySpec,
        block: AnyBlock,
        committed: bool = True,
        pending: Pending | None = None,
    ):
        self._spec = spec
        self._block: AnyBlock | None = block
        self._pending = pending
        self._committed = committed
        self._npy_value: np.ndarray | None = None
        if traceback.of_arrays:
            self._traceback = traceback.captured()

    # --- What it is -------------------------------------------------------------------------------

    @property
    def aval(self) -> ShapedArray:
        """Shape and dtype."""
        return ShapedArray(self._spec.dims, self._spec.numpy_dtype)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self._spec.dims

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self._spec.numpy_dtype

    @property
    def sharding(self) -> Any:
        """The `SingleDeviceSharding` of its memory space."""
        return sharding_of(self._spec.memory)

    _sharding = sharding  # type: ignore[assignment]  # the slot's place

    @property
    def device(self) -> Device:
        self._live_block()
        return self._spec.device

    @property
    def client(self) -> Client:
        return self._spec.device.client

    @property
    def memory(self) -> Memory:
        return self._spec.memory

    def on_device_size_in_bytes(self) -> int:
        """Bytes of the elements, two 4-bit and four 2-bit ones to the byte, as XLA counts."""
        self._live_block("GetOnDeviceSizeInBytes")
        return packed_size_bytes(self._spec.dtype, self.size)

    def unsafe_buffer_pointer(self) -> int:
        """Address of the first element. haloc keeps one sub-byte element to the byte."""
        return self._ready_block("UnsafeBufferPointer").pointer

    @property
    def _arrays(self) -> list[SingleDeviceArray] | None:
        """[itself]; None after deletion."""
        return None if self._block is None else [self]

    def _live_shards(self, asked: str = "") -> list[SingleDeviceArray]:
        self._live_block(asked)
        return [self]

    # --- Life -------------------------------------------------------------------------------------

    def block_until_ready(self) -> SingleDeviceArray:
        self._ready_block("BlockHostUntilReady")
        return self

    def is_ready(self) -> bool:
        """Whether `block_until_ready` would return, or raise, at once."""
        self._live_block("IsReady")
        pending = self._pending
        return pending is None or pending.done()

    def is_deleted(self) -> bool:
        return self._block is None

    def delete(self) -> None:
        """Give the memory back, unless NumPy views, clones or a run still use it. May be
        repeated."""
        block, self._block = self._block, None
        if block is not None:
            self._spec = self._spec.copy()
            self._npy_value = None

    def clone(self) -> SingleDeviceArray:
        self._live_block("Clone")
        copy = self._untracked(self._committed)
        self.client.track(copy)
        return copy

    def _untracked(self, committed: bool) -> SingleDeviceArray:
        """Another array object of the same memory, not among the live arrays."""
        return SingleDeviceArray(self._spec, self._live_block(), committed, self._pending)

    def _replace_with(self, other: ArrayImpl) -> None:
        refuse_other_aval(self, other)
        shards = other._live_shards()
        if len(shards) > 1:
            raise InvalidArgumentError(
                f"_replace_with: an array on one device cannot become one on {len(shards)}"
            )
        (new,) = shards
        self._spec, self._block, self._pending = new._spec, new._block, new._pending
        self._committed = other._committed
        self._npy_value = None

    def _live_block(self, asked: str = "") -> AnyBlock:
        """The memory, which may still be written to."""
        block = self._block
        if block is None:
            raise deleted_error(asked, self)
        return block

    def _ready_block(self, asked: str = "") -> AnyBlock:
        """The memory, with the value in it."""
        block = self._live_block(asked)
        pending = self._pending
        if pending is not None:
            pending.wait()
            self._pending = None
        return block

    # --- As NumPy sees it -------------------------------------------------------------------------

    @property
    def _value(self) -> np.ndarray:
        """A read-only NumPy view of the memory, which it keeps alive."""
        value = self._npy_value
        if value is None:
            block = self._ready_block()
            value = view_of(block, self._spec)
            self._npy_value = value
        return value

    def __dlpack__(self, **options: Any) -> Any:
        value = self._value
        if (options.get("max_version") or (0, 0))[0] < 1:
            # The old protocol has no word for "read-only", and NumPy refuses to stay silent.
            value = view_of(self._live_block(), self._spec, read_only=False)
        return to_capsule(value, **options)


class _Writable:
    """A block as NumPy may write to it: for filling arrays, and for DLPack's old protocol."""

    __slots__ = ("block",)

    def __init__(self, block: AnyBlock):
        self.block = block

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return array_interface(self.block.pointer, self.block.size_bytes, read_only=False)


def view_of(block: AnyBlock, spec: ArraySpec, *, read_only: bool = True) -> np.ndarray:
    """A block's memory as a NumPy array of the spec's shape and type, keeping the block alive."""
    if not spec.size_bytes:
        empty = np.empty(spec.dims, spec.numpy_dtype)
        empty.flags.writeable = not read_only
        return empty
    memory = np.asarray(block if read_only else _Writable(block))
    elements = memory[: spec.size_bytes].view(spec.numpy_dtype)
    order = spec.order
    if order is None:
        return elements.reshape(spec.dims)
    return elements.reshape([spec.dims[d] for d in order]).transpose(np.argsort(order))
