"""ShapeProto and `Shape`. Equal bytes give one shape: a module has few shapes, used often."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from haloc.errors import HloParseError, UnimplementedError
from haloc.formats.hlo_text import parse_shape
from haloc.formats.proto import Message, decode, encode
from haloc.ir.dtype import BUFFER, TUPLE, DType, dtype_from_name, dtype_from_number
from haloc.ir.shape import UNBOUNDED, Layout, Shape

_NO_BOUND = -(1 << 63)
"""An unbounded dimension, and a tile dimension that takes all that is left (`*`)."""

_LEVELS = ("D", "C", "S", "H")
"""Letters of DimLevelType in layouts."""


@lru_cache(maxsize=20_000)
def shape_from_bytes(data: bytes) -> Shape:
    """The shape of an encoded ShapeProto. Raises HloParseError, InvalidArgumentError."""
    return shape_from_proto(decode("ShapeProto", data))


@lru_cache(maxsize=20_000)
def shape_to_bytes(shape: Shape) -> bytes:
    return encode("ShapeProto", shape_to_proto(shape))


def shape_from_proto(message: Message) -> Shape:
    """The shape of a decoded ShapeProto. Raises HloParseError, InvalidArgumentError."""
    dtype = dtype_from_number(message.get("element_type", 0))
    members = tuple(map(shape_from_proto, message.get("tuple_shapes", ())))
    if dtype is TUPLE:
        return Shape(TUPLE, elements=members)
    if dtype is BUFFER:
        if len(members) != 1:
            raise HloParseError(f"a buffer shape holds one shape, given {len(members)}")
        return Shape(BUFFER, elements=members)
    if members:
        raise HloParseError(f"a shape of {dtype} with {len(members)} tuple members")
    dims = tuple(UNBOUNDED if d == _NO_BOUND else d for d in message.get("dimensions", ()))
    if any(d < UNBOUNDED for d in dims):
        raise HloParseError(f"a shape of {dtype} with negative dimensions {list(dims)}")
    if not dtype.is_array:
        if dims:
            raise HloParseError(f"{dtype} has no dimensions, given {list(dims)}")
        return Shape(dtype)
    dynamic = tuple(message.get("is_dynamic_dimension", ()))
    if dynamic and len(dynamic) != len(dims):
        raise HloParseError(f"{len(dynamic)} flags of dynamic dimensions for {len(dims)} of them")
    dynamic = dynamic or (False,) * len(dims)
    dynamic = tuple(d or size == UNBOUNDED for d, size in zip(dynamic, dims, strict=True))
    layout = _layout_from_proto(message["layout"], len(dims)) if "layout" in message else None
    return Shape(dtype, dims, layout, dynamic)


def _layout_from_proto(message: Message, rank: int) -> Layout:
    order = tuple(message.get("minor_to_major", ()))
    if sorted(order) != list(range(rank)):
        raise HloParseError(f"layout {list(order)} is not a permutation of {rank} dimensions")
    if message.keys() <= _PLAIN and message.get(_TAIL, 1) == 1:
        return Layout(order)
    tiles = tuple(
        tuple(-1 if n == _NO_BOUND else n for n in tile.get("dimensions", ()))
        for tile in message.get("tiles", ())
    )
    splits = message.get("split_configs", ())
    physical = message.get("physical_shape")
    return Layout(
        order,
        tiles,
        element_size_bits=message.get("element_size_in_bits", 0),
        memory_space=message.get("memory_space", 0),
        dim_level_types=_levels_text(message),
        tail_padding=message.get(_TAIL, 1),
        split_configs=tuple(
            (s.get("dimension", 0), tuple(s.get("split_indices", ()))) for s in splits
        ),
        physical_shape="" if physical is None else str(shape_from_proto(physical)),
        metadata_prefix_bytes=message.get("dynamic_shape_metadata_prefix_bytes", 0),
        index_type=_type_name(message.get("index_primitive_type", 0)),
        pointer_type=_type_name(message.get("pointer_primitive_type", 0)),
    )


_TAIL = "tail_padding_alignment_in_elements"
_PLAIN = frozenset({"minor_to_major", _TAIL})


def _type_name(number: int) -> str:
    return dtype_from_number(number).name if number else ""


def _levels_text(message: Message) -> str:
    """`D,C+,S~`: a letter a dimension, `+` when not unique, `~` when not ordered."""
    words = []
    for i, level in enumerate(message.get("dim_level_types", ())):
        if not 0 <= level < len(_LEVELS):
            raise HloParseError(f"unknown DimLevelType {level}")
        unique, ordered = (message.get(k, ()) for k in ("dim_unique", "dim_ordered"))
        marks = ("" if i >= len(unique) or unique[i] else "+") + (
            "" if i >= len(ordered) or ordered[i] else "~"
        )
        words.append(_LEVELS[level] + marks)
    return ",".join(words)


def shape_to_proto(shape: Shape) -> Message:
    """A ShapeProto, with the layout of every array."""
    message: Message = {"element_type": shape.dtype.number}
    if shape.elements:
        message["tuple_shapes"] = [shape_to_proto(e) for e in shape.elements]
    if shape.dtype.is_array:
        message["dimensions"] = [_NO_BOUND if d == UNBOUNDED else d for d in shape.dims]
        message["is_dynamic_dimension"] = list(shape.dynamic or (False,) * shape.rank)
    if shape.layout is not None:
        message["layout"] = _layout_to_proto(shape.layout)
    return message


def _layout_to_proto(layout: Layout) -> Message:
    message: Message = {"minor_to_major": list(layout.minor_to_major), _TAIL: layout.tail_padding}
    if layout == Layout(layout.minor_to_major):
        return message
    optional: dict[str, Any] = {
        "tiles": [{"dimensions": [_NO_BOUND if n < 0 else n for n in t]} for t in layout.tiles],
        "element_size_in_bits": layout.element_size_bits,
        "memory_space": layout.memory_space,
        "index_primitive_type": _type_number(layout.index_type),
        "pointer_primitive_type": _type_number(layout.pointer_type),
        "dynamic_shape_metadata_prefix_bytes": layout.metadata_prefix_bytes,
        "split_configs": [
            {"dimension": dim, "split_indices": list(at)} for dim, at in layout.split_configs
        ],
    }
    if layout.physical_shape:
        optional["physical_shape"] = shape_to_proto(parse_shape(layout.physical_shape))
    words = [w.strip() for w in layout.dim_level_types.split(",")] if layout.dim_level_types else []
    for word in words:
        if word[:1] not in _LEVELS:
            raise UnimplementedError(f"layout D({layout.dim_level_types}): {word!r} is unknown")
    if words:
        optional["dim_level_types"] = [_LEVELS.index(w[0]) for w in words]
        optional["dim_unique"] = ["+" not in w for w in words]
        optional["dim_ordered"] = ["~" not in w for w in words]
    return message | {k: v for k, v in optional.items() if v}


def _type_number(name: str) -> int:
    return dtype_from_name(name).number if name else 0


def literal_field(dtype: DType) -> str:
    """The field of LiteralProto that holds elements of a type: "f32s"."""
    return f"{dtype.name}s"
