"""A pool of 64-byte-aligned host memory that keeps the pages it has touched.

Fresh pages cost more than most kernels that fill them (a 64 MB result: 15 ms of page faults), so
the memory of a dead array waits here for the next array of its size class.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np

from haloc.errors import ResourceExhaustedError

ALIGNMENT_BYTES = 64
_SLAB_BYTES = 256 * 1024
_LARGEST_SLAB_CLASS_BYTES = 16 * 1024
_PAGE_BYTES = 4096


class Block:
    """Memory of one size class at `pointer`; goes back to its pool when nothing refers to it.

    An array, a clone of it and NumPy views of it share one block. NumPy reads it as its bytes.
    """

    __slots__ = ("free", "owner", "pointer", "pool", "size_bytes")

    is_owned = True
    """The memory is haloc's: it may be given to a program's result (donation)."""

    def __init__(self, pointer: int, size_bytes: int, free: list[_Chunk], pool: MemoryPool):
        self.pointer = pointer
        self.size_bytes = size_bytes
        self.free = free
        self.pool = pool
        self.owner: Any = None

    def __del__(self) -> None:
        # Runs at any point of any thread, the collector's included: it takes no lock.
        self.free.append((self.pointer, self.owner))
        if self.size_bytes >= self.pool.trim_from_bytes:
            self.pool.trim()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return array_interface(self.pointer, self.size_bytes, read_only=True)


_Chunk = tuple[int, Any]


class HostBlock:
    """Memory of somebody else's array, kept alive and never written."""

    __slots__ = ("owner", "pointer", "size_bytes")

    is_owned = False

    def __init__(self, array: np.ndarray, pointer: int):
        self.pointer = pointer
        self.size_bytes = array.nbytes
        self.owner = array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return array_interface(self.pointer, self.size_bytes, read_only=True)


def array_interface(pointer: int, size_bytes: int, *, read_only: bool) -> dict[str, Any]:
    """What makes NumPy see memory as a one-dimensional array of bytes."""
    return {
        "shape": (size_bytes,),
        "typestr": "|u1",
        "data": (pointer, read_only),
        "version": 3,
    }


class MemoryPool:
    """Blocks by size class: powers of two with three steps between (64, 80, 96, 112, 128, ...).

    limit_bytes bounds the freed memory that is kept; the memory in use has no bound here. Small
    classes are cut from slabs and always kept. The bound is enforced when a block of
    `trim_from_bytes` or more dies and when new memory is fetched. Safe to use from any thread.

    held_bytes, peak_held_bytes: fetched from the system and not given back, now and at most; in
    use or free.
    """

    trim_from_bytes = _SLAB_BYTES

    def __init__(self, limit_bytes: int = 4 << 30):
        self.limit_bytes = limit_bytes
        self._free: dict[int, list[_Chunk]] = {}
        self._class_of: dict[int, tuple[int, list[_Chunk]]] = {}
        self._trimming = threading.Lock()
        self._fetching = threading.Lock()
        self._fetched_bytes = self._returned_bytes = self.peak_held_bytes = 0

    def allocate(self, size_bytes: int) -> Block:
        """A block of at least `size_bytes`; what it holds is arbitrary.

        Raises ResourceExhaustedError when the system gives no more memory.
        """
        found = self._class_of.get(size_bytes)
        if found is None:
            found = self._size_class(size_bytes)
        class_bytes, free = found
        try:
            pointer, owner = free.pop()
        except IndexError:
            pointer, owner = self._refill(class_bytes, free)
        block = Block(pointer, class_bytes, free, self)
        block.owner = owner
        return block

    @property
    def held_bytes(self) -> int:
        return self._fetched_bytes - self._returned_bytes

    def cached_bytes(self) -> int:
        """Bytes that are free and kept for reuse, small classes included."""
        return sum(size * len(free) for size, free in list(self._free.items()))

    def trim(self, limit_bytes: int | None = None) -> None:
        """Give the largest free blocks back to the system until the limit holds."""
        limit = self.limit_bytes if limit_bytes is None else limit_bytes
        excess = self.cached_bytes() - limit
        # A collection inside this block may come back here: then the outer call does the work.
        if excess <= 0 or not self._trimming.acquire(blocking=False):
            return
        try:
            for size in sorted(self._free, reverse=True):
                if size <= _LARGEST_SLAB_CLASS_BYTES:
                    break
                free = self._free[size]
                while excess > 0 and free:
                    try:
                        free.pop(0)
                    except IndexError:
                        break
                    excess -= size
                    self._returned_bytes += size
        finally:
            self._trimming.release()

    def _size_class(self, size_bytes: int) -> tuple[int, list[_Chunk]]:
        class_bytes = size_class_bytes(size_bytes)
        found = (class_bytes, self._free.setdefault(class_bytes, []))
        if len(self._class_of) < 4096:  # a bound on the table, not on sizes
            self._class_of[size_bytes] = found
        return found

    def _refill(self, class_bytes: int, free: list[_Chunk]) -> _Chunk:
        if class_bytes > _LARGEST_SLAB_CLASS_BYTES:
            self.trim()
            return self._fetch(class_bytes)
        base, owner = self._fetch(_SLAB_BYTES)
        chunks = [(base + at, owner) for at in range(0, _SLAB_BYTES - class_bytes + 1, class_bytes)]
        free.extend(chunks[1:])
        return chunks[0]

    def _fetch(self, size_bytes: int) -> _Chunk:
        chunk = _system_memory(size_bytes)
        with self._fetching:  # not taken by `trim`, which may run in the middle of anything
            self._fetched_bytes += size_bytes
            self.peak_held_bytes = max(self.peak_held_bytes, self.held_bytes)
        return chunk


def memory_limit_bytes() -> int:
    """Bytes of memory that this machine has, or that the process's cgroup allows."""
    machine_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        allowed = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return machine_bytes
    return min(machine_bytes, int(allowed)) if allowed.isdigit() else machine_bytes


def size_class_bytes(size_bytes: int) -> int:
    """The size class of a request: at most a quarter more (or 64 bytes), a multiple of 64."""
    size = max(size_bytes, ALIGNMENT_BYTES)
    step = max(ALIGNMENT_BYTES, 1 << max(0, (size - 1).bit_length() - 3))
    return -(-size // step) * step


def _system_memory(size_bytes: int) -> _Chunk:
    """(aligned address, the object that owns the memory)."""
    alignment = _PAGE_BYTES if size_bytes >= _SLAB_BYTES else ALIGNMENT_BYTES
    try:
        owner = np.empty(size_bytes + alignment, np.uint8)
    except (MemoryError, ValueError):
        raise ResourceExhaustedError(
            f"Out of memory while trying to allocate {size_bytes} bytes."
        ) from None
    address = owner.__array_interface__["data"][0]
    return -(-address // alignment) * alignment, owner
