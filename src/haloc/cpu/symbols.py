"""Addresses of what native programs call by name: haloc's own functions, LAPACK, the C library.

A program refers to everything outside itself by name only, so that it can be stored and loaded in
another process. A module that offers symbols to programs has a line in PROVIDERS.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module

from haloc.errors import FailedPreconditionError

PROVIDERS: dict[str, tuple[str, str]] = {
    "haloc_parallel_for": ("haloc.cpu.pool", "address_of"),
    "haloc_meet": ("haloc.cpu.pool", "address_of"),
    "haloc_mail_": ("haloc.cpu.pool", "address_of"),
    "haloc_gang_run": ("haloc.cpu.pool", "address_of"),
    "haloc_rng_state": ("haloc.cpu.rng_state", "address_of"),
    "haloc_lapack_": ("haloc.cpu.linalg.lapack", "address_of"),
}
"""{beginning of the symbols: (module, function of a symbol that returns its address)}. The module
is imported when a program needs it."""

CALL_SITE_PREFIX = "haloc_site_"
"""Begins the symbols of custom-calls' sites: each program has its own."""

_LIBRARIES = (
    (None, "libSystem.dylib") if sys.platform == "darwin" else (None, "libm.so.6", "libgcc_s.so.1")
)
"""Where LLVM's own calls go (memcpy, fmod, __udivti3); None: what the process has loaded."""


def provider_of(symbol: str) -> str | None:
    """The module that offers a symbol; None for the C library."""
    for beginning, (module, _) in PROVIDERS.items():
        if symbol.startswith(beginning):
            return module
    return None


def resolve(symbol: str) -> int:
    """The address of a symbol in this process; FailedPreconditionError if it has none."""
    for beginning, (module, function) in PROVIDERS.items():
        if symbol.startswith(beginning):
            provider: Callable[[str], int] = getattr(import_module(module), function)
            return provider(symbol)
    for library in _libraries():
        try:
            found = getattr(library, symbol)
        except AttributeError:
            continue
        return ctypes.cast(found, ctypes.c_void_p).value or 0
    raise FailedPreconditionError(f"the program calls {symbol!r}, which this process does not have")


@cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    libraries = []
    for name in _LIBRARIES:
        try:
            libraries.append(ctypes.CDLL(name))
        except OSError:  # a library that this system does without
            continue
    return tuple(libraries)
