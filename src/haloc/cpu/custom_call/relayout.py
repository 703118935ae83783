"""Arrays in the layouts that a custom-call asks for: copied on the way in and on the way out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from haloc.cpu.writer import Function
from haloc.ir.shape import Shape

_ALIGNMENT = 64


class Relayout:
    """Scratch copies of those of a stub's buffers that are not row-major for the target.

    shapes: of the buffers, with the target's layouts. is_used: False for targets that take arrays
    by their values, whatever the layout. scratch_bytes: what the copies take.
    """

    def __init__(self, f: Function, shapes: Sequence[Shape], is_used: bool):
        self._f = f
        self._shapes = shapes
        self._offsets: dict[int, int] = {}
        self.scratch_bytes = 0
        for k, shape in enumerate(shapes):
            if is_used and not shape.is_row_major:
                self._offsets[k] = self.scratch_bytes
                self.scratch_bytes += -(-shape.byte_size // _ALIGNMENT) * _ALIGNMENT

    def given(self, k: int, place: str) -> str:
        """The pointer to give the target for an operand whose row-major array is at `place`."""
        if k not in self._offsets:
            return place
        copy = self._scratch(k)
        self._copy(self._shapes[k], row_major=place, laid_out=copy, inwards=True)
        return copy

    def empty(self, k: int, place: str) -> str:
        """The pointer to give the target for a result."""
        return self._scratch(k) if k in self._offsets else place

    def taken(self, k: int, given: str, place: str) -> None:
        """After the call: move the result from the pointer given to its row-major `place`."""
        if k in self._offsets:
            self._copy(self._shapes[k], row_major=place, laid_out=given, inwards=False)

    def _scratch(self, k: int) -> str:
        return self._f.element("%scratch", "i8", self._offsets[k])

    def _copy(self, shape: Shape, row_major: str, laid_out: str, inwards: bool) -> None:
        f = self._f
        element = f"i{8 * shape.dtype.byte_size}"
        assert shape.layout is not None
        order = shape.layout.minor_to_major[::-1]
        with ExitStack() as loops:
            index = {d: loops.enter_context(f.loop(0, shape.dims[d])) for d in order}
            by_rows = f.element(row_major, element, self._offset(shape, index, range(shape.rank)))
            in_layout = f.element(laid_out, element, self._offset(shape, index, order))
            source, target = (by_rows, in_layout) if inwards else (in_layout, by_rows)
            f.store(element, f.load(element, source, 1), target, 1)

    def _offset(self, shape: Shape, index: dict[int, str], order: Sequence[int]) -> str:
        offset = "0"
        for d in order:
            offset = self._f.add(self._f.mul(offset, shape.dims[d]), index[d])
        return offset
