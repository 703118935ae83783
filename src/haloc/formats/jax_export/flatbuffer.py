"""Reads flatbuffers: tables of optional fields, vectors, strings. Every offset is checked."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NoReturn

from haloc.errors import HloParseError

DEPTH_LIMIT = 64
"""How deep tables may nest; offsets could go in circles."""


class Table:
    """A table at `pos`. Fields are numbered as in the schema; an absent one gives the default.

    budget: how many tables may still be opened, shared by all tables of a buffer, because
    several offsets may lead to one table and so make a small file look endless.
    """

    __slots__ = ("budget", "data", "depth", "fields", "pos")

    def __init__(self, data: bytes, pos: int, depth: int = 0, budget: list[int] | None = None):
        self.data = data
        self.pos = pos
        self.depth = depth
        self.budget = [4096 + len(data)] if budget is None else budget
        self.budget[0] -= 1
        if depth > DEPTH_LIMIT or self.budget[0] < 0:
            self.fail(pos, "tables nested too deep, or in a circle")
        start = pos - self.unpack("<i", pos, "a table")
        size = self.unpack("<H", start, "the size of a table's index")
        if size < 4 or size % 2:
            self.fail(start, f"a table's index of {size} bytes")
        self.fields = [self.unpack("<H", start + at, "a table's index") for at in range(4, size, 2)]

    def fail(self, at: int, message: str) -> NoReturn:
        raise HloParseError(f"jax.export artifact, byte {at}: {message}")

    def unpack(self, format: str, at: int, what: str) -> int:
        if at < 0 or at + struct.calcsize(format) > len(self.data):
            self.fail(at, f"{what} would be outside the {len(self.data)} bytes of the file")
        return struct.unpack_from(format, self.data, at)[0]

    def at(self, field: int) -> int | None:
        """Where a field's value stands, None when it is absent."""
        if field < len(self.fields) and self.fields[field]:
            return self.pos + self.fields[field]
        return None

    def number(self, field: int, format: str, default: int = 0) -> int:
        at = self.at(field)
        return default if at is None else self.unpack(format, at, f"field {field}")

    def _target(self, at: int, what: str) -> int:
        return at + self.unpack("<I", at, what)

    def _vector(self, field: int, item_size: int) -> tuple[int, int] | None:
        """The position and number of a vector's items."""
        at = self.at(field)
        if at is None:
            return None
        start = self._target(at, f"field {field}")
        number = self.unpack("<I", start, f"the length of field {field}")
        if start + 4 + number * item_size > len(self.data):
            self.fail(start, f"{number} items of {item_size} bytes, beyond the end of the file")
        return start + 4, number

    def table(self, field: int) -> Table | None:
        at = self.at(field)
        return None if at is None else self._open(self._target(at, f"field {field}"))

    def _open(self, pos: int) -> Table:
        return Table(self.data, pos, self.depth + 1, self.budget)

    def tables(self, field: int) -> Iterator[Table]:
        start, number = self._vector(field, 4) or (0, 0)
        for at in range(start, start + 4 * number, 4):
            yield self._open(self._target(at, "a table"))

    def bytes(self, field: int) -> bytes:
        start, number = self._vector(field, 1) or (0, 0)
        return self.data[start : start + number]

    def string(self, field: int) -> str:
        return self.bytes(field).decode("utf-8", "replace")

    def strings(self, field: int) -> list[str]:
        start, number = self._vector(field, 4) or (0, 0)
        found = []
        for at in range(start, start + 4 * number, 4):
            text = self._target(at, "a string")
            length = self.unpack("<I", text, "the length of a string")
            if text + 4 + length > len(self.data):
                self.fail(text, f"a string of {length} bytes, beyond the end of the file")
            found.append(self.data[text + 4 : text + 4 + length].decode("utf-8", "replace"))
        return found

    def numbers(self, field: int, format: str) -> tuple[int, ...] | None:
        """A vector of numbers, None when it is absent."""
        size = struct.calcsize(format)
        vector = self._vector(field, size)
        if vector is None:
            return None
        start, number = vector
        return struct.unpack_from(f"<{number}{format}", self.data, start)


def root_table(data: bytes) -> Table:
    """The table a flatbuffer begins with. HloParseError when the bytes cannot be one."""
    if len(data) < 8:
        raise HloParseError(f"jax.export artifact: {len(data)} bytes, expected at least 8")
    return Table(data, struct.unpack_from("<I", data)[0])
