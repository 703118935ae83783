"""MLIR types as HLO shapes."""

from __future__ import annotations

from functools import lru_cache

from haloc.errors import UnimplementedError
from haloc.formats.stablehlo.element_types import ELEMENT_TYPES
from haloc.formats.stablehlo.mlir import (
    Buffer,
    Future,
    MlirType,
    Quantized,
    RankedTensor,
    Scalar,
    Token,
    Tuple,
)
from haloc.ir.dtype import BUFFER, TOKEN, DType
from haloc.ir.shape import UNBOUNDED, Shape, tuple_shape


def dtype_of(element: str | Quantized, whole: object) -> DType:
    """HLO's element type; UnimplementedError names the type `whole` it stands in."""
    if isinstance(element, Quantized):
        raise UnimplementedError(f"quantized type {whole}: haloc does not execute !quant.uniform")
    found = ELEMENT_TYPES.get(element)
    if found is None:
        raise UnimplementedError(f"type {whole}: HLO has no element type {element}")
    return found


@lru_cache(maxsize=10_000)
def shape_of(type_: MlirType) -> Shape:
    """The HLO shape; UnimplementedError for types HLO does not have."""
    if isinstance(type_, RankedTensor):
        dtype = dtype_of(type_.element, type_)
        bounds = type_.bounds or (None,) * len(type_.dims)
        dims, dynamic = [], []
        for dim, bound in zip(type_.dims, bounds, strict=True):
            size = dim if dim is not None else bound
            dims.append(UNBOUNDED if size is None else size)
            dynamic.append(dim is None)
        return Shape(dtype, tuple(dims), None, tuple(dynamic))
    if isinstance(type_, Token):
        return Shape(TOKEN)
    if isinstance(type_, Tuple | Future):
        return tuple_shape(*map(shape_of, type_.members))
    if isinstance(type_, Scalar):
        return Shape(dtype_of(type_.name, type_))
    if isinstance(type_, Buffer):
        inner = shape_of(RankedTensor(type_.dims, type_.element))
        return Shape(BUFFER, elements=(inner,))
    raise UnimplementedError(f"type {type_} has no HLO shape")
