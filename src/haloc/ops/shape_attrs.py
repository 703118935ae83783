"""Attributes made of shapes: layout constraints, and which results share memory with operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from haloc.ir.shape import Shape
from haloc.ops.codec import ProtoReader, ProtoWriter, TextCursor, commas, parse_dims


@dataclass(frozen=True, slots=True)
class OneShape:
    """Shape: `outfeed_shape=f32[4]{0}`."""

    proto_zero: ClassVar[Any] = b""

    def from_proto(self, data: bytes, reader: ProtoReader) -> Shape:
        return reader.shape(data)

    def to_proto(self, value: Shape, writer: ProtoWriter) -> bytes:
        return writer.shape(value)

    def parse(self, cursor: TextCursor) -> Shape:
        return cursor.shape()

    def format(self, value: Shape) -> str:
        return str(value)


@dataclass(frozen=True, slots=True)
class Shapes:
    """tuple of Shape: `operand_layout_constraints={f32[4]{0}}`."""

    proto_zero: ClassVar[Any] = ()

    def from_proto(self, data: Any, reader: ProtoReader) -> tuple[Shape, ...] | None:
        return tuple(map(reader.shape, data))

    def to_proto(self, value: tuple[Shape, ...], writer: ProtoWriter) -> Any:
        return list(map(writer.shape, value))

    def parse(self, cursor: TextCursor) -> tuple[Shape, ...]:
        cursor.expect("{")
        if cursor.accept("}"):
            return ()
        found = [cursor.shape()]
        while cursor.accept(","):
            found.append(cursor.shape())
        cursor.expect("}")
        return tuple(found)

    def format(self, value: tuple[Shape, ...]) -> str:
        return "{" + ", ".join(map(str, value)) + "}"


Alias = tuple[tuple[int, ...], int, tuple[int, ...]]
"""(output index, operand number, operand index)"""


@dataclass(frozen=True, slots=True)
class Aliasing:
    """tuple of (output index, operand number, operand index): `{{}: (0, {})}`."""

    proto_zero: ClassVar[Any] = ()

    def from_proto(self, data: list[Any], reader: ProtoReader) -> tuple[Alias, ...]:
        return tuple(
            (
                tuple(entry.get("output_shape_index", ())),
                entry.get("operand_index", 0),
                tuple(entry.get("operand_shape_index", ())),
            )
            for entry in data
        )

    def to_proto(self, value: tuple[Alias, ...], writer: ProtoWriter) -> list[Any]:
        keys = ("output_shape_index", "operand_index", "operand_shape_index")
        return [dict(zip(keys, entry, strict=True)) for entry in value]

    def parse(self, cursor: TextCursor) -> tuple[Alias, ...]:
        cursor.expect("{")
        found: list[Alias] = []
        if cursor.accept("}"):
            return ()
        while True:
            output = parse_dims(cursor)
            cursor.expect(":")
            cursor.expect("(")
            operand = cursor.integer()
            index: tuple[int, ...] = ()
            if cursor.accept(","):
                index = parse_dims(cursor)
            cursor.expect(")")
            found.append((output, operand, index))
            if not cursor.accept(","):
                cursor.expect("}")
                return tuple(found)

    def format(self, value: tuple[Alias, ...]) -> str:
        entries = (f"{{{commas(o)}}}: ({n}, {{{commas(i)}}})" for o, n, i in value)
        return "{" + ", ".join(entries) + "}"
