"""Arrays: immutable values of one shape and element type, on one device or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.ir.shape import Layout
from haloc.runtime import traceback
from haloc.runtime.array_protocols import ArrayProtocols, name_of
from haloc.runtime.assembly import arranged_shards
from haloc.runtime.aval import ShapedArray
from haloc.runtime.format import DeviceLayout, Format
from haloc.runtime.shard import Shard, shards_of
from haloc.runtime.xla_shape import PjRtLayout, XlaLayout

if TYPE_CHECKING:
    from haloc.runtime.client import Client
    from haloc.runtime.device import Device
    from haloc.runtime.single_device_array import SingleDeviceArray


class ArrayImpl(ArrayProtocols):
    """An array, its elements spread over devices as its sharding says. Immutable.

    Made by `Client.buffer_from_pyval`, by executables, by `batched_device_put`, and from shards:
    `ArrayImpl(aval, sharding, arrays, committed)`. aval: any object with the whole array's `shape`
    and `dtype`; arrays: a list of one array for each device of this process, whose memory becomes
    this array's. Raises TypeError for what is no list of arrays and, unless _skip_checks,
    ValueError for arrays that do not fit the sharding; with _skip_checks they must be in its order.

    NumPy reads an array (`np.asarray(x)`, read-only), without a copy when one device holds it all.
    From Python 3.12 on `memoryview(x)` works too; on 3.11 use `memoryview(np.asarray(x))`.
    """

    __slots__ = (
        "__weakref__",
        "_aval",
        "_committed",
        "_npy_value",
        "_sharding",
        "_shards",
        "_traceback",
    )

    def __init__(
        self,
        aval: Any,
        sharding: Any,
        arrays: list[ArrayImpl],
        committed: bool,
        _skip_checks: bool = False,
    ):
        if not isinstance(arrays, list):
            raise TypeError(f"arrays is a {type(arrays).__name__}, not a list")
        for array in arrays:
            if not isinstance(array, ArrayImpl):
                raise TypeError(f"Unsupported type for elements in `arrays`: {type(array)}")
        shards = [s for a in arrays for s in a._live_shards()]
        if not _skip_checks:
            shards = arranged_shards(aval, sharding, shards)
        if not shards:
            raise ValueError("an array needs a shard on a device of this process")
        # Objects of its own: deleting this array leaves the given ones alone.
        self._shards: list[SingleDeviceArray] | None = [s._untracked(committed) for s in shards]
        self._aval = ShapedArray(aval.shape, aval.dtype)
        self._sharding = sharding
        self._committed = committed
        self._npy_value: np.ndarray | None = None
        if traceback.of_arrays:
            self._traceback = traceback.captured()
        self.client.track(self)

    # --- What it is -------------------------------------------------------------------------------

    @property
    def aval(self) -> ShapedArray:
        """Shape and dtype."""
        return self._aval

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self._aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self._aval.dtype

    @property
    def sharding(self) -> Any:
        """Which device holds which part."""
        return self._sharding

    @property
    def client(self) -> Client:
        return self._sharding._device_assignment[0].client

    @property
    def committed(self) -> bool:
        """Whether the array was put on its devices on purpose: outputs of executables are."""
        return self._committed

    @property
    def device(self) -> Any:
        """The device that has it all; of an array on several devices, its sharding."""
        devices = self.devices()
        return next(iter(devices)) if len(devices) == 1 else self.sharding

    def devices(self) -> set[Device]:
        self._live_shards()
        return set(self.sharding.device_set)

    def platform(self) -> str:
        return self._live_shards("platform")[0]._spec.device.platform

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all its devices belong to this process."""
        return self.sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each of its devices holds all of it."""
        return self.sharding.is_fully_replicated

    @property
    def layout(self) -> XlaLayout:
        """How the elements of each shard lie in memory."""
        return self._pjrt_layout._xla_layout()

    @property
    def format(self) -> Format:
        """The layout as JAX spells it, None after deletion, and the sharding."""
        if self.is_deleted():
            return Format(None, self.sharding)
        return Format(DeviceLayout(self.layout.minor_to_major()[::-1]), self.sharding)

    @property
    def _pjrt_layout(self) -> PjRtLayout:
        return PjRtLayout(self._live_shards("layout")[0]._spec.layout)

    @property
    def traceback(self) -> traceback.Traceback | None:
        """Where it was made, if `set_tracebacks_enabled(True)` had been called."""
        return getattr(self, "_traceback", None)

    def on_device_size_in_bytes(self) -> int:
        """Bytes of the elements on all devices, two 4-bit and four 2-bit ones to the byte, as XLA
        counts."""
        shards = self._live_shards("GetOnDeviceSizeInBytes")
        return sum(s.on_device_size_in_bytes() for s in shards)

    def unsafe_buffer_pointer(self) -> int:
        """Address of the first element. haloc keeps one sub-byte element to the byte."""
        shards = self._live_shards("UnsafeBufferPointer")
        if len(shards) > 1:
            raise InvalidArgumentError(
                "UnsafeBufferPointer() is supported only for unsharded arrays."
            )
        return shards[0].unsafe_buffer_pointer()

    # --- Shards -----------------------------------------------------------------------------------

    @property
    def _arrays(self) -> list[SingleDeviceArray] | None:
        """Each device's part as an array, in the order of the sharding; None after deletion."""
        return None if self._shards is None else list(self._shards)

    @property
    def global_shards(self) -> list[Shard]:
        """The shards on all devices; those of other processes have no data."""
        return shards_of(self)

    @property
    def addressable_shards(self) -> list[Shard]:
        """The shards on this process's devices."""
        return [s for s in shards_of(self) if s.data is not None]

    def addressable_data(self, index: int) -> SingleDeviceArray:
        """The index-th part on this process's devices, as an array."""
        return self._live_shards()[index]

    def _fully_replicated_shard(self) -> SingleDeviceArray:
        """The first part: of a replicated array all of it."""
        return self._live_shards("FullyReplicatedShard")[0]

    def _live_shards(self, asked: str = "") -> list[SingleDeviceArray]:
        """The parts, which may still be pending. asked: the call to name in the error."""
        shards = self._shards
        if shards is None:
            raise deleted_error(asked, self)
        return shards

    # --- Life -------------------------------------------------------------------------------------

    def block_until_ready(self) -> Any:
        """Wait for the value; returns self. Raises the error of the run that was to give the value,
        and InvalidArgumentError for a deleted array."""
        for shard in self._live_shards("BlockHostUntilReady"):
            shard.block_until_ready()
        return self

    def is_ready(self) -> bool:
        """Whether `block_until_ready` would return, or raise, at once."""
        return all(shard.is_ready() for shard in self._live_shards("IsReady"))

    def is_deleted(self) -> bool:
        return self._shards is None

    def delete(self) -> None:
        """Give the memory back, unless NumPy views, clones or a run still use it. May be
        repeated."""
        shards, self._shards = self._shards, None
        self._npy_value = None
        for shard in shards or ():
            shard.delete()

    def clone(self) -> ArrayImpl:
        """Another array object of the same memory, deleted on its own."""
        shards: list[ArrayImpl] = list(self._live_shards("Clone"))
        return ArrayImpl(self._aval, self._sharding, shards, self._committed, _skip_checks=True)

    def __copy__(self) -> ArrayImpl:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> ArrayImpl:
        return self.clone()

    def _replace_with(self, other: ArrayImpl) -> None:
        """Become the other array: its memory and its sharding. InvalidArgumentError unless shape
        and dtype are the same."""
        refuse_other_aval(self, other)
        shards = [s._untracked(other._committed) for s in other._live_shards()]
        self._shards, self._sharding = shards, other.sharding
        self._committed = other._committed
        self._npy_value = None

    # --- As NumPy sees it -------------------------------------------------------------------------

    @property
    def _value(self) -> np.ndarray:
        """The elements, read-only: a view of memory where one device has them all."""
        value = self._npy_value
        if value is None:
            value = self._npy_value = self._assembled()
        return value

    def _assembled(self) -> np.ndarray:
        if self.is_fully_replicated:
            return self._live_shards()[0]._value
        if not self.is_fully_addressable:
            raise RuntimeError(
                "Fetching the value of an array that spans devices of other processes is not "
                "possible; read its addressable_shards"
            )
        value = np.empty(self.shape, self.dtype)
        for shard in shards_of(self):
            if shard.replica_id == 0 and shard.data is not None:
                part = value[shard.index]
                value[shard.index] = shard.data._value.reshape(part.shape)
        value.flags.writeable = False
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        """By value and layout: what is read back is on the default device of the reading
        process."""
        spec = self._live_shards()[0]._spec
        layout = None if spec.order is None else spec.layout
        return (array_of_value, (np.array(self._value, order="C"), self._committed, layout))

    def __dlpack__(self, **options: Any) -> Any:
        """A DLPack capsule of the same memory. Arguments: stream, max_version, dl_device, copy, as
        the array API has them. The value is read-only; a capsule older than version 1.0 cannot say
        so, and its consumers must not write. BufferError for an array on several devices."""
        shards = self._live_shards()
        if len(shards) > 1:
            raise BufferError(
                "to_dlpack can only pack a dlpack tensor from an array on a singular device, but "
                f"an array with a Sharding over {len(shards)} devices was provided."
            )
        return shards[0].__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """(kDLCPU, 0)."""
        if len(self._live_shards()) > 1:
            raise BufferError("__dlpack__ only supported for unsharded arrays.")
        return (1, 0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._shards is None or len(self._shards) > 1:
            raise AttributeError("__cuda_array_interface__ is only supported for unsharded arrays.")
        raise AttributeError("__cuda_array_interface__ is only defined for NVidia GPU buffers.")

    def copy_to_host_async(self) -> None:
        """Start the copy that `np.asarray` will wait for: on a CPU there is none to make."""
        self._live_shards()

    def _copy_single_device_array_to_host_async(self) -> None:
        self._live_shards("FullyReplicatedShard")

    def _single_device_array_to_np_array_did_copy(self) -> tuple[np.ndarray, bool]:
        """The first part as NumPy sees it, and whether that is a copy (it never is)."""
        return self._fully_replicated_shard()._value, False


class DeletedArrayError(InvalidArgumentError):
    """The elements of an array were asked for after `delete()` or donation."""


def deleted_error(asked: str, array: ArrayImpl) -> InvalidArgumentError:
    """The error of a deleted array. asked: the call to name, as in XLA; none: the elements."""
    if asked:
        return InvalidArgumentError(f"{asked}() called on deleted or donated buffer")
    return DeletedArrayError(
        f"Array has been deleted with shape={name_of(array.dtype, array.shape)}."
    )


def refuse_other_aval(array: ArrayImpl, other: ArrayImpl) -> None:
    """InvalidArgumentError unless the arrays have one shape and one dtype."""
    if array.shape != other.shape or array.dtype != other.dtype:
        raise InvalidArgumentError(
            f"an array {name_of(array.dtype, array.shape)} cannot become one of "
            f"{name_of(other.dtype, other.shape)}"
        )


def array_of_value(
    value: np.ndarray, committed: bool = False, layout: Layout | None = None
) -> ArrayImpl:
    """An unpickled array: on the first device of the process's default client."""
    from haloc.runtime.default_client import default_client  # noqa: PLC0415  # made of arrays

    order = None if layout is None else layout.minor_to_major
    array = default_client().buffer_from_pyval(value, force_copy=True, device_layout=order)
    array._committed = committed
    return array
