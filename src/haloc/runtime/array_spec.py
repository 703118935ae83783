"""`ArraySpec`: the shape, element type, layout and memory that arrays share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from haloc.ir.dtype import DType
from haloc.ir.shape import Layout, Shape, default_layout

if TYPE_CHECKING:
    from haloc.runtime.device import Memory


class ArraySpec:
    """What all arrays of one shape, type and layout in one memory space have in common.

    A memory space hands out one object per (dtype, dims, layout), so that an executable checks an
    argument by one comparison of identities. A deleted array gets a spec of its own, which equals
    no other.

    order: the dimensions, slowest-varying first; None where elements lie as in a row-major array,
    so that arrays in the default layout cost nothing extra.
    """

    __slots__ = (
        "device",
        "dims",
        "dtype",
        "layout",
        "memory",
        "numpy_dtype",
        "order",
        "size_bytes",
    )

    def __init__(
        self, memory: Memory, dtype: DType, dims: tuple[int, ...], layout: Layout | None = None
    ):
        self.memory = memory
        self.device = memory.device
        self.dtype = dtype
        self.dims = dims
        self.numpy_dtype: np.dtype[Any] = dtype.numpy  # type: ignore[assignment]
        shape = Shape(dtype, dims, layout)
        self.size_bytes = shape.byte_size
        self.layout: Layout = shape.layout or default_layout(len(dims))
        self.order = None if shape.is_row_major else shape.major_to_minor

    def copy(self) -> ArraySpec:
        """A spec of the same that is no other's: a deleted array's."""
        other = ArraySpec.__new__(ArraySpec)
        for name in ArraySpec.__slots__:
            setattr(other, name, getattr(self, name))
        return other

    def lies_as(self, other: ArraySpec) -> bool:
        """Whether the elements of two arrays of the same dims lie in the same order: dimensions of
        size 1 may be anywhere in their layouts."""
        return self._long_dims() == other._long_dims()

    def _long_dims(self) -> list[int]:
        order = self.layout.minor_to_major if self.size_bytes else ()
        return [d for d in order if self.dims[d] != 1]

    @property
    def shape(self) -> Shape:
        return Shape(self.dtype, self.dims, self.layout)

    def __str__(self) -> str:
        return self.shape.to_string(include_layout=False)
