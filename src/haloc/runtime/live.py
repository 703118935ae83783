"""Which objects of a client are alive, newest first, without keeping any alive."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar
from weakref import ref

T = TypeVar("T")


class LiveObjects(Generic[T]):
    """Adding costs a weak reference and a list append; dead entries are swept now and then.

    Weak references have no callbacks here: those would cost every short-lived array more than the
    rest of its life.
    """

    _SWEEP_AT = 1024

    def __init__(self) -> None:
        self._refs: list[ref[T]] = []
        self._sweep_at = self._SWEEP_AT
        self._sweeping = threading.Lock()

    def add(self, item: T) -> None:
        refs = self._refs
        refs.append(ref(item))
        if len(refs) > self._sweep_at:
            self._sweep()

    def newest_first(self) -> list[T]:
        return [item for r in reversed(self._refs[:]) if (item := r()) is not None]

    def _sweep(self) -> None:
        if not self._sweeping.acquire(blocking=False):
            return
        try:
            # Others append meanwhile: only the entries seen are replaced, in one list operation.
            seen = self._refs[:]
            self._refs[: len(seen)] = [r for r in seen if r() is not None]
            self._sweep_at = 2 * len(self._refs) + self._SWEEP_AT
        finally:
            self._sweeping.release()
