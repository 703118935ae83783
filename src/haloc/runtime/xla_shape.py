"""`Shape`, `Layout` and `PrimitiveType` as `xla_client` spells them, over `ir`'s."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.formats.hlo_proto import shape_to_bytes
from haloc.formats.hlo_text import parse_shape
from haloc.ir.dtype import ALL_DTYPES, DType, dtype_from_number, dtype_from_numpy
from haloc.ir.shape import Layout, Shape, tuple_shape

_ENUM_NAMES = {"opaque": "OPAQUE_TYPE"}

PrimitiveType = IntEnum(  # type: ignore[misc]
    "PrimitiveType", {_ENUM_NAMES.get(d.name, d.name.upper()): d.number for d in ALL_DTYPES}
)


def primitive_type(dtype: DType) -> PrimitiveType:
    return PrimitiveType(dtype.number)


def dtype_to_etype(dtype: Any) -> PrimitiveType:
    """The PrimitiveType of a NumPy dtype; InvalidArgumentError if there is none."""
    return primitive_type(dtype_from_numpy(dtype))


class XlaLayout:
    """`Layout((1, 0))`: minor_to_major, fastest-varying dimension first."""

    def __init__(self, minor_to_major: Sequence[int]):
        self.ir = Layout(tuple(int(d) for d in minor_to_major))

    def minor_to_major(self) -> tuple[int, ...]:
        return self.ir.minor_to_major

    def to_string(self) -> str:
        return str(self.ir)

    __str__ = __repr__ = to_string

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, XlaLayout):
            return NotImplemented
        return self.ir == other.ir

    def __hash__(self) -> int:
        return hash(self.ir)


class PjRtLayout:
    """An array's layout as executables report it."""

    def __init__(self, layout: Layout):
        self._layout = layout

    def _xla_layout(self) -> XlaLayout:
        return XlaLayout(self._layout.minor_to_major)

    def __str__(self) -> str:
        return str(self._layout)

    def __repr__(self) -> str:
        return f"PjRtLayout({self._layout})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PjRtLayout):
            return NotImplemented
        return self._layout == other._layout

    def __hash__(self) -> int:
        return hash(self._layout)


class XlaShape:
    """`Shape("f32[2,3]{1,0}")`, or `Shape.array_shape(np.dtype("float32"), (2, 3))`."""

    def __init__(self, shape: str | Shape):
        self.ir = parse_shape(shape) if isinstance(shape, str) else shape

    @staticmethod
    def array_shape(
        type: Any, dims: Sequence[int], layout: Sequence[int] | None = None
    ) -> XlaShape:
        """type: a NumPy dtype or a PrimitiveType. layout: minor_to_major."""
        known = isinstance(type, PrimitiveType)
        dtype = dtype_from_number(type) if known else dtype_from_numpy(type)
        for size in dims:
            if size < 0:
                raise InvalidArgumentError(f"Invalid dimension size {size}, is_dynamic=false")
        order = None if layout is None else Layout(tuple(layout))
        if order is not None and sorted(order.minor_to_major) != list(range(len(dims))):
            raise InvalidArgumentError(
                f"layout {order} does not order the {len(dims)} dimensions of the shape"
            )
        return XlaShape(Shape(dtype, tuple(int(d) for d in dims), order))

    @staticmethod
    def scalar_shape(type: Any) -> XlaShape:
        return XlaShape.array_shape(type, ())

    @staticmethod
    def tuple_shape(shapes: Sequence[XlaShape]) -> XlaShape:
        return XlaShape(tuple_shape(*(s.ir for s in shapes)))

    def to_serialized_proto(self) -> bytes:
        """A ShapeProto."""
        return shape_to_bytes(self.ir)

    def dimensions(self) -> tuple[int, ...]:
        return self.ir.dims

    def rank(self) -> int:
        return self.ir.rank

    def layout(self) -> XlaLayout:
        if self.ir.layout is None:
            raise InvalidArgumentError(f"{self.ir} has no layout: only arrays have one")
        return XlaLayout(self.ir.layout.minor_to_major)

    def xla_element_type(self) -> PrimitiveType:
        return primitive_type(self.ir.dtype)

    def numpy_dtype(self) -> np.dtype[Any]:
        return np.dtype(object) if self.ir.dtype.numpy is None else self.ir.dtype.numpy

    element_type = numpy_dtype

    def is_tuple(self) -> bool:
        return self.ir.is_tuple

    def is_array(self) -> bool:
        return self.ir.is_array

    def is_token(self) -> bool:
        return self.ir.is_token

    def is_static(self) -> bool:
        return self.ir.is_static

    def tuple_shapes(self) -> list[XlaShape]:
        if not self.ir.is_tuple:
            raise InvalidArgumentError(f"{self.ir} is not a tuple")
        return [XlaShape(e) for e in self.ir.elements]

    def leaf_count(self) -> int:
        return len(self.ir.leaves())

    def __str__(self) -> str:
        return str(self.ir)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, XlaShape):
            return NotImplemented
        return self.ir == other.ir

    def __hash__(self) -> int:
        return hash(self.ir)
