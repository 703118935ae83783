"""`ArraySpec`: the shape, element type and memory that arrays share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from haloc.ir.dtype import DType
from haloc.ir.shape import Shape

if TYPE_CHECKING:
    from haloc.runtime.device import Memory


class ArraySpec:
    """What all arrays of one shape and type in one memory space have in common.

    A memory space hands out one object per (dtype, dims), so that an executable checks an argument
    by one comparison of identities. A deleted array gets a spec of its own, which equals no other.
    """

    __slots__ = ("device", "dims", "dtype", "memory", "numpy_dtype", "size_bytes")

    def __init__(self, memory: Memory, dtype: DType, dims: tuple[int, ...]):
        self.memory = memory
        self.device = memory.device
        self.dtype = dtype
        self.dims = dims
        self.numpy_dtype: np.dtype[Any] = dtype.numpy  # type: ignore[assignment]
        self.size_bytes = Shape(dtype, dims).byte_size

    def copy(self) -> ArraySpec:
        """A spec of the same that is no other's: a deleted array's."""
        other = ArraySpec.__new__(ArraySpec)
        other.memory, other.device = self.memory, self.device
        other.dtype, other.dims = self.dtype, self.dims
        other.numpy_dtype, other.size_bytes = self.numpy_dtype, self.size_bytes
        return other

    @property
    def shape(self) -> Shape:
        return Shape(self.dtype, self.dims)

    def __str__(self) -> str:
        return self.shape.to_string(include_layout=False)
