"""Shapes: element type, dimensions and layout; tuples of shapes. Immutable and hashable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import prod

from haloc.ir.dtype import BUFFER, TOKEN, TUPLE, DType


@dataclass(frozen=True, slots=True)
class Layout:
    """How an array's elements lie in memory.

    minor_to_major lists dimension numbers, fastest-varying first. The other fields are XLA's
    annotations; haloc carries them through text and protos and computes on untiled arrays.
    """

    minor_to_major: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...] = ()
    element_size_bits: int = 0
    memory_space: int = 0
    dim_level_types: str = ""
    tail_padding: int = 1
    split_configs: tuple[tuple[int, tuple[int, ...]], ...] = ()
    physical_shape: str = ""
    metadata_prefix_bytes: int = 0
    index_type: str = ""
    pointer_type: str = ""

    def __str__(self) -> str:
        order = ",".join(map(str, self.minor_to_major))
        extras = ""
        if self.dim_level_types:
            extras += f"D({self.dim_level_types})"
        if self.tiles:
            tiles = (
                "(" + ",".join("*" if t < 0 else str(t) for t in ts) + ")" for ts in self.tiles
            )
            extras += "T" + "".join(tiles)
        if self.tail_padding != 1:
            extras += f"L({self.tail_padding})"
        if self.index_type:
            extras += f"#({self.index_type})"
        if self.pointer_type:
            extras += f"*({self.pointer_type})"
        if self.element_size_bits:
            extras += f"E({self.element_size_bits})"
        if self.memory_space:
            extras += f"S({self.memory_space})"
        if self.split_configs:
            extras += "SC"
        for dim, splits in self.split_configs:
            extras += f"({dim}:{','.join(map(str, splits))})"
        if self.physical_shape:
            extras += f"P({self.physical_shape})"
        if self.metadata_prefix_bytes:
            extras += f"M({self.metadata_prefix_bytes})"
        return "{" + order + (":" + extras if extras else "") + "}"


@cache
def default_layout(rank: int) -> Layout:
    """Row-major: the last dimension varies fastest."""
    return Layout(tuple(range(rank - 1, -1, -1)))


UNBOUNDED = -1
"""Size of a dimension printed as `?`."""


class Shape:
    """An array, tuple, token or opaque shape.

    dims: sizes; for a dynamic dimension its bound, or UNBOUNDED. dynamic: one flag a dimension,
    or () when all are static. layout: None except for arrays. elements: members of a tuple, or
    the one array inside a buffer shape.
    """

    __slots__ = ("_hash", "dims", "dtype", "dynamic", "elements", "layout")

    def __init__(
        self,
        dtype: DType,
        dims: tuple[int, ...] = (),
        layout: Layout | None = None,
        dynamic: tuple[bool, ...] = (),
        elements: tuple[Shape, ...] = (),
    ):
        self.dtype = dtype
        self.dims = dims
        self.layout = layout or default_layout(len(dims)) if dtype.is_array else None
        self.dynamic = dynamic if any(dynamic) else ()
        self.elements = elements
        self._hash = hash((dtype, dims, self.layout, self.dynamic, elements))

    @property
    def is_tuple(self) -> bool:
        return self.dtype is TUPLE

    @property
    def is_array(self) -> bool:
        return self.dtype.is_array

    @property
    def is_token(self) -> bool:
        return self.dtype is TOKEN

    @property
    def is_static(self) -> bool:
        return not self.dynamic and all(e.is_static for e in self.elements)

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def element_count(self) -> int:
        """Number of elements of an array (1 for a scalar, 0 when any dimension is 0)."""
        return prod(self.dims)

    @property
    def byte_size(self) -> int:
        """Bytes in host memory, summed over tuple members."""
        if self.elements:
            return sum(e.byte_size for e in self.elements)
        return self.element_count * self.dtype.byte_size if self.is_array else 0

    @property
    def major_to_minor(self) -> tuple[int, ...]:
        """The dimensions of an array as they lie in memory, the slowest-varying first."""
        return self.layout.minor_to_major[::-1] if self.layout is not None else ()

    @property
    def is_row_major(self) -> bool:
        """Whether the layout, tiles aside, puts elements where the default layout does."""
        if not self.element_count:
            return True
        long = [d for d in self.major_to_minor if self.dims[d] != 1]
        return long == sorted(long)

    def in_memory(self) -> Shape:
        """The row-major array that lies in memory as this array does: dimensions permuted."""
        return self.with_dims(tuple(self.dims[d] for d in self.major_to_minor))

    def with_layouts_of(self, other: Shape) -> Shape:
        """The layouts of a shape of the same ranks."""
        if self.is_tuple:
            pairs = zip(self.elements, other.elements, strict=True)
            return Shape(self.dtype, elements=tuple(a.with_layouts_of(b) for a, b in pairs))
        return Shape(self.dtype, self.dims, other.layout, self.dynamic, self.elements)

    def leaves(self) -> list[Shape]:
        """The non-tuple shapes in depth-first order; [self] for a non-tuple."""
        if not self.is_tuple:
            return [self]
        return [leaf for e in self.elements for leaf in e.leaves()]

    def with_dims(self, dims: tuple[int, ...]) -> Shape:
        """Same element type, other dimensions, default layout, static."""
        return Shape(self.dtype, tuple(dims))

    def keep(self, numbers: Iterable[int]) -> Shape:
        """Same element type, the dimensions of these numbers in this order, dynamic or not."""
        order = tuple(numbers)
        dynamic = tuple(self.dynamic[d] for d in order) if self.dynamic else ()
        return Shape(self.dtype, tuple(self.dims[d] for d in order), None, dynamic)

    def with_dtype(self, dtype: DType) -> Shape:
        return Shape(dtype, self.dims, self.layout, self.dynamic)

    def with_default_layout(self) -> Shape:
        if self.elements:
            elements = tuple(e.with_default_layout() for e in self.elements)
            return Shape(self.dtype, elements=elements)
        return Shape(self.dtype, self.dims, None, self.dynamic)

    def holds(self, dims: tuple[int, ...]) -> bool:
        """Whether an array of these sizes is of this shape: a dynamic dimension is at most its
        bound, any other is equal."""
        if not self.dynamic:
            return self.dims == dims
        return len(dims) == len(self.dims) and all(
            n == size or (dynamic and (n < size or size == UNBOUNDED))
            for n, size, dynamic in zip(dims, self.dims, self.dynamic)
        )

    def same_dims(self, other: Shape) -> bool:
        """Equal dimensions, element type and layout aside."""
        return self.dims == other.dims and self.is_tuple == other.is_tuple

    def compatible(self, other: Shape) -> bool:
        """Equal but for layouts: what XLA requires of a declared and an inferred shape."""
        if self is other:
            return True
        return (
            self.dtype is other.dtype
            and self.dims == other.dims
            and self.dynamic == other.dynamic
            and len(self.elements) == len(other.elements)
            and all(a.compatible(b) for a, b in zip(self.elements, other.elements, strict=True))
        )

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Shape):
            return NotImplemented
        return (
            self._hash == other._hash
            and self.dtype is other.dtype
            and self.dims == other.dims
            and self.layout == other.layout
            and self.dynamic == other.dynamic
            and self.elements == other.elements
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Shape({self.to_string()!r})"

    def __str__(self) -> str:
        return self.to_string()

    def to_string(self, include_layout: bool = True) -> str:
        """HLO text: "f32[4,<=8]{1,0}", "(f32[], /*index=5*/s32[2]{0})", "token[]"."""
        if self.dtype is BUFFER:
            return f"b({self.elements[0].to_string(include_layout)})"
        if self.is_tuple:
            return tuple_text([e.to_string(include_layout) for e in self.elements])
        dynamic = self.dynamic or (False,) * len(self.dims)
        dims = ",".join(map(_dim_text, self.dims, dynamic))
        text = f"{self.dtype.name}[{dims}]"
        if include_layout and self.layout is not None and (self.dims or self.layout != Layout(())):
            text += str(self.layout)
        return text


def tuple_text(entries: list[str]) -> str:
    """ "(a, b, ...)" with XLA's `/*index=5*/` before every fifth entry."""
    marked = [f"/*index={i}*/{e}" if i and i % 5 == 0 else e for i, e in enumerate(entries)]
    return "(" + ", ".join(marked) + ")"


def _dim_text(size: int, dynamic: bool) -> str:
    if size == UNBOUNDED:
        return "?"
    return f"<={size}" if dynamic else str(size)


def tuple_shape(*elements: Shape) -> Shape:
    return Shape(TUPLE, elements=tuple(elements))


def scalar_shape(dtype: DType) -> Shape:
    return Shape(dtype)
