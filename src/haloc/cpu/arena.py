"""Static memory: where each value of a program lives, decided while walking it in order."""

from __future__ import annotations

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""


class Slot:
    """Memory for one array, as the program sees it.

    kind: "arena", "argument", "result", "constant" or "run". place: byte offset in the arena, the
    constant pool or the run's context, else the number of the argument or result. references: how
    many live values are this memory; at zero an arena slot is free again, unless `pinned`.
    """

    __slots__ = ("kind", "pinned", "place", "references", "size_bytes")

    def __init__(self, kind: str, place: int, size_bytes: int, pinned: bool = False):
        self.kind = kind
        self.place = place
        self.size_bytes = size_bytes
        self.references = 0
        self.pinned = pinned

    @property
    def is_writable(self) -> bool:
        return self.kind in ("arena", "result")

    def __repr__(self) -> str:
        return f"<{self.kind} {self.place}, {self.size_bytes} B, {self.references} references>"


class Arena:
    """First-fit allocator of byte ranges; `size_bytes` is the most ever in use."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._free: list[tuple[int, int]] = []  # (offset, size), by offset

    def allocate(self, size_bytes: int) -> Slot:
        size = max(ALIGNMENT, -(-size_bytes // ALIGNMENT) * ALIGNMENT)
        fitting = [(n, at, k) for k, (at, n) in enumerate(self._free) if n >= size]
        if fitting:
            n, at, k = min(fitting)
            if n == size:
                del self._free[k]
            else:
                self._free[k] = (at + size, n - size)
            return Slot("arena", at, size_bytes)
        at = self.size_bytes
        if self._free and sum(self._free[-1]) == at:
            at = self._free.pop()[0]
        self.size_bytes = at + size
        return Slot("arena", at, size_bytes)

    def free(self, slot: Slot) -> None:
        size = max(ALIGNMENT, -(-slot.size_bytes // ALIGNMENT) * ALIGNMENT)
        self._free.append((slot.place, size))
        self._free.sort()
        merged: list[tuple[int, int]] = []
        for at, n in self._free:
            if merged and sum(merged[-1]) == at:
                merged[-1] = (merged[-1][0], merged[-1][1] + n)
            else:
                merged.append((at, n))
        self._free = merged
