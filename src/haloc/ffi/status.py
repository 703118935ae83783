"""`XlaCustomCallStatus`: how functions of the untyped ABI say that they failed."""

from __future__ import annotations

import ctypes

from haloc.errors import HloError

_SHORT = 16
"""Bytes, the final zero included, that a string holds without memory of its own."""


class CustomCallStatus(ctypes.Structure):
    """XLA's is an optional string of the C++ library (libstdc++), and so is this: a function that
    was linked with XLA's setters and one that was given haloc's are both understood."""

    _fields_ = (
        ("text", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("short", ctypes.c_char * _SHORT),
        ("is_failure", ctypes.c_bool),
        ("padding", ctypes.c_char * 31),
    )

    def error(self) -> HloError | None:
        """The failure that was set; frees its text."""
        if not self.is_failure:
            return None
        message = ctypes.string_at(self.text, self.length).decode(errors="replace")
        if self.text != ctypes.addressof(self) + CustomCallStatus.short.offset:
            _free(self.text)
        self.is_failure = False
        return HloError(message, "INTERNAL")


_libc = ctypes.CDLL(None)
_malloc = _libc.malloc
_malloc.restype, _malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
_free = _libc.free
_free.restype, _free.argtypes = None, [ctypes.c_void_p]


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _set_success(status: int) -> None:
    CustomCallStatus.from_address(status).error()


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
def _set_failure(address: int, message: int, length: int) -> None:
    status = CustomCallStatus.from_address(address)
    status.error()
    # XLA's ends at a zero byte, too.
    text = ctypes.string_at(message, length).split(b"\0")[0] if length else b""
    if len(text) < _SHORT:
        status.text = address + CustomCallStatus.short.offset
    else:
        status.text = _malloc(len(text) + 1)
    ctypes.memmove(status.text, text + b"\0", len(text) + 1)
    status.length = len(text)
    status.is_failure = True


STATUS_FUNCTIONS = {
    "XlaCustomCallStatusSetSuccess": ctypes.cast(_set_success, ctypes.c_void_p).value,
    "XlaCustomCallStatusSetFailure": ctypes.cast(_set_failure, ctypes.c_void_p).value,
}
"""Addresses of `void (XlaCustomCallStatus*)` and `void (XlaCustomCallStatus*, const char*,
size_t)`, for functions that are not linked with XLA."""
