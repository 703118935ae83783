"""HLO shapes as MLIR types."""

from __future__ import annotations

from functools import lru_cache

from haloc.errors import UnimplementedError
from haloc.formats.stablehlo.element_types import ELEMENT_TYPES
from haloc.formats.stablehlo.mlir import Buffer, MlirType, RankedTensor, Token, Tuple
from haloc.ir.dtype import BUFFER, DType
from haloc.ir.shape import UNBOUNDED, Shape

_NAMES: dict[DType, str] = {
    dtype: name
    for name, dtype in ELEMENT_TYPES.items()
    if name != "index" and not name.startswith("si")
}


def element_of(dtype: DType) -> str:
    """MLIR's name of an element type: "f32", "i1", "ui8"."""
    name = _NAMES.get(dtype)
    if name is None:
        raise UnimplementedError(f"StableHLO has no element type {dtype.name}")
    return name


@lru_cache(maxsize=10_000)
def type_of(shape: Shape) -> MlirType:
    """The MLIR type; layouts are left out. UnimplementedError for an opaque value."""
    if shape.is_tuple:
        return Tuple(tuple(map(type_of, shape.elements)))
    if shape.is_token:
        return Token()
    if shape.dtype is BUFFER:
        (inner,) = shape.elements
        return Buffer(inner.dims, element_of(inner.dtype))
    return tensor_of(shape)


def tensor_of(shape: Shape) -> RankedTensor:
    """The tensor type of an array; dynamic dimensions keep their bounds."""
    element = element_of(shape.dtype)
    if not shape.dynamic:
        return RankedTensor(shape.dims, element)
    pairs = list(zip(shape.dims, shape.dynamic, strict=True))
    bounds = tuple(size if dynamic and size != UNBOUNDED else None for size, dynamic in pairs)
    dims = tuple(None if dynamic else size for size, dynamic in pairs)
    return RankedTensor(dims, element, bounds if any(b is not None for b in bounds) else ())
