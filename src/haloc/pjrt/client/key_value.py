"""What plugins of several processes find each other through: callbacks to a key-value store."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from haloc.errors import STATUS_CODES, HloError
from haloc.pjrt.abi import FUNCTION
from haloc.pjrt.abi.layout import CALLBACK_ARGS
from haloc.pjrt.abi.memory import bytes_at, text_at

_TELL_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t)


class KeyValueStore:
    """`fields` of PJRT_Client_Create_Args that give a plugin the store of a distributed client.

    client: an object with `blocking_key_value_get_bytes(key, timeout_in_ms)`,
    `key_value_set_bytes(key, value)` and, for plugins that ask without waiting,
    `key_value_try_get_bytes(key)`; None for a process on its own.
    """

    def __init__(self, client: Any):
        self._client = client
        calls = {"get": self._get, "put": self._put, "try_get": self._try_get}
        self._kept = {name: _callback(name, body) for name, body in calls.items()}
        self.fields: dict[str, int] = {}
        if client is not None:
            for name, function in self._kept.items():
                address = ctypes.cast(function, ctypes.c_void_p).value
                assert address is not None
                self.fields[f"kv_{name}_callback"] = address

    def _get(self, args: Any) -> None:
        key = text_at(args.key, args.key_size)
        _give(args, self._client.blocking_key_value_get_bytes(key, args.timeout_in_ms))

    def _try_get(self, args: Any) -> None:
        _give(args, self._client.key_value_try_get_bytes(text_at(args.key, args.key_size)))

    def _put(self, args: Any) -> None:
        value = bytes_at(args.value, args.value_size)
        self._client.key_value_set_bytes(text_at(args.key, args.key_size), value)


def _callback(name: str, body: Callable[[Any], None]) -> Any:
    kind = CALLBACK_ARGS[f"KeyValue{name.title().replace('_', '')}Callback"]

    def call(pointer: int) -> int | None:
        args = kind.from_address(pointer)
        try:
            body(args)
        except BaseException as error:  # C cannot see it: it goes on as a PJRT_Error
            status = error.status if isinstance(error, HloError) else STATUS_CODES.index("INTERNAL")
            message = str(error).encode()
            tell = ctypes.c_void_p.from_address(args.callback_error).value
            return _TELL_ERROR(tell)(status, message, len(message))
        return None

    return FUNCTION(call)


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    return libc


def _give(args: Any, value: bytes) -> None:
    """Hand a value over in memory that the plugin frees."""
    args.value = _libc().malloc(max(1, len(value)))
    ctypes.memmove(args.value, value, len(value))
    args.value_size = len(value)
    args.value_deleter_callback = ctypes.cast(_libc().free, ctypes.c_void_p).value
