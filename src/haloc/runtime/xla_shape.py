"""`Shape`, `Layout` and `PrimitiveType` as `xla_client` spells them, over `ir`'s."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.formats.hlo_proto import shape_to_bytes
from haloc.formats.hlo_text import parse_shape
from haloc.ir.dtype import ALL_DTYPES, TOKEN, DType, dtype_from_number, dtype_from_numpy
from haloc.ir.shape import Layout, Shape, tuple_shape

_ENUM_NAMES = {"opaque": "OPAQUE_TYPE"}


class _Named(IntEnum):
    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


PrimitiveType = _Named(  # type: ignore[misc]
    "PrimitiveType", {_ENUM_NAMES.get(d.name, d.name.upper()): d.number for d in ALL_DTYPES}
)


def primitive_type(dtype: DType) -> PrimitiveType:
    return PrimitiveType(dtype.number)


def dtype_to_etype(dtype: Any) -> PrimitiveType:
    """The PrimitiveType of a NumPy dtype; InvalidArgumentError if there is none."""
    return primitive_type(dtype_from_numpy(dtype))


XLA_ELEMENT_TYPE_TO_DTYPE = {primitive_type(d): d.numpy for d in ALL_DTYPES if d.numpy} | {
    PrimitiveType.TUPLE: np.dtype(object),
    PrimitiveType.TOKEN: np.dtype(object),
}
DTYPE_TO_XLA_ELEMENT_TYPE = {str(d): t for t, d in XLA_ELEMENT_TYPE_TO_DTYPE.items()}


class XlaLayout:
    """`Layout((1, 0))`: minor_to_major, fastest-varying dimension first.

    tiling: sizes of the tiles, the outer one first; element_size_in_bits: 0 for the type's own.
    haloc carries these two through text and protos and computes on untiled arrays.
    """

    def __init__(
        self,
        minor_to_major: Sequence[int],
        tiling: Sequence[Sequence[int]] = (),
        element_size_in_bits: int = 0,
    ):
        if isinstance(minor_to_major, str):
            raise TypeError("Layout: minor_to_major is a sequence of dimensions, not a string")
        order = tuple(int(d) for d in minor_to_major)
        if sorted(order) != list(range(len(order))):
            raise InvalidArgumentError(f"minor_to_major {order} is no order of the dimensions")
        tiles = tuple(tuple(int(t) for t in tile) for tile in tiling)
        self.ir = Layout(order, tiles, element_size_in_bits)

    def minor_to_major(self) -> tuple[int, ...]:
        return self.ir.minor_to_major

    def tiling(self) -> list[tuple[int, ...]]:
        return list(self.ir.tiles)

    def element_size_in_bits(self) -> int:
        return self.ir.element_size_bits

    def to_string(self) -> str:
        return str(self.ir)

    __str__ = __repr__ = to_string

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, XlaLayout):
            return NotImplemented
        return self.ir == other.ir

    def __hash__(self) -> int:
        return hash(self.ir)


def _layout_of(layout: Layout) -> XlaLayout:
    return XlaLayout(layout.minor_to_major, layout.tiles, layout.element_size_bits)


class PjRtLayout:
    """An array's layout as executables report it."""

    def __init__(self, layout: Layout):
        self._layout = layout

    def _xla_layout(self) -> XlaLayout:
        return _layout_of(self._layout)

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
    """`Shape("f32[2,3]{1,0}")`, or `Shape.array_shape(np.dtype("float32"), (2, 3))`.

    Only `set_dynamic_dimension` changes a shape.
    """

    def __init__(self, shape: str | Shape):
        self.ir = parse_shape(shape) if isinstance(shape, str) else shape

    @staticmethod
    def array_shape(
        type: Any,
        dims: Sequence[int],
        layout: Sequence[int] | None = None,
        dynamic_dimensions: Sequence[bool] | None = None,
    ) -> XlaShape:
        """type: a NumPy dtype or a PrimitiveType. layout: minor_to_major. dynamic_dimensions: for
        each dimension whether its size is a bound. InvalidArgumentError for what does not fit."""
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
        dynamic = tuple(bool(d) for d in dynamic_dimensions or ())
        if dynamic and len(dynamic) != len(dims):
            raise InvalidArgumentError(f"{len(dynamic)} flags for {len(dims)} dimensions")
        return XlaShape(Shape(dtype, tuple(int(d) for d in dims), order, dynamic))

    @staticmethod
    def token_shape() -> XlaShape:
        return XlaShape(Shape(TOKEN))

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
        return _layout_of(self.ir.layout)

    def xla_element_type(self) -> PrimitiveType:
        return primitive_type(self.ir.dtype)

    def numpy_dtype(self) -> np.dtype[Any]:
        """The element type; that of objects for a tuple. UnimplementedError for a token."""
        return np.dtype(object) if self.ir.is_tuple else self.element_type()

    def element_type(self) -> np.dtype[Any]:
        """UnimplementedError for what is no array."""
        if self.ir.dtype.numpy is None:
            name = self.xla_element_type().name
            raise UnimplementedError(f"Unimplemented primitive type {name}")
        return self.ir.dtype.numpy

    def is_tuple(self) -> bool:
        return self.ir.is_tuple

    def is_array(self) -> bool:
        return self.ir.is_array

    def is_token(self) -> bool:
        return self.ir.is_token

    def is_static(self) -> bool:
        return self.ir.is_static

    def is_dynamic(self) -> bool:
        """Whether the size of some dimension is only a bound."""
        return not self.ir.is_static

    def is_dynamic_dimension(self, dimension: int) -> bool:
        self._check_dimension(dimension)
        return bool(self.ir.dynamic) and self.ir.dynamic[dimension]

    def set_dynamic_dimension(self, dimension: int, is_dynamic: bool) -> None:
        """Make a dimension's size a bound, or exact."""
        self._check_dimension(dimension)
        flags = list(self.ir.dynamic or (False,) * self.ir.rank)
        flags[dimension] = bool(is_dynamic)
        self.ir = Shape(self.ir.dtype, self.ir.dims, self.ir.layout, tuple(flags))

    def _check_dimension(self, dimension: int) -> None:
        if not 0 <= dimension < self.ir.rank:
            raise InvalidArgumentError(f"{self.ir} has no dimension {dimension}")

    def with_major_to_minor_layout_if_absent(self) -> XlaShape:
        """The shape itself: haloc gives every array a layout, row-major where none is said."""
        return XlaShape(self.ir)

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


def shape_from_pyval(pyval: Any, layout: Sequence[int] | None = None) -> XlaShape:
    """The shape of an array, or of a tuple of them, nested. layout: minor_to_major, of an array."""
    if not isinstance(pyval, tuple):
        return XlaShape.array_shape(pyval.dtype, np.shape(pyval), layout)
    if layout is not None:
        raise UnimplementedError("shape_from_pyval: a tuple has no layout")
    return XlaShape.tuple_shape([shape_from_pyval(member) for member in pyval])


class XlaProgramShape:
    """Shapes of a program's parameters and of its result. names: of the parameters, to print."""

    def __init__(
        self, parameters: Sequence[XlaShape], result: XlaShape, names: Sequence[str] | None = None
    ):
        for shape in (*parameters, result):
            if not isinstance(shape, XlaShape):
                raise TypeError(f"ProgramShape takes Shapes, not {type(shape).__name__}")
        self._parameters = list(parameters)
        self._result = result
        self._names = list(names or ["(unknown)"] * len(self._parameters))

    def parameter_shapes(self) -> list[XlaShape]:
        return list(self._parameters)

    def result_shape(self) -> XlaShape:
        return self._result

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, XlaProgramShape):
            return NotImplemented
        return (self._parameters, self._result) == (other._parameters, other._result)

    def __hash__(self) -> int:
        return hash((tuple(self._parameters), self._result))

    def __repr__(self) -> str:
        pairs = zip(self._names, self._parameters, strict=True)
        inside = ", ".join(f"{name}: {shape.ir.to_string(False)}" for name, shape in pairs)
        return f"({inside}) -> {self._result.ir.to_string(False)}"
