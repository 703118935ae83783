"""Arrays from DLPack tensors and to them: jaxlib's functions, and the array API's `from_dlpack`."""

from __future__ import annotations

from typing import Any

import numpy as np

from haloc.errors import UnimplementedError
from haloc.ir.dtype import dtype_from_numpy
from haloc.ir.shape import Layout
from haloc.runtime.array import ArrayImpl
from haloc.runtime.client import Client
from haloc.runtime.default_client import default_client
from haloc.runtime.device import Device
from haloc.runtime.dlpack import K_DL_CPU, from_capsule
from haloc.runtime.host_buffer import SHARED_ALIGNMENT_BYTES, data_pointer, put_in_memory
from haloc.runtime.memory_pool import HostBlock
from haloc.runtime.single_device_array import SingleDeviceArray


def from_dlpack(x: Any, /, *, device: Device | None = None, copy: bool | None = None) -> ArrayImpl:
    """The array in another library's memory.

    x: an array of torch, NumPy or any library with `__dlpack__`, in CPU memory. device: default the
    first of the process's default client. The memory is shared unless copy is True, it is not
    row-major, or it is not 16-byte aligned. With copy=False it is shared in any order of
    dimensions, the array's layout then; BufferError for memory with gaps or badly aligned. Who
    writes to shared memory writes to the array.

    TypeError for what has no `__dlpack__`, BufferError for another device's memory.
    """
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"from_dlpack: a {type(x).__name__} has no __dlpack__")
    kind = int(x.__dlpack_device__()[0])
    if kind != K_DL_CPU:
        raise BufferError(f"from_dlpack: the memory is on device type {kind}, not the CPU's (1)")
    try:
        capsule = x.__dlpack__(max_version=(1, 1))
    except TypeError:  # from before DLPack 1.0
        capsule = x.__dlpack__()
    return _array(from_capsule(capsule), device or default_client().devices()[0], copy)


def dlpack_managed_tensor_to_buffer(
    dlpack: Any,
    device: Device | Client | None = None,
    stream: int | None = None,
    *,
    cpu_backend: Client | None = None,
    gpu_backend: Client | None = None,
) -> ArrayImpl:
    """The array in a DLPack capsule, which is used up.

    device: where to; or cpu_backend (also as second argument): its first device. Errors as those of
    `from_dlpack`; UnimplementedError for a gpu_backend.
    """
    if gpu_backend is not None:
        raise UnimplementedError("gpu_backend: haloc has no GPU client")
    client = device if isinstance(device, Client) else cpu_backend
    if client is not None:
        device = client.devices()[0]
    if not isinstance(device, Device):
        raise TypeError(f"device is a {type(device).__name__}, not a Device or a Client")
    if stream is not None:
        raise BufferError(f"stream={stream}: a CPU has no streams")
    return _array(from_capsule(dlpack), device, None)


def buffer_to_dlpack_managed_tensor(buffer: ArrayImpl, stream: int | None = None) -> Any:
    """A DLPack capsule (of before version 1.0) of an array's memory.

    TypeError for what is no array; BufferError for an array on several devices.
    """
    if not isinstance(buffer, ArrayImpl):
        raise TypeError(f"buffer is a {type(buffer).__name__}, not an array")
    return buffer.__dlpack__(stream=stream)


def cuda_array_interface_to_buffer(
    cai: dict[str, Any], gpu_backend: Client | None = None, device_id: int | None = None
) -> ArrayImpl:
    """UnimplementedError: memory of a CUDA device needs a GPU client, which haloc does not have."""
    raise UnimplementedError("cuda_array_interface_to_buffer: haloc has no GPU client")


def _array(value: np.ndarray, device: Device, copy: bool | None) -> ArrayImpl:
    memory = device.default_memory()
    pointer = data_pointer(value)
    # Programs mostly take row-major arrays: others are shared for those who insist.
    layout = _dense_layout(value) if copy is False else None
    is_dense = layout is not None or value.flags.c_contiguous
    if value.size and is_dense and pointer % SHARED_ALIGNMENT_BYTES == 0 and not copy:
        spec = memory.spec(dtype_from_numpy(value.dtype), value.shape, layout)
        array = SingleDeviceArray(spec, HostBlock(value, pointer), False)
    elif copy is False and value.size:
        raise BufferError(
            f"the memory cannot be shared: strides {value.strides} bytes, address {pointer:#x}"
        )
    else:
        array = put_in_memory(value, memory, share=False, committed=False)
    device.client.track(array)
    return array


def _dense_layout(value: np.ndarray) -> Layout | None:
    """The layout in which the array's memory has no gaps; None if it has any."""
    order = sorted(range(value.ndim), key=lambda d: -value.strides[d])
    return Layout(tuple(order[::-1])) if value.transpose(order).flags.c_contiguous else None
