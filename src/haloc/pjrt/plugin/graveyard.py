"""Forgetting what C has destroyed."""

from __future__ import annotations

import ctypes

from haloc.pjrt.native.library import library
from haloc.pjrt.plugin.executable import EXECUTABLES


def forget_destroyed() -> None:
    """Drop executables whose handles C has destroyed since the last time."""
    native = library()
    grave = native.call("exhume")
    while grave:
        following, handle = (ctypes.c_uint64 * 2).from_address(grave)
        native.call("heap_free", grave, 64)
        EXECUTABLES.pop(handle, None)
        grave = following
