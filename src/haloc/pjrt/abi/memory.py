"""C memory read and written: strings, arrays of numbers and of pointers."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any


def text_at(pointer: int | None, size: int) -> str:
    """A string that C passes with its length."""
    return bytes_at(pointer, size).decode()


def bytes_at(pointer: int | None, size: int) -> bytes:
    return ctypes.string_at(pointer, size) if pointer and size else b""


def int64s_at(pointer: int | None, count: int) -> tuple[int, ...]:
    return tuple((ctypes.c_int64 * count).from_address(pointer)) if pointer and count else ()


def pointers_at(pointer: int | None, count: int) -> tuple[int, ...]:
    return tuple((ctypes.c_uint64 * count).from_address(pointer)) if pointer and count else ()


def texts_at(pointers: int | None, sizes: int | None, count: int) -> list[str]:
    """Strings given as an array of pointers and one of lengths."""
    lengths = int64s_at(sizes, count)
    return [text_at(p, n) for p, n in zip(pointers_at(pointers, count), lengths)]


def set_pointer(pointer: int, value: int) -> None:
    ctypes.c_uint64.from_address(pointer).value = value


def int64s(numbers: Sequence[int]) -> Any:
    """A C array; never of length 0, so that it has an address."""
    return (ctypes.c_int64 * max(1, len(numbers)))(*numbers)


def address_of_bytes(data: bytes) -> int:
    """Where the bytes are, for as long as the object lives; a zero byte follows them."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
