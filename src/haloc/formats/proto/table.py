"""Tables of protocol buffer messages: which fields a message has, and how each lies on the wire.

A table is text. A line with one word begins a message; every other line is a field:

    number name kind        with kind one of
        bool int32 int64 uint32 uint64 float double string bytes    a scalar
        enum:Name                                                   an enumeration, as its number
        SomeMessage                                                 a message
        map<key,value>                                              a dict
    behind the kind:
        *    repeated: a list; numbers are written packed, and read either way
        []   repeated numbers as a NumPy array (the data of literals)
        ?    explicit presence: written even when it is zero
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from haloc.errors import InternalError

VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32 = range(6)
"""Wire types."""

WIRE_TYPES = {
    "bool": VARINT,
    "int32": VARINT,
    "int64": VARINT,
    "uint32": VARINT,
    "uint64": VARINT,
    "enum": VARINT,
    "float": FIXED32,
    "double": FIXED64,
    "string": BYTES,
    "bytes": BYTES,
}
"""Wire type of each scalar kind."""

ARRAY_DTYPES = {
    "bool": np.dtype(np.bool_),
    "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64),
    "uint32": np.dtype(np.uint32),
    "uint64": np.dtype(np.uint64),
    "float": np.dtype("<f4"),
    "double": np.dtype("<f8"),
}


@dataclass(slots=True)
class Field:
    """One field. kind: a scalar kind, "message" or "map"; message: the type of a message, or of
    the entries of a map."""

    number: int
    name: str
    kind: str
    wire: int
    message: MessageType | None = None
    is_repeated: bool = False
    is_array: bool = False
    has_presence: bool = False
    tag: bytes = b""
    packed_tag: bytes = b""


@dataclass(slots=True)
class MessageType:
    """A message's fields: by_name, and by_tag, keyed by number << 3 | wire type, twice for
    repeated numbers (packed or not)."""

    name: str
    by_name: dict[str, Field] = field(default_factory=dict)
    by_tag: dict[int, Field] = field(default_factory=dict)


_TYPES: dict[str, MessageType] = {}


def message_type(name: str) -> MessageType:
    """The table of a message; InternalError if there is none."""
    found = _TYPES.get(name)
    if found is None or not found.by_name:
        raise InternalError(f"there is no table of the message {name!r}")
    return found


def define(text: str) -> None:
    """Add the messages of a table."""
    current: MessageType | None = None
    for line in text.splitlines():
        words = line.split()
        if len(words) == 1:
            current = _declare(words[0])
        elif words and current is not None:
            _add(current, int(words[0]), words[1], words[2])


def _declare(name: str) -> MessageType:
    return _TYPES.setdefault(name, MessageType(name))


def _add(owner: MessageType, number: int, name: str, kind: str) -> None:
    is_array, has_presence = kind.endswith("[]"), kind.endswith("?")
    is_repeated = is_array or kind.endswith("*")
    kind = kind.rstrip("*?[]")
    message = None
    if kind.startswith("map<"):
        key, value = kind[4:-1].split(",")
        message = MessageType(f"{owner.name}.{name}")
        _add(message, 1, "key", key + "?")
        _add(message, 2, "value", value + "?")
        kind = "map"
    elif kind.startswith("enum:"):
        kind = "enum"
    elif kind not in WIRE_TYPES:
        message, kind = _declare(kind), "message"
    wire = WIRE_TYPES.get(kind, BYTES)
    one = Field(number, name, kind, wire, message, is_repeated, is_array, has_presence)
    one.tag = _varint(number << 3 | wire)
    one.packed_tag = _varint(number << 3 | BYTES)
    owner.by_name[name] = one
    owner.by_tag[number << 3 | wire] = one
    if is_repeated and wire != BYTES:
        owner.by_tag[number << 3 | BYTES] = one


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))
