"""Puts images into memory: map, copy, write addresses, protect. Needs nothing but the C library."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from haloc.cpu.object.image import Image
from haloc.errors import FailedPreconditionError, ResourceExhaustedError

Resolve = Callable[[str], int]
"""The address of a symbol."""


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    libc.mmap.restype = pointer
    libc.mmap.argtypes = [pointer, size, number, number, number, ctypes.c_longlong]
    libc.munmap.argtypes = [pointer, size]
    libc.mprotect.argtypes = [pointer, size, number]
    return libc


class LoadedImage:
    """An image in memory, from which its functions run until this object goes.

    Code can be executed and not written, constants neither, from before the constructor returns.
    FailedPreconditionError for an image of another machine or a symbol that this process has not,
    ResourceExhaustedError where there is no memory.
    """

    _is_mapped = False

    def __init__(self, image: Image, resolve: Resolve):
        machine = platform.machine().lower().replace("amd64", "x86_64").replace("arm64", "aarch64")
        if image.machine != machine:
            raise FailedPreconditionError(
                f"the program is compiled for {image.machine}; this machine is {machine}"
            )
        self._size_bytes = image.size_bytes
        # Resolving may fail, and may load other images: before there is anything to give back.
        addresses = [(resolve(name), place) for name, place in image.imports]
        libc = _libc()
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        writable = mmap.PROT_READ | mmap.PROT_WRITE
        address = libc.mmap(None, image.size_bytes, writable, private, -1, 0)
        if address in (None, ctypes.c_void_p(-1).value):
            _fail(image, "mmap")
        self._address, self._is_mapped, self._unmap = address, True, libc.munmap
        ctypes.memmove(address, image.data, len(image.data))
        for value, place in addresses:
            ctypes.memmove(address + place, struct.pack("<Q", value), 8)
        for place, offset in image.rebases:
            ctypes.memmove(address + place, struct.pack("<Q", address + offset), 8)
        executable = mmap.PROT_READ | mmap.PROT_EXEC
        constants = address + image.code_bytes
        if libc.mprotect(address, image.code_bytes, executable) or (
            image.constant_bytes and libc.mprotect(constants, image.constant_bytes, mmap.PROT_READ)
        ):
            _fail(image, "mprotect")
        if machine == "aarch64":
            _clear_instruction_cache(address, image.code_bytes)
        self._exports = image.exports

    def address(self, symbol: str) -> int:
        """Where an exported function is. KeyError if the image does not export it."""
        return self._address + self._exports[symbol]

    def keep_forever(self) -> None:
        """For code that threads run until the process ends, beyond the interpreter's shutdown."""
        self._is_mapped = False

    def __del__(self) -> None:
        if self._is_mapped:
            self._unmap(self._address, self._size_bytes)


def _fail(image: Image, call: str) -> None:
    reason = os.strerror(ctypes.get_errno())
    raise ResourceExhaustedError(
        f"{call} of {image.size_bytes} bytes for a program's code: {reason}"
    )


def _clear_instruction_cache(address: int, size_bytes: int) -> None:
    """ARM's instruction caches do not see what was written as data."""
    start, size, end = (
        ctypes.c_void_p(address),
        ctypes.c_size_t(size_bytes),
        ctypes.c_void_p(address + size_bytes),
    )
    if platform.system() == "Darwin":
        _libc().sys_icache_invalidate(start, size)
    else:
        ctypes.CDLL("libgcc_s.so.1")["__clear_cache"](start, end)
