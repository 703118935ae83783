"""Functions of the table that are Python: their declaration, and how errors leave them."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from haloc.errors import STATUS_CODES, HloError, ResourceExhaustedError, UnimplementedError
from haloc.pjrt.abi import ARGS, EXTENSION_ARGS, FUNCTION, Struct
from haloc.pjrt.abi.memory import bytes_at, int64s_at, pointers_at, set_pointer, text_at
from haloc.pjrt.plugin.events import new_error

ENTRIES: dict[str, Callable[[Any], None]] = {}
"""Function of the C API -> its Python, which takes the argument struct and sets its outputs."""

Entry = Callable[[Any], None]


def entry(function: str) -> Callable[[Entry], Entry]:
    """Declare a Python function as the plugin's function of this name (without `PJRT_`)."""

    def declare(body: Entry) -> Entry:
        ENTRIES[function] = body
        return body

    return declare


def callback(function: str) -> Any:
    """The C function for an entry; for a name that has none, one that says so."""
    kind = {**ARGS, **EXTENSION_ARGS}[function]
    body = ENTRIES.get(function)

    def call(pointer: int) -> int | None:
        try:
            if body is None:
                raise UnimplementedError(f"PJRT_{function} is not implemented by haloc")
            body(kind.from_address(pointer))
        except BaseException as error:  # C cannot see it: it goes on as a PJRT_Error
            return pjrt_error(error)
        return None

    return FUNCTION(call)


def pjrt_error(error: BaseException) -> int:
    """A new PJRT_Error that says what the exception says; the caller owns it."""
    if isinstance(error, HloError):
        status, words = error.status, str(error).removeprefix(f"{error.code}: ")
        notes = getattr(error, "__notes__", ())
        message = "\n".join([words, *notes])
    elif isinstance(error, MemoryError):
        status, message = ResourceExhaustedError("").status, "out of memory"
    else:
        status = STATUS_CODES.index("INTERNAL")
        message = "".join(traceback.format_exception(error)).rstrip()
    return new_error(status, message)


__all__ = [
    "ENTRIES",
    "Struct",
    "bytes_at",
    "callback",
    "entry",
    "int64s_at",
    "pjrt_error",
    "pointers_at",
    "set_pointer",
    "text_at",
]
