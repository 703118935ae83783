"""`XLA_FFI_Error*`: errors that handlers make and hand over, as addresses."""

from __future__ import annotations

import ctypes

from haloc.errors import HloError, error_of_status


class _Error(ctypes.Structure):
    _fields_ = (("code", ctypes.c_int), ("message", ctypes.c_char_p))


_live: dict[int, _Error] = {}
"""Errors by address, until they are destroyed or taken."""


def create(code: int, message: str) -> int:
    """A new error; whoever gets its address has to destroy or `take` it."""
    error = _Error(code, message.encode(errors="surrogateescape"))
    address = ctypes.addressof(error)
    _live[address] = error
    return address


def create_from(error: HloError) -> int:
    return create(error.status, error.message)


def message_pointer(address: int) -> int | None:
    """Where the error's text begins; it ends with a zero byte."""
    field = _Error.message.offset
    return ctypes.c_void_p.from_address(address + field).value


def destroy(address: int) -> None:
    _live.pop(address, None)


def take(address: int) -> HloError:
    """The error at this address as an exception; the address is no longer valid."""
    error = _live.pop(address)
    return error_of_status(error.code, (error.message or b"").decode(errors="replace"))
