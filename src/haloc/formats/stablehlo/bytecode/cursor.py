"""A position in binary data: reads MLIR's variable-width numbers, and says what is wrong where."""

from __future__ import annotations

from typing import NoReturn

from haloc.errors import HloParseError


class ByteCursor:
    """Where the reader stands in one section of a file.

    data: the section's bytes. base: their offset in the file, so that messages name file offsets.
    what: the section, for messages.
    """

    __slots__ = ("base", "data", "pos", "what")

    def __init__(self, data: bytes, what: str, base: int = 0, pos: int = 0):
        self.data = data
        self.what = what
        self.base = base
        self.pos = pos

    @property
    def remaining(self) -> int:
        return len(self.data) - self.pos

    def byte(self, wanted: str = "a byte") -> int:
        try:
            value = self.data[self.pos]
        except IndexError:
            self.expected(wanted)
        self.pos += 1
        return value

    def varint(self, wanted: str = "a number") -> int:
        """An unsigned number: the first byte's trailing zero bits say how many bytes follow."""
        pos = self.pos
        try:
            first = self.data[pos]
        except IndexError:
            self.expected(wanted)
        if first & 1:
            self.pos = pos + 1
            return first >> 1
        width = (first & -first).bit_length() if first else 9
        end = pos + width
        if end > len(self.data):
            self.expected(wanted)
        self.pos = end
        if first == 0:
            return int.from_bytes(self.data[pos + 1 : end], "little")
        return int.from_bytes(self.data[pos:end], "little") >> width

    def svarint(self, wanted: str = "a signed number") -> int:
        """A signed number in zigzag order: 0, -1, 1, -2, ..."""
        value = self.varint(wanted)
        return (value >> 1) ^ -(value & 1)

    def flagged(self, wanted: str = "a number with a flag") -> tuple[int, bool]:
        value = self.varint(wanted)
        return value >> 1, bool(value & 1)

    def count(self, of: str) -> int:
        """How many entries follow; each takes at least a byte, so a wild count is caught here."""
        start = self.pos
        number = self.varint(f"the number of {of}")
        if number > self.remaining:
            self.fail(f"{number} {of}, but only {self.remaining} bytes follow", start)
        return number

    def signed_list(self, of: str) -> tuple[int, ...]:
        return tuple([self.svarint(of) for _ in range(self.count(of))])

    def take(self, length: int, what: str) -> bytes:
        end = self.pos + length
        if end > len(self.data):
            self.fail(f"{what} of {length} bytes, but only {self.remaining} bytes follow")
        value = self.data[self.pos : end]
        self.pos = end
        return value

    def blob(self, what: str) -> bytes:
        return self.take(self.varint(f"the length of {what}"), what)

    def sub(self, length: int, what: str) -> ByteCursor:
        """A cursor over the next `length` bytes, which this one steps over."""
        base = self.base + self.pos
        return ByteCursor(self.take(length, what), what, base)

    def expected(self, wanted: str) -> NoReturn:
        found = f"byte 0x{self.data[self.pos]:02x}" if self.remaining > 0 else "its end"
        self.fail(f"found {found}, expected {wanted}")

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        offset = self.base + (self.pos if at is None else at)
        raise HloParseError(f"MLIR bytecode, byte {offset}, {self.what}: {message}")
