"""Lists of PJRT_NamedValue, from Python and to it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping
from typing import Any

from haloc.errors import InvalidArgumentError
from haloc.pjrt.abi.layout import STRUCT
from haloc.pjrt.abi.memory import address_of_bytes, int64s, int64s_at, text_at
from haloc.pjrt.abi.numbers import NamedValueType

_NamedValue = STRUCT["NamedValue"]


def named_values(values: Mapping[str, Any]) -> Any:
    """A C array of named values: str, bool, int, float or a sequence of int each. What the
    entries point to lives as long as the array. TypeError for other values."""
    array = (_NamedValue * max(1, len(values)))()
    kept: list[Any] = []
    for slot, (name, value) in zip(array, values.items()):
        kind, payload, size = _encoded(name, value, kept)
        text = name.encode()
        kept.append(text)
        slot.struct_size = ctypes.sizeof(_NamedValue)
        slot.name, slot.name_size = address_of_bytes(text), len(text)
        slot.type, slot.value, slot.value_size = kind, payload, size
    array.kept = kept
    return array


def _encoded(name: str, value: Any, kept: list[Any]) -> tuple[NamedValueType, int, int]:
    if isinstance(value, str):
        text = value.encode()
        kept.append(text)
        return NamedValueType.STRING, address_of_bytes(text), len(text)
    if isinstance(value, bool):
        return NamedValueType.BOOL, int(value), 1
    if isinstance(value, int):
        return NamedValueType.INT64, value, 1
    if isinstance(value, float):
        return NamedValueType.FLOAT, int.from_bytes(struct.pack("<f", value), "little"), 1
    if isinstance(value, list | tuple) and all(type(v) is int for v in value):
        numbers = int64s(value)
        kept.append(numbers)
        return NamedValueType.INT64_LIST, ctypes.addressof(numbers), len(value)
    raise TypeError(
        f"option {name} is {value!r}; an option is a str, bool, int, float or list of ints"
    )


def read_named_values(pointer: int | None, count: int) -> dict[str, Any]:
    """The Python values of a C array of named values."""
    if not pointer:
        return {}
    found: dict[str, Any] = {}
    at = pointer
    for _ in range(count):
        item = _NamedValue.from_address(at)
        name = text_at(item.name, item.name_size)
        found[name] = _decoded(item)
        # A caller of another version may know a longer struct.
        at += item.struct_size or ctypes.sizeof(_NamedValue)
    return found


def _decoded(item: Any) -> Any:
    match item.type:
        case NamedValueType.STRING:
            return text_at(item.value, item.value_size)
        case NamedValueType.INT64:
            return item.value
        case NamedValueType.INT64_LIST:
            return list(int64s_at(item.value, item.value_size))
        case NamedValueType.FLOAT:
            return struct.unpack("<f", (item.value & 0xFFFFFFFF).to_bytes(4, "little"))[0]
        case NamedValueType.BOOL:
            return bool(item.value & 0xFF)
    raise InvalidArgumentError(f"PJRT_NamedValue has type {item.type}")
