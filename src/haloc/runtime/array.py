"""Arrays: immutable values of one shape and element type, in one device's memory."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from haloc.analysis.memory import packed_size_bytes
from haloc.errors import InvalidArgumentError
from haloc.runtime.array_spec import ArraySpec
from haloc.runtime.memory_pool import Block, HostBlock, array_interface

if TYPE_CHECKING:
    from haloc.runtime.client import Client
    from haloc.runtime.device import Device, Memory

AnyBlock: TypeAlias = "Block | HostBlock"


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
    return memory[: spec.size_bytes].view(spec.numpy_dtype).reshape(spec.dims)


class ArrayImpl:
    """An array on a device. Made by `Client.buffer_from_pyval` and by executables.

    NumPy reads it without a copy (`np.asarray(x)`, read-only). From Python 3.12 on `memoryview(x)`
    works too; on 3.11 use `memoryview(np.asarray(x))`.
    """

    __slots__ = ("__weakref__", "_block", "_committed", "_npy_value", "_spec")

    def __init__(self, spec: ArraySpec, block: AnyBlock, committed: bool = True):
        self._spec = spec
        self._block: AnyBlock | None = block
        self._committed = committed
        self._npy_value: np.ndarray | None = None

    # --- What it is -------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self._spec.dims

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._spec.numpy_dtype

    @property
    def ndim(self) -> int:
        return len(self._spec.dims)

    @property
    def size(self) -> int:
        return self._spec.shape.element_count

    @property
    def itemsize(self) -> int:
        return self._spec.numpy_dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def device(self) -> Device:
        return self._spec.device

    def devices(self) -> set[Device]:
        self._live_block()
        return {self._spec.device}

    @property
    def client(self) -> Client:
        return self._spec.device.client

    @property
    def committed(self) -> bool:
        """Whether the array was put on its device on purpose (outputs, and device= given)."""
        return self._committed

    @property
    def memory(self) -> Memory:
        return self._spec.device.default_memory()

    def platform(self) -> str:
        self._live_block("platform")
        return self._spec.device.platform

    @property
    def is_fully_addressable(self) -> bool:
        return True

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def on_device_size_in_bytes(self) -> int:
        """Bytes of the elements, two 4-bit and four 2-bit ones to the byte, as XLA counts."""
        self._live_block("GetOnDeviceSizeInBytes")
        return packed_size_bytes(self._spec.dtype, self.size)

    def unsafe_buffer_pointer(self) -> int:
        """Address of the first element. haloc keeps one sub-byte element to the byte."""
        return self._live_block("UnsafeBufferPointer").pointer

    # --- Life -------------------------------------------------------------------------------------

    def block_until_ready(self) -> ArrayImpl:
        """Wait for the value; returns self. InvalidArgumentError for a deleted array."""
        self._live_block("BlockHostUntilReady")
        return self

    def is_ready(self) -> bool:
        self._live_block("IsReady")
        return True

    def is_deleted(self) -> bool:
        return self._block is None

    def delete(self) -> None:
        """Give the memory back, unless NumPy views or clones still use it. May be repeated."""
        block, self._block = self._block, None
        if block is not None:
            spec = self._spec
            self._spec = ArraySpec(spec.device, spec.dtype, spec.dims)
            self._npy_value = None

    def clone(self) -> ArrayImpl:
        """Another array object of the same memory."""
        copy = ArrayImpl(self._spec, self._live_block("Clone"), self._committed)
        self.client.track(copy)
        return copy

    def _live_block(self, asked: str = "") -> AnyBlock:
        block = self._block
        if block is None:
            if asked:
                raise InvalidArgumentError(f"{asked}() called on deleted or donated buffer")
            raise DeletedArrayError(self._spec)
        return block

    # --- As NumPy sees it -------------------------------------------------------------------------

    @property
    def _value(self) -> np.ndarray:
        """A read-only NumPy view of the memory, which it keeps alive."""
        value = self._npy_value
        if value is None:
            spec = self._spec
            value = view_of(self._live_block(), spec)
            self._npy_value = value
        return value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        value = self._value
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise ValueError(
                    f"an array of {value.dtype} cannot be read as {np.dtype(dtype)} without a copy"
                )
            return value.astype(dtype)
        return value.copy() if copy else value

    def __buffer__(self, flags: int, /) -> memoryview:
        """Python 3.12's buffer protocol; read-only."""
        return memoryview(self._value)  # type: ignore[arg-type]  # NumPy's are older than PEP 688

    def __dlpack__(self, **options: Any) -> Any:
        """A DLPack capsule of the same memory. Consumers must not write to it."""
        value = self._value
        version = options.get("max_version")
        if version is None or version[0] < 1:
            # The old protocol has no word for "read-only", and NumPy refuses to stay silent.
            value = view_of(self._live_block(), self._spec, read_only=False)
        return value.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise AttributeError("__cuda_array_interface__ is only defined for NVidia GPU buffers.")

    def copy_to_host_async(self) -> None:
        """Start the copy that `np.asarray` will wait for: on a CPU there is none to make."""
        self._live_block()

    def item(self, *index: int) -> Any:
        return self._value.item(*index)

    def tolist(self) -> Any:
        return self._value.tolist()

    def __len__(self) -> int:
        if not self._spec.dims:
            raise TypeError("len() of unsized object")
        return self._spec.dims[0]

    def __bool__(self) -> bool:
        return bool(self._value)

    def __int__(self) -> int:
        return int(self._scalar())

    def __float__(self) -> float:
        return float(self._scalar())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        return operator.index(self._scalar())

    def _scalar(self) -> Any:
        if self._spec.dims:
            raise TypeError(
                "Only scalar arrays can be converted to Python scalars; "
                f"got arr.ndim={len(self._spec.dims)}"
            )
        return self._value[()]

    __hash__ = None  # type: ignore[assignment]  # a value, not an identity, as in jaxlib

    def __repr__(self) -> str:
        if self._block is None:
            return f"<deleted Array {_name_of(self._spec)}>"
        dtype = self._spec.numpy_dtype.name
        if not self.size:
            return f"Array([], shape={self._spec.dims}, dtype={dtype})"
        body = np.array2string(self._value, prefix="Array(", separator=", ", suffix=",")
        return f"Array({body}, dtype={dtype})"

    def __str__(self) -> str:
        return str(self._value)


class DeletedArrayError(InvalidArgumentError):
    """The elements of an array were asked for after `delete()` or donation."""

    def __init__(self, spec: ArraySpec):
        super().__init__(f"Array has been deleted with shape={_name_of(spec)}.")


def _name_of(spec: ArraySpec) -> str:
    return f"{spec.numpy_dtype.name}[{','.join(map(str, spec.dims))}]"
