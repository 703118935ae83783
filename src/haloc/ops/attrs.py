"""Attribute values and their codecs: one codec serves every written form of an attribute.

A codec's `parse` reads the value after `key=` from a cursor and leaves the cursor behind it;
`format` writes the text that `parse` reads back. `from_proto` and `to_proto` do the same for the
attribute's field in HloInstructionProto; which field that is, the op's row says (`Attr.proto`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, ClassVar

import numpy as np

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.ir.module import HloComputation
from haloc.ops.codec import (
    INTS,
    WORD,
    AsIs,
    AsList,
    Codec,
    ProtoReader,
    ProtoWriter,
    TextCursor,
    TokenCursor,
    commas,
    format_int_lists,
    int_lists,
    ints,
    parse_dims,
)
from haloc.ops.quoting import quote
from haloc.ops.replica_groups import Groups, ReplicaGroups
from haloc.ops.shape_attrs import Alias, Aliasing, OneShape, Shapes
from haloc.ops.window_attrs import ConvDims, DimLabels, Padding, Slices, WindowAttr, WindowDim

__all__ = [
    "Alias",
    "Aliasing",
    "Bool",
    "Bools",
    "Codec",
    "Computation",
    "Computations",
    "ConvDims",
    "DimLabels",
    "Dims",
    "Float",
    "Groups",
    "Int",
    "Name",
    "OneDim",
    "OneShape",
    "Padding",
    "Pairs",
    "Raw",
    "ReplicaGroups",
    "Shapes",
    "Slices",
    "Text",
    "TextCursor",
    "TokenCursor",
    "WindowAttr",
    "WindowDim",
    "Words",
    "parse_dims",
]

_FLOAT = re.compile(r"-?(?:inf|nan|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")


@dataclass(frozen=True, slots=True)
class Int(AsIs):
    """int: `index=0`."""

    def parse(self, cursor: TextCursor) -> int:
        return cursor.integer()

    def format(self, value: int) -> str:
        return str(value)


@dataclass(frozen=True, slots=True)
class Float(AsIs):
    """float: `epsilon=0.001`. Protos hold it in 32 bits: what is read is the shortest number that
    rounds to them, as in text."""

    def from_proto(self, data: float, reader: ProtoReader) -> float:
        return float(str(np.float32(data)))

    def parse(self, cursor: TextCursor) -> float:
        found = cursor.match(_FLOAT)
        return float(found[0]) if found else cursor.expected("a number")

    def format(self, value: float) -> str:
        short = f"{value:.6g}"
        return short if float(short) == value else f"{value:.17g}"


@dataclass(frozen=True, slots=True)
class Bool(AsIs):
    """bool: `is_stable=true`."""

    def parse(self, cursor: TextCursor) -> bool:
        found = cursor.match(WORD)
        if found and found[0] in ("true", "false"):
            return found[0] == "true"
        if found:
            cursor.fail(f"found {found[0]!r}, expected true or false", len(found[0]))
        cursor.expected("true or false")

    def format(self, value: bool) -> str:
        return "true" if value else "false"


@dataclass(frozen=True, slots=True)
class Name:
    """str, a bare word out of `allowed` (any, when empty): `direction=LT`, `kind=kLoop`.

    enum: the word for each number of the proto's enumeration ("" for a number that means none);
    empty where the proto, too, has the word.
    """

    allowed: tuple[str, ...] = ()
    enum: tuple[str, ...] = ()

    @property
    def proto_zero(self) -> Any:
        return 0 if self.enum else ""

    def from_proto(self, data: Any, reader: ProtoReader) -> str:
        if self.enum:
            if not 0 <= data < len(self.enum):
                reader.fail(f"{data} is no number of {', '.join(filter(None, self.enum))}")
            return self.enum[data]
        if self.allowed and data not in self.allowed:
            reader.fail(f"found {data!r}, expected one of {', '.join(self.allowed)}")
        return data

    def to_proto(self, value: str, writer: ProtoWriter) -> Any:
        if not self.enum:
            return value
        if value not in self.enum:
            raise InvalidArgumentError(f"{value!r} has no number among {', '.join(self.enum)}")
        return self.enum.index(value)

    def parse(self, cursor: TextCursor) -> str:
        found = cursor.match(WORD)
        if not found:
            return cursor.expected(" or ".join(self.allowed) or "a word")
        if self.allowed and found[0] not in self.allowed:
            near = get_close_matches(found[0].upper(), self.allowed, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            wanted = ", ".join(self.allowed)
            cursor.fail(f"found {found[0]!r}, expected one of {wanted}{hint}", len(found[0]))
        return found[0]

    def format(self, value: str) -> str:
        return value


@dataclass(frozen=True, slots=True)
class Text:
    """str, written as a quoted string: `custom_call_target="f"`. In protos a string or bytes."""

    proto_zero: ClassVar[Any] = ""

    def from_proto(self, data: str | bytes, reader: ProtoReader) -> str:
        return data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")

    def to_proto(self, value: str, writer: ProtoWriter) -> str:
        return value

    def parse(self, cursor: TextCursor) -> str:
        return cursor.string()

    def format(self, value: str) -> str:
        return quote(value)


@dataclass(frozen=True, slots=True)
class Dims(AsList):
    """tuple of int: `dimensions={0,1}`."""

    def parse(self, cursor: TextCursor) -> tuple[int, ...]:
        return parse_dims(cursor)

    def format(self, value: tuple[int, ...]) -> str:
        return "{" + commas(value) + "}"


@dataclass(frozen=True, slots=True)
class OneDim(AsIs):
    """int, written as a list of one: `dimensions={0}` of concatenate, sort, get-dimension-size."""

    def parse(self, cursor: TextCursor) -> int:
        found = cursor.match(INTS)
        dims = ints(found[1]) if found else ()
        if found and len(dims) != 1:
            cursor.fail(f"found {len(dims)} dimensions, expected one", len(found[0]))
        return dims[0] if found else cursor.expected("one dimension such as {0}")

    def format(self, value: int) -> str:
        return "{" + str(value) + "}"


@dataclass(frozen=True, slots=True)
class Computation:
    """HloComputation: `to_apply=add`. In protos its id."""

    proto_zero: ClassVar[Any] = 0

    def from_proto(self, data: int, reader: ProtoReader) -> HloComputation:
        return reader.computation(data)

    def to_proto(self, value: HloComputation, writer: ProtoWriter) -> int:
        return writer.computation(value)

    def parse(self, cursor: TextCursor) -> HloComputation:
        return cursor.computation()

    def format(self, value: HloComputation) -> str:
        return value.name


@dataclass(frozen=True, slots=True)
class Computations:
    """tuple of HloComputation: `branch_computations={b0, b1}`. In protos their ids."""

    proto_zero: ClassVar[Any] = ()

    def from_proto(self, data: list[int], reader: ProtoReader) -> tuple[HloComputation, ...]:
        return tuple(map(reader.computation, data))

    def to_proto(self, value: tuple[HloComputation, ...], writer: ProtoWriter) -> list[int]:
        return list(map(writer.computation, value))

    def parse(self, cursor: TextCursor) -> tuple[HloComputation, ...]:
        cursor.expect("{")
        if cursor.accept("}"):
            return ()
        found = [cursor.computation()]
        while cursor.accept(","):
            found.append(cursor.computation())
        cursor.expect("}")
        return tuple(found)

    def format(self, value: tuple[HloComputation, ...]) -> str:
        return "{" + ", ".join(c.name for c in value) + "}"


@dataclass(frozen=True, slots=True)
class Pairs:
    """tuple of (int, int): `source_target_pairs={{0,1},{1,0}}`."""

    proto_zero: ClassVar[Any] = ()

    def from_proto(self, data: list[Any], reader: ProtoReader) -> tuple[tuple[int, int], ...]:
        return tuple((pair.get("source", 0), pair.get("target", 0)) for pair in data)

    def to_proto(self, value: tuple[tuple[int, int], ...], writer: ProtoWriter) -> list[Any]:
        return [{"source": source, "target": target} for source, target in value]

    def parse(self, cursor: TextCursor) -> tuple[tuple[int, int], ...]:
        lists = int_lists(cursor)
        for pair in lists:
            if len(pair) != 2:
                cursor.fail(f"found {format_int_lists((pair,))}, expected pairs {{0,1}}", 1)
        return tuple((a, b) for a, b in lists)

    def format(self, value: tuple[tuple[int, int], ...]) -> str:
        return format_int_lists(value)


@dataclass(frozen=True, slots=True)
class Words:
    """tuple of bare words: `operand_precision={high,highest}`. In protos their places in
    `allowed`; nothing but the first word reads as absent, since XLA writes it for every operand."""

    allowed: tuple[str, ...] = ()

    proto_zero: ClassVar[Any] = ()

    def from_proto(self, data: list[int], reader: ProtoReader) -> tuple[str, ...] | None:
        for number in data:
            if not 0 <= number < len(self.allowed):
                reader.fail(f"{number} is no number of {', '.join(self.allowed)}")
        return tuple(self.allowed[number] for number in data) if any(data) else None

    def to_proto(self, value: tuple[str, ...], writer: ProtoWriter) -> list[int]:
        return [self.allowed.index(word) for word in value]

    def parse(self, cursor: TextCursor) -> tuple[str, ...]:
        cursor.expect("{")
        if cursor.accept("}"):
            return ()
        one = Name(self.allowed)
        found = [one.parse(cursor)]
        while cursor.accept(","):
            found.append(one.parse(cursor))
        cursor.expect("}")
        return tuple(found)

    def format(self, value: tuple[str, ...]) -> str:
        return "{" + ",".join(value) + "}"


@dataclass(frozen=True, slots=True)
class Bools(AsList):
    """tuple of bool: `parameter_replication={true,false}`."""

    def parse(self, cursor: TextCursor) -> tuple[bool, ...]:
        return tuple(word == "true" for word in Words(("true", "false")).parse(cursor))

    def format(self, value: tuple[bool, ...]) -> str:
        return "{" + ",".join("true" if v else "false" for v in value) + "}"


@dataclass(frozen=True, slots=True)
class Raw:
    """str, the text of a brace- or bracket-balanced value kept as it stands. Protos have no such
    text: an attribute with a place there has a codec of its own."""

    proto_zero: ClassVar[Any] = ""

    def from_proto(self, data: Any, reader: ProtoReader) -> str | None:
        reader.fail(f"{data!r} is not text")

    def to_proto(self, value: str, writer: ProtoWriter) -> Any:
        raise UnimplementedError(f"{value}: haloc does not write this attribute into protos")

    def parse(self, cursor: TextCursor) -> str:
        return cursor.balanced()

    def format(self, value: str) -> str:
        return value
