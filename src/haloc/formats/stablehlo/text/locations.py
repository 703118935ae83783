"""loc(...): where an op comes from."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from haloc.formats.stablehlo.mlir import (
    Attribute,
    CallLocation,
    FileLocation,
    FusedLocation,
    Location,
    NameLocation,
)
from haloc.formats.stablehlo.text.cursor import MlirCursor

_FILE = re.compile(r"\s*:\s*(\d+)(?:\s*:\s*(\d+))?(?:\s*to\s+(\d+)?\s*:\s*(\d+))?")

ReadAttribute = Callable[[MlirCursor], Attribute]


def parse_location(cursor: MlirCursor, attribute: ReadAttribute) -> Location | None:
    """What stands behind the word `loc`, parentheses included."""
    cursor.expect("(")
    found = _location(cursor, attribute)
    cursor.expect(")")
    return found


def _location(cursor: MlirCursor, attribute: ReadAttribute) -> Location | None:
    with cursor.nested("locations"):
        return _one(cursor, attribute)


def _one(cursor: MlirCursor, attribute: ReadAttribute) -> Location | None:
    if cursor.peek('"'):
        text = cursor.string()
        found = _FILE.match(cursor.text, cursor.pos)
        if found is not None:
            cursor.pos = found.end()
            line, column, end_line, end_column = found.groups()
            return FileLocation(
                text,
                int(line),
                int(column or 0),
                int(end_line or (line if end_column else 0)),
                int(end_column or 0),
            )
        child = None
        if cursor.accept("("):
            child = _location(cursor, attribute)
            cursor.expect(")")
        return NameLocation(text, child)
    if cursor.peek("#"):
        value: Any = attribute(cursor)
        return value
    if cursor.accept_word("unknown"):
        return None
    if cursor.accept_word("callsite"):
        cursor.expect("(")
        callee = _location(cursor, attribute)
        cursor.expect_word("at")
        caller = _location(cursor, attribute)
        cursor.expect(")")
        return CallLocation(callee, caller)
    if cursor.accept_word("fused"):
        return _fused(cursor, attribute)
    if cursor.peek("["):
        return FusedLocation(_parts(cursor, attribute))
    return cursor.expected("a location")


def _fused(cursor: MlirCursor, attribute: ReadAttribute) -> Location:
    metadata = None
    if cursor.accept("<"):
        metadata = attribute(cursor)
        cursor.expect(">")
    return FusedLocation(_parts(cursor, attribute), metadata)


def _parts(cursor: MlirCursor, attribute: ReadAttribute) -> tuple[Location | None, ...]:
    cursor.expect("[")
    parts = []
    while not cursor.accept("]"):
        parts.append(_location(cursor, attribute))
        if not cursor.accept(","):
            cursor.expect("]")
            break
    return tuple(parts)
