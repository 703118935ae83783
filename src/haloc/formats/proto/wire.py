"""The protocol buffer wire format: bytes to messages and back, by the tables of `messages/`.

A message is a dict from field names to values: int, bool, float, str, bytes, a dict for a message
or a map, a list for a repeated field, an array for the data of literals. A field that is absent,
or has its zero value without explicit presence, is not in the dict. `UNKNOWN` holds the bytes of
fields that the table does not have; they are written back behind the others.

Writing is canonical: fields by number, numbers packed, maps by key.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

import haloc.formats.proto.messages  # noqa: F401  (fills the tables)
from haloc.errors import HloParseError, InternalError, InvalidArgumentError
from haloc.formats.proto.arrays import decode_packed, encode_packed
from haloc.formats.proto.table import (
    ARRAY_DTYPES,
    BYTES,
    END_GROUP,
    FIXED32,
    FIXED64,
    GROUP,
    VARINT,
    Field,
    MessageType,
    message_type,
)

Message = dict[str, Any]

UNKNOWN = ""
"""Key of the bytes of fields that a message's table does not have."""

MAX_DEPTH = 100
"""Messages may nest this deep, as in the protobuf library."""

_BITS = {"int32": 32, "int64": 64, "enum": 32, "uint32": 32, "uint64": 64}
_SMALL = [bytes([n]) for n in range(128)]
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")


def decode(name: str, data: bytes, keep: frozenset[str] = frozenset()) -> Message:
    """The message `name` written in `data`.

    Fields whose message type is in `keep` stay bytes: for readers that know most of them already.
    Raises HloParseError, naming the message and the byte, for data that is no such message.
    """
    if not isinstance(data, bytes):
        data = bytes(data)
    message: Message = {}
    _Decoder(data, keep).message(message_type(name), message, 0, len(data), 1)
    return message


class _Decoder:
    """Reads one buffer."""

    __slots__ = ("data", "keep")

    def __init__(self, data: bytes, keep: frozenset[str]):
        self.data = data
        self.keep = keep

    def fail(self, owner: MessageType, pos: int, fault: str) -> NoReturn:
        raise HloParseError(f"{owner.name}: byte {pos}: {fault}")

    def varint(self, owner: MessageType, pos: int, end: int) -> tuple[int, int]:
        """An unsigned number of up to 64 bits, and the position behind it."""
        data = self.data
        result = shift = 0
        start = pos
        while pos < end and shift < 70:
            byte = data[pos]
            pos += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result & 0xFFFFFFFFFFFFFFFF, pos
            shift += 7
        fault = "a number ends behind its message" if pos >= end else "a number of over 10 bytes"
        self.fail(owner, start, fault)

    def message(self, owner: MessageType, into: Message, pos: int, end: int, depth: int) -> None:
        """Read the fields in data[pos:end] into a message."""
        data, by_tag = self.data, owner.by_tag
        if depth > MAX_DEPTH:
            self.fail(owner, pos, f"messages are nested deeper than {MAX_DEPTH}")
        while pos < end:
            start = pos
            tag = data[pos]
            pos += 1
            if tag >= 0x80:
                tag, pos = self.varint(owner, start, end)
            field = by_tag.get(tag)
            if field is None:
                pos = self._skip(owner, tag, start, pos, end, depth)
                into[UNKNOWN] = into.get(UNKNOWN, b"") + data[start:pos]
                continue
            wire = tag & 7
            if wire in (FIXED32, FIXED64):
                value, pos = self._fixed(owner, wire, pos, end)
            else:
                if pos < end and data[pos] < 0x80:
                    number = data[pos]
                    pos += 1
                else:
                    number, pos = self.varint(owner, pos, end)
                if wire == BYTES:
                    stop = pos + number
                    if stop > end:
                        self._too_long(owner, field.name, start, number, end - pos)
                    if field.wire != BYTES:
                        self._packed(owner, field, into, pos, stop)
                        pos = stop
                        continue
                    value = self._sized(owner, field, into, pos, stop, depth)
                    pos = stop
                elif field.kind == "bool":
                    value = number != 0
                else:
                    value = _wrap(number, field.kind) if number > 0x7FFFFFFF else number
            if field.is_repeated:
                self._append(field, into, value)
            elif value or _stands_for_itself(field, value) or field.name in into:
                into[field.name] = value

    def _sized(
        self, owner: MessageType, field: Field, into: Message, pos: int, stop: int, depth: int
    ) -> Any:
        """The value in data[pos:stop] of a field of text, bytes, a message or a map. A field that
        comes again goes on: messages are merged, maps get more keys."""
        kind = field.kind
        if kind == "string":
            return self._text(owner, pos, stop)
        if kind == "bytes":
            return self.data[pos:stop]
        inner: MessageType = field.message  # type: ignore[assignment]
        if kind == "map":
            entry: Message = {}
            self.message(inner, entry, pos, stop, depth + 1)
            key, value = (entry.get(n, zero(inner.by_name[n])) for n in ("key", "value"))
            entries: Message = into.get(field.name, {})
            entries[key] = value
            return entries
        goes_on = not field.is_repeated and field.name in into
        if inner.name in self.keep:
            return (
                into.get(field.name, b"") + self.data[pos:stop] if goes_on else self.data[pos:stop]
            )
        message = into[field.name] if goes_on else {}
        self.message(inner, message, pos, stop, depth + 1)
        return message

    def _fixed(self, owner: MessageType, wire: int, pos: int, end: int) -> tuple[float, int]:
        form = _FLOAT if wire == FIXED32 else _DOUBLE
        stop = pos + form.size
        if stop > end:
            self.fail(owner, pos, f"{form.size} bytes wanted, but {end - pos} bytes are left")
        return form.unpack_from(self.data, pos)[0], stop

    def _too_long(self, owner: MessageType, name: str, at: int, size: int, left: int) -> NoReturn:
        self.fail(owner, at, f"{name} has {size} bytes, but {left} bytes are left")

    def _append(self, field: Field, into: Message, value: Any) -> None:
        if field.is_array:
            self._extend(field, into, np.array([value], ARRAY_DTYPES[field.kind]))
        elif field.name in into:
            into[field.name].append(value)
        else:
            into[field.name] = [value]

    def _skip(
        self, owner: MessageType, tag: int, start: int, pos: int, end: int, depth: int
    ) -> int:
        """The position behind the value of an unknown field whose tag stands at `start`."""
        wire = tag & 7
        if tag < 8:
            self.fail(owner, start, "field number 0")
        if wire == VARINT:
            return self.varint(owner, pos, end)[1]
        if wire == GROUP:
            return self._skip_group(owner, tag >> 3, pos, end, depth + 1)
        if wire == BYTES:
            size, pos = self.varint(owner, pos, end)
        elif wire in (FIXED32, FIXED64):
            size = 4 if wire == FIXED32 else 8
        else:
            self.fail(owner, start, f"tag {tag} is of no field (wire type {wire})")
        if pos + size > end:
            self._too_long(owner, f"field {tag >> 3}", start, size, end - pos)
        return pos + size

    def _text(self, owner: MessageType, pos: int, stop: int) -> str:
        try:
            return self.data[pos:stop].decode()
        except UnicodeDecodeError as error:
            self.fail(owner, pos + error.start, f"text that is not UTF-8 ({error.reason})")

    def _packed(self, owner: MessageType, field: Field, into: Message, pos: int, stop: int) -> None:
        """The numbers of a packed field; only repeated numbers come here."""
        if not field.is_array and stop - pos <= 32 and field.wire == VARINT:
            values: list[Any] = into.setdefault(field.name, [])
            kind = field.kind
            while pos < stop:
                value, pos = self.varint(owner, pos, stop)
                if kind == "bool":
                    values.append(value != 0)
                else:
                    values.append(_wrap(value, kind) if value > 0x7FFFFFFF else value)
            return
        kind = "int32" if field.kind == "enum" else field.kind
        try:
            array = decode_packed(self.data[pos:stop], kind)
        except HloParseError as error:
            self.fail(owner, pos, f"{field.name}: {error.message}")
        if field.is_array:
            self._extend(field, into, array)
        else:
            into.setdefault(field.name, []).extend(array.tolist())

    @staticmethod
    def _extend(field: Field, into: Message, array: np.ndarray) -> None:
        before = into.get(field.name)
        into[field.name] = array if before is None else np.concatenate((before, array))

    def _skip_group(self, owner: MessageType, number: int, pos: int, end: int, depth: int) -> int:
        """The position behind the end of a group (an old way to nest), which only unknown fields
        use."""
        if depth > MAX_DEPTH:
            self.fail(owner, pos, f"groups are nested deeper than {MAX_DEPTH}")
        while pos < end:
            start = pos
            tag, pos = self.varint(owner, pos, end)
            if tag & 7 == END_GROUP:
                if tag >> 3 != number:
                    self.fail(owner, start, f"the end of group {tag >> 3} closes group {number}")
                return pos
            pos = self._skip(owner, tag, start, pos, end, depth)
        self.fail(owner, end, f"group {number} is not closed")


def _wrap(value: int, kind: str) -> int:
    """The low bits of a number, signed where the kind is."""
    bits = _BITS[kind]
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) and kind[0] != "u" else value


def zero(field: Field) -> Any:
    """The value of a singular field that is absent."""
    if field.kind == "string":
        return ""
    if field.kind == "bytes":
        return b""
    if field.kind in ("message", "map"):
        return {}
    return {"bool": False, "float": 0.0, "double": 0.0}.get(field.kind, 0)


# --- Writing -----------------------------------------------------------------------------------


def encode(name: str, message: Message) -> bytes:
    """The canonical bytes of a message.

    The value of a message field may also be bytes: it is then taken as encoded. Numbers out of
    their field's range raise InvalidArgumentError.
    """
    return _encode(message_type(name), message)


def _encode(owner: MessageType, message: Message) -> bytes:
    chunks: list[tuple[int, bytes]] = []
    unknown = b""
    for name, value in message.items():
        if name == UNKNOWN:
            unknown = value
            continue
        field = owner.by_name.get(name)
        if field is None:
            raise InternalError(f"{owner.name} has no field {name!r}")
        if field.is_repeated or field.kind == "map":
            if len(value):
                chunks.append((field.number, _repeated(owner, field, value)))
        elif value or _stands_for_itself(field, value):
            chunks.append((field.number, field.tag + _single(owner, field, value)))
    chunks.sort()
    return b"".join([chunk for _, chunk in chunks]) + unknown


def _stands_for_itself(field: Field, value: Any) -> bool:
    """Whether a zero value says more than the field's absence would."""
    return (
        field.has_presence
        or field.kind == "message"
        or (field.wire in (FIXED32, FIXED64) and str(value)[0] == "-")
    )


def _repeated(owner: MessageType, field: Field, values: Any) -> bytes:
    if field.kind == "map":
        entry: MessageType = field.message  # type: ignore[assignment]
        parts = (_encode(entry, {"key": k, "value": values[k]}) for k in sorted(values))
        return b"".join([field.tag + _sized(part) for part in parts])
    if field.wire == BYTES:
        return b"".join([field.tag + _single(owner, field, value) for value in values])
    if field.is_array:
        packed = encode_packed(values, field.kind)
    elif field.wire == VARINT:
        packed = b"".join([_single(owner, field, value) for value in values])
    else:
        packed = np.asarray(values, ARRAY_DTYPES[field.kind]).tobytes()
    return field.packed_tag + _sized(packed)


def _single(owner: MessageType, field: Field, value: Any) -> bytes:
    try:
        return _WRITERS[field.kind](field, value)
    except (TypeError, struct.error, OverflowError, AttributeError, UnicodeEncodeError) as error:
        raise InvalidArgumentError(
            f"{owner.name}.{field.name} cannot be {value!r} ({error})"
        ) from None


def _sized(data: bytes) -> bytes:
    return varint(len(data)) + data


def varint(number: int) -> bytes:
    """A number as a varint; negative ones as 64 bits."""
    if 0 <= number < 128:
        return _SMALL[number]
    number &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _integer(field: Field, value: Any) -> bytes:
    bits = _BITS[field.kind]
    low, high = (0, 1 << bits) if field.kind[0] == "u" else (-(1 << bits - 1), 1 << bits - 1)
    if not low <= value < high:
        raise OverflowError(f"it is not {field.kind}")
    return varint(int(value))


def _bytes(field: Field, value: Any) -> bytes:
    return _sized(value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value)


def _message(field: Field, value: Any) -> bytes:
    if isinstance(value, bytes):
        return _sized(value)
    return _sized(_encode(field.message, value))  # type: ignore[arg-type]


_WRITERS: dict[str, Callable[[Field, Any], bytes]] = {
    "bool": lambda field, value: b"\x01" if value else b"\x00",
    "int32": _integer,
    "int64": _integer,
    "uint32": _integer,
    "uint64": _integer,
    "enum": _integer,
    "float": lambda field, value: _FLOAT.pack(value),
    "double": lambda field, value: _DOUBLE.pack(value),
    "string": lambda field, value: _sized(value.encode()),
    "bytes": _bytes,
    "message": _message,
}
