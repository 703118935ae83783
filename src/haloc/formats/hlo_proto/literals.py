"""LiteralProto and `Literal`. Elements lie there in the order of the shape's layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from haloc.errors import HloParseError, UnimplementedError
from haloc.formats.hlo_proto.shapes import literal_field, shape_from_bytes, shape_to_bytes
from haloc.formats.proto import Message, decode, encode
from haloc.ir.dtype import DType
from haloc.ir.literal import Literal, Value
from haloc.ir.shape import Shape

_KEEP = frozenset({"ShapeProto"})
_COMPONENTS = {"c64": np.dtype("<f4"), "c128": np.dtype("<f8")}
"""Complex numbers are written as pairs of these."""


def literal_from_bytes(data: bytes) -> Literal:
    """The literal of an encoded LiteralProto. Raises HloParseError."""
    return literal_from_proto(decode("LiteralProto", data, _KEEP))


def literal_from_proto(message: Message) -> Literal:
    """The literal of a LiteralProto decoded with its shapes kept as bytes."""
    if "shape" not in message:
        raise HloParseError("a literal has no shape")
    shape = shape_from_bytes(message["shape"])
    return Literal(shape, _value_from_proto(message, shape))


def _value_from_proto(message: Message, shape: Shape) -> Value:
    if shape.is_tuple:
        members = message.get("tuple_literals", [])
        if len(members) != len(shape.elements):
            raise HloParseError(
                f"a literal of shape {shape.to_string(False)} has {len(members)} members"
            )
        return tuple(map(_value_from_proto, members, shape.elements))
    if not shape.is_array:
        if shape.is_token:
            return None
        raise HloParseError(f"a literal cannot have the shape {shape}")
    if message.get("dynamic_sizes") and list(message["dynamic_sizes"]) != list(shape.dims):
        raise UnimplementedError(
            f"a literal of shape {shape.to_string(False)} with sizes {message['dynamic_sizes']}: "
            "literals of dynamic size are not read"
        )
    data = message.get(literal_field(shape.dtype), b"")
    flat = _elements(data, shape.dtype)
    wanted = shape.element_count
    if any(d < 0 for d in shape.dims) or flat.size != wanted:
        raise HloParseError(
            f"a literal of shape {shape.to_string(False)} has {flat.size} elements in field "
            f"{literal_field(shape.dtype)}"
        )
    order = _major_to_minor(shape)
    try:
        turned = flat.reshape([shape.dims[d] for d in order])
    except ValueError as error:  # An empty array of dimensions that NumPy cannot hold.
        raise HloParseError(f"a literal of shape {shape.to_string(False)}: {error}") from None
    return np.array(turned.transpose([order.index(d) for d in range(shape.rank)]), order="C")


def _elements(data: Any, dtype: DType) -> np.ndarray:
    """The elements, flat, of an array or of bytes: little-endian, sub-byte types one a byte."""
    if isinstance(data, np.ndarray):
        if dtype.is_complex and data.size % 2:
            raise HloParseError(f"{data.size} components of {dtype}, which has two an element")
        return data.view(dtype.numpy)
    size = dtype.byte_size
    if len(data) % size:
        raise HloParseError(f"{len(data)} bytes of {dtype}, which has {size} an element")
    if dtype.bits >= 8:
        return np.frombuffer(data, dtype.numpy)
    low = np.frombuffer(data, np.uint8) & np.uint8((1 << dtype.bits) - 1)
    if dtype.is_signed:
        shift = 8 - dtype.bits
        return ((low << shift).view(np.int8) >> shift).astype(dtype.numpy)
    return low.astype(dtype.numpy) if dtype.is_integer else low.view(dtype.numpy or np.uint8)


def _major_to_minor(shape: Shape) -> tuple[int, ...]:
    assert shape.layout is not None
    return shape.layout.minor_to_major[::-1]


def literal_to_bytes(literal: Literal) -> bytes:
    """An encoded LiteralProto."""
    return encode("LiteralProto", literal_to_proto(literal))


def literal_to_proto(literal: Literal) -> Message:
    return _value_to_proto(literal.value, literal.shape)


def _value_to_proto(value: Value, shape: Shape) -> Message:
    message: Message = {"shape": shape_to_bytes(shape)}
    if isinstance(value, tuple):
        message["tuple_literals"] = list(map(_value_to_proto, value, shape.elements))
        return message
    if value is None:
        return message
    if any(shape.dynamic):
        raise UnimplementedError(
            f"a literal of dynamic shape {shape.to_string(False)} has no proto form in haloc"
        )
    dtype = shape.dtype
    flat = value.transpose(_major_to_minor(shape)).reshape(-1)
    if dtype.name in _COMPONENTS:
        data: Any = flat.view(_COMPONENTS[dtype.name])
    elif dtype.name in ("pred", "s32", "s64", "u32", "u64", "f32", "f64"):
        data = flat
    elif dtype.bits >= 8:
        data = flat.tobytes()
    else:
        mask = np.uint8((1 << dtype.bits) - 1)
        raw = flat.astype(np.uint8) if dtype.is_integer else flat.view(np.uint8)
        data = (raw & mask).tobytes()
    message[literal_field(dtype)] = data
    return message
