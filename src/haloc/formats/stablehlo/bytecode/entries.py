"""The attributes and types of a bytecode file, each decoded when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from haloc.formats.stablehlo.bytecode.container import Container, Entry
from haloc.formats.stablehlo.bytecode.cursor import ByteCursor
from haloc.formats.stablehlo.mlir import DenseElements, RankedTensor

DEPTH_LIMIT = 64
"""How deep attributes may nest."""

LOCATION_DEPTH_LIMIT = 40
"""How deep locations are followed: what lies beyond becomes unknown, it is no error."""

SIZE_LIMIT = 1 << 22
"""How many parts an attribute may have in all, counting one shared by several as often."""


class Absent:
    """What VHLO writes for an optional attribute that is not there."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()

UNKNOWN_LOCATION: Final = None

Kinds: TypeAlias = type | tuple[type, ...]
Decoder: TypeAlias = Callable[[ByteCursor, "Entries"], Any]

_NESTED_LOCATIONS = {10, 12, 13, 14}  # builtin codes of locations that hold locations


class Entries:
    """Decodes entries by their dialect and code, and keeps what it has decoded.

    decoders: (attribute decoders, type decoders), each by dialect and then by code.
    """

    __slots__ = ("_attributes", "_depth", "_size", "_sizes", "_types", "container", "decoders")

    def __init__(self, container: Container, decoders: tuple[dict, dict]):
        self.container = container
        self.decoders = decoders
        self._attributes: dict[int, Any] = {}
        self._types: dict[int, Any] = {}
        self._sizes: dict[tuple[bool, int], int] = {}
        self._depth = 0
        self._size = 0

    def attribute(self, number: int, cursor: ByteCursor) -> Any:
        """Attribute `number`, which was read at `cursor`."""
        if number in self._attributes:
            self._add_size(self._sizes[False, number], cursor)
            return self._attributes[number]
        entries = self.container.attributes
        if number >= len(entries):
            cursor.fail(f"attribute {number}, but there are {len(entries)} attributes")
        value = self._attributes[number] = self._decode(entries[number], False, number, cursor)
        return value

    def type(self, number: int, cursor: ByteCursor) -> Any:
        """Type `number`, which was read at `cursor`."""
        if number in self._types:
            self._add_size(self._sizes[True, number], cursor)
            return self._types[number]
        entries = self.container.types
        if number >= len(entries):
            cursor.fail(f"type {number}, but there are {len(entries)} types")
        value = self._types[number] = self._decode(entries[number], True, number, cursor)
        return value

    def _add_size(self, size: int, cursor: ByteCursor) -> None:
        if not self._depth:  # asked for by an op, not by an attribute
            return
        self._size += size
        if self._size > SIZE_LIMIT:
            cursor.fail(f"an attribute of more than {SIZE_LIMIT} parts")

    def _decode(self, entry: Entry, is_type: bool, number: int, cursor: ByteCursor) -> Any:
        data = self.container.entry_data
        kind = "type" if is_type else "attribute"
        inner = ByteCursor(
            data.data[entry.start : entry.start + entry.size],
            f"{entry.dialect} {kind} {number}",
            data.base + entry.start,
        )
        if not entry.is_custom:
            inner.fail(f"found assembly text, expected an encoded {kind}")
        decoders = self.decoders[is_type].get(entry.dialect)
        if decoders is None:
            known = ", ".join(sorted(self.decoders[is_type]))
            inner.fail(f"a {kind} of dialect {entry.dialect!r}; haloc reads those of {known}")
        code = inner.varint("a code")
        decoder = decoders.get(code)
        if decoder is None:
            inner.fail(f"unknown code {code} of a {kind}", 0)
        if not is_type and entry.dialect == "builtin" and code in _NESTED_LOCATIONS:
            # Unknown until it is read, so that a circle ends.
            self._attributes[number] = UNKNOWN_LOCATION
            self._sizes[False, number] = 1
            if self._depth >= LOCATION_DEPTH_LIMIT:
                return UNKNOWN_LOCATION
        if self._depth >= DEPTH_LIMIT:
            inner.fail(f"{kind}s nested more than {DEPTH_LIMIT} deep, or in a circle", 0)
        outer_size, self._size = self._size, 1
        self._depth += 1
        value = decoder(inner, self)
        self._depth -= 1
        if inner.remaining:
            inner.expected(f"the end of the {kind}")
        size = self._sizes[is_type, number] = self._size
        self._size = outer_size
        self._add_size(size, cursor)
        return value

    # --- What decoders read --------------------------------------------------------------------

    def read_attribute(self, cursor: ByteCursor) -> Any:
        return self.attribute(cursor.varint("an attribute"), cursor)

    def read_type(self, cursor: ByteCursor) -> Any:
        return self.type(cursor.varint("a type"), cursor)

    def read_attributes(self, cursor: ByteCursor) -> tuple[Any, ...]:
        return tuple([self.read_attribute(cursor) for _ in range(cursor.count("attributes"))])

    def read_types(self, cursor: ByteCursor) -> tuple[Any, ...]:
        return tuple([self.read_type(cursor) for _ in range(cursor.count("types"))])

    def read_optional_attribute(self, cursor: ByteCursor) -> Any:
        """An attribute, or ABSENT."""
        number, is_there = cursor.flagged("an optional attribute")
        return self.attribute(number, cursor) if is_there else ABSENT

    def read_string(self, cursor: ByteCursor) -> str:
        strings = self.container.strings
        number = cursor.varint("a string")
        if number >= len(strings):
            cursor.fail(f"string {number}, but there are {len(strings)} strings")
        return strings[number].decode("utf-8", "surrogateescape")

    def read_a(self, cursor: ByteCursor, kind: Kinds, what: str) -> Any:
        """An attribute that must be of one Python type."""
        start = cursor.pos
        value = self.read_attribute(cursor)
        if not isinstance(value, kind):
            cursor.fail(f"found {describe(value)}, expected {what}", start)
        return value


def describe(value: object) -> str:
    """A short text of an attribute, for messages."""
    text = str(value) if isinstance(value, RankedTensor) else repr(value)
    if isinstance(value, DenseElements):
        text = f"dense elements of {value.type}"
    return text if len(text) <= 60 else text[:57] + "..."
