"""What every attribute codec builds on: the text cursor it reads from, lists of integers."""

from __future__ import annotations

import re
from typing import Any, ClassVar, NoReturn, Protocol

from haloc.ir.module import HloComputation
from haloc.ir.shape import Shape
from haloc.ir.sharding import HloSharding

INTS = re.compile(r"\{\s*(-?\d+(?:\s*,\s*-?\d+)*)?\s*\}")
WORD = re.compile(r"[A-Za-z_][\w.-]*")


class TokenCursor(Protocol):
    """A position in HLO text. White space and comments are skipped."""

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match at the cursor and step over it; None, without a step, when it does not match."""
        ...

    def accept(self, token: str) -> bool:
        """Step over `token` if it comes next."""
        ...

    def expect(self, token: str) -> None:
        """Step over `token`; HloParseError if anything else comes next."""
        ...

    def integer(self) -> int: ...
    def string(self) -> str:
        """A quoted string, unescaped."""
        ...

    def balanced(self) -> str:
        """The text of a value up to the next comma, newline or closing bracket at its level."""
        ...

    def expected(self, what: str) -> NoReturn:
        """HloParseError "found <next token>, expected <what>"."""
        ...

    def fail(self, message: str, width: int = 0) -> NoReturn:
        """HloParseError at the cursor; a positive `width` marks that many characters before it."""
        ...


class TextCursor(TokenCursor, Protocol):
    """What a codec may ask of the HLO text parser."""

    def shape(self) -> Shape: ...
    def computation(self) -> HloComputation:
        """A computation, by name; it may be defined later in the text."""
        ...


class ProtoReader(Protocol):
    """What a codec may ask of the reader of HLO protos. Field values are as `formats.proto` gives
    them: numbers, strings, bytes, lists, and dicts for messages (shapes and shardings: bytes)."""

    def shape(self, data: bytes) -> Shape: ...
    def sharding(self, data: bytes) -> HloSharding: ...
    def computation(self, number: int) -> HloComputation:
        """The computation with this id."""
        ...

    def fail(self, fault: str) -> NoReturn:
        """HloParseError that names the instruction."""
        ...


class ProtoWriter(Protocol):
    """What a codec may ask of the writer of HLO protos."""

    def shape(self, shape: Shape) -> bytes: ...
    def sharding(self, sharding: HloSharding) -> bytes: ...
    def computation(self, computation: HloComputation) -> int: ...


class Codec(Protocol):
    """Reads and writes one kind of attribute value: `parse` and `format` in HLO text, `from_proto`
    and `to_proto` as the value of a field of HloInstructionProto.

    proto_zero: what `from_proto` gets where the field is absent and the attribute is not optional.
    """

    @property
    def proto_zero(self) -> Any: ...

    def parse(self, cursor: TextCursor) -> Any: ...
    def format(self, value: Any) -> str: ...
    def from_proto(self, data: Any, reader: ProtoReader) -> Any: ...
    def to_proto(self, value: Any, writer: ProtoWriter) -> Any: ...


class AsIs:
    """The proto form of values that are the field's values themselves."""

    __slots__ = ()
    proto_zero: ClassVar[Any] = 0

    def from_proto(self, data: Any, reader: ProtoReader) -> Any:
        return data

    def to_proto(self, value: Any, writer: ProtoWriter) -> Any:
        return value


class AsList(AsIs):
    """The proto form of tuples: a repeated field."""

    __slots__ = ()
    proto_zero: ClassVar[Any] = ()

    def from_proto(self, data: Any, reader: ProtoReader) -> Any:
        return tuple(data)

    def to_proto(self, value: Any, writer: ProtoWriter) -> Any:
        return list(value)


def ints(text: str | None) -> tuple[int, ...]:
    """ "0, 1" -> (0, 1)."""
    return tuple(map(int, text.split(","))) if text and text.strip() else ()


def parse_dims(cursor: TokenCursor) -> tuple[int, ...]:
    """ "{0,1}" -> (0, 1)."""
    found = cursor.match(INTS)
    return ints(found[1]) if found else cursor.expected("a list of integers such as {0,1}")


def commas(values: Any) -> str:
    return ",".join(map(str, values))


def int_lists(cursor: TokenCursor) -> tuple[tuple[int, ...], ...]:
    """ "{{0,1},{2,3}}"; "{}" is the empty list."""
    cursor.expect("{")
    if cursor.accept("}"):
        return ()
    found = [parse_dims(cursor)]
    while cursor.accept(","):
        found.append(parse_dims(cursor))
    cursor.expect("}")
    return tuple(found)


def format_int_lists(lists: Any) -> str:
    return "{" + ",".join("{" + commas(one) + "}" for one in lists) + "}"
