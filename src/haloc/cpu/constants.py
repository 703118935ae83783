"""The constants of a program, in one block of memory that its code reads."""

from __future__ import annotations

import numpy as np

from haloc.cpu.arena import ALIGNMENT, Slot
from haloc.ir.literal import Literal


class ConstantPool:
    """Equal literals share their bytes."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._places: dict[Literal, int] = {}

    def slots(self, literal: Literal) -> list[Slot]:
        return [self._slot(leaf) for leaf in literal.leaves()]

    def _slot(self, leaf: Literal) -> Slot:
        size = leaf.shape.byte_size
        place = self._places.get(leaf)
        if place is None:
            place = self._places[leaf] = self.size_bytes
            self.size_bytes += -(-size // ALIGNMENT) * ALIGNMENT
        return Slot("constant", place, size, pinned=True)

    def block(self) -> np.ndarray:
        """The pool's bytes, aligned."""
        block = aligned_block(np.zeros(self.size_bytes, np.uint8))
        for leaf, place in self._places.items():
            if leaf.value is not None:
                data = np.frombuffer(leaf.array.tobytes(), np.uint8)
                block[place : place + data.size] = data
        return block


def aligned_block(data: np.ndarray) -> np.ndarray:
    """A copy of bytes that begins at a multiple of the alignment."""
    raw = np.empty(data.size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    block = raw[start : start + data.size]
    block[:] = data
    return block
