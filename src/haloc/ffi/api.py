"""The `XLA_FFI_Api` table that handlers are given: built once, from Python functions.

A function of the table takes its argument structure and returns nothing; an `HloError` that it
raises goes to the handler as an `XLA_FFI_Error*`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from haloc.errors import HloError
from haloc.ffi import c_api, errors

IMPLEMENTATIONS: dict[str, Callable[[Any], Any]] = {}
"""By name, as in `c_api.FUNCTIONS`. Those of the errors return what C wants, the others nothing."""

_RETURNS = {"Error_Create": ctypes.c_void_p, "Error_GetMessage": None, "Error_Destroy": None}


def implements(name: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Make a function the implementation of `XLA_FFI_<name>`."""

    def add(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        assert name not in IMPLEMENTATIONS, name
        IMPLEMENTATIONS[name] = function
        return function

    return add


@cache
def api_table() -> c_api.Api:
    """The table. It lives as long as the process: handlers keep its address."""
    version = c_api.ApiVersion(
        major_version=c_api.API_VERSION[0], minor_version=c_api.API_VERSION[1]
    )
    table = c_api.Api(api_version=version)
    table.callbacks = []
    for name, structure in c_api.FUNCTIONS.items():
        function = IMPLEMENTATIONS[name]
        returns = _RETURNS.get(name, ctypes.c_void_p)
        guarded = function if name in _RETURNS else _with_errors(function)
        callback = ctypes.CFUNCTYPE(returns, ctypes.POINTER(structure))(_of_contents(guarded))
        table.callbacks.append(callback)
        setattr(table, name, ctypes.cast(callback, ctypes.c_void_p).value)
    return table


def api_pointer() -> int:
    return ctypes.addressof(api_table())


def _of_contents(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda pointer: function(pointer.contents)


def _with_errors(function: Callable[[Any], None]) -> Callable[[Any], int | None]:
    def call(arguments: Any) -> int | None:
        try:
            function(arguments)
        except HloError as error:
            return errors.create_from(error)
        except Exception as error:  # nothing may be raised into C
            return errors.create(13, f"{type(error).__name__}: {error}")
        return None

    return call
