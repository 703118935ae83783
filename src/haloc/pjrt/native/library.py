"""The native half of the plugin, compiled once a process."""

from __future__ import annotations

import ctypes
import platform
from dataclasses import dataclass
from functools import cache

from haloc.codegen.target import host_target
from haloc.cpu.jit import compile_text
from haloc.cpu.object.atom import split
from haloc.cpu.object.elf import read_elf
from haloc.cpu.object.image import link
from haloc.cpu.object.loader import LoadedImage
from haloc.pjrt.native.buffers import BUFFERS
from haloc.pjrt.native.context import CONTEXT
from haloc.pjrt.native.events import ERRORS, EVENTS
from haloc.pjrt.native.execute import EXECUTE
from haloc.pjrt.native.getters import getters
from haloc.pjrt.native.graveyard import GRAVEYARD, NOTICE
from haloc.pjrt.native.handles import Handle
from haloc.pjrt.native.heap import HEAP
from haloc.pjrt.native.hooks import HOOKS
from haloc.pjrt.native.patience import PATIENCE
from haloc.pjrt.native.sections import in_sections
from haloc.pjrt.native.transfers import TRANSFERS

_DECLARATIONS = """declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i32 @usleep(i32)"""
_NO_POINTER = {
    "storage_retain": None,
    "storage_release": None,
    "heap_free": None,
    "heap_usage": None,
    "heap_clear_peak": None,
    "set_hook": None,
    "set_lock_functions": None,
    "buffer_delete": ctypes.c_bool,
    "buffer_await": None,
    "event_release": None,
    "event_retain": None,
    "event_set": ctypes.c_bool,
    "error_free": None,
}
"""What functions for Python return, where it is not 64 bits."""


@dataclass(frozen=True)
class Library:
    """plugin: the handle with the plugin's own attributes."""

    code: LoadedImage
    plugin: Handle

    def address(self, symbol: str) -> int:
        """Of a function; 0 if there is none of this name."""
        try:
            return self.code.address(symbol)
        except KeyError:
            return 0

    def call(self, symbol: str, *arguments: int) -> int:
        """Call a native function of 64-bit arguments and pointers from Python."""
        return _prototype(symbol, len(arguments))(*arguments) or 0


@cache
def _prototype(symbol: str, arguments: int) -> ctypes._CFuncPtr:
    result = _NO_POINTER.get(symbol, ctypes.c_void_p)
    kinds = (ctypes.c_int64 for _ in range(arguments))
    return ctypes.PYFUNCTYPE(result, *kinds)(library().address(symbol))


@cache
def library() -> Library:
    """Compiled at the first call. PYFUNCTYPE: these functions are too short to give up the GIL."""
    plugin = Handle("Plugin")
    parts = [
        HEAP,
        *getters(plugin.address),
        BUFFERS,
        EVENTS,
        ERRORS,
        HOOKS,
        PATIENCE,
        TRANSFERS,
        EXECUTE,
        GRAVEYARD,
        NOTICE,
        CONTEXT,
    ]
    text = in_sections("\n".join([_DECLARATIONS, *parts]))
    atoms = split(read_elf(compile_text(text, host_target(), 2)))
    exports = [line.split("@")[1].split("(")[0] for line in text.splitlines() if _is_export(line)]
    libc = ctypes.CDLL(None)
    image = link(atoms, exports, platform.machine())
    code = LoadedImage(image, lambda name: ctypes.cast(getattr(libc, name), ctypes.c_void_p).value)
    code.keep_forever()
    return Library(code, plugin)


def _is_export(line: str) -> bool:
    return line.startswith("define ") and "internal" not in line
