"""Packing whole panels of an operand that strides describe: vector copies and transposes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from haloc.cpu.contraction import elements
from haloc.cpu.contraction.text import I64, Code, vector
from haloc.cpu.contraction.view import View, added


class BlockPacking(Enum):
    ROWS = "x is contiguous in memory and in the panel: one copy a k"
    TO_COLUMNS = "k is contiguous in memory, x in the panel: square transposes"
    TO_ROWS = "x is contiguous in memory, k in the panel: square transposes"


def block_packing(view: View, lanes: int, x_step: int, k_step: int) -> BlockPacking | None:
    """How whole panels of a view can be packed at once, if they can."""
    x, k = view.stride("x"), view.stride("k")
    if x is None or k is None or lanes == 1 or elements.is_tabled(view.dtype):
        return None
    if view.dtype.is_complex:
        return None
    if x_step == 1 and x == 1:
        return BlockPacking.ROWS
    if x_step == 1 and k == 1:
        return BlockPacking.TO_COLUMNS
    return BlockPacking.TO_ROWS if k_step == 1 and x == 1 else None


class BlockPacker:
    """Emits panels of `width` columns, all inside the array, for all of kn values of k.

    base: the element offset of (x0, k0)."""

    def __init__(self, code: Code, view: View, type: str, width: int):
        self.code = code
        self.view = view
        self.type = type
        self.width = width
        self.size = elements.type_bytes(type)
        x, k = view.stride("x"), view.stride("k")
        assert x is not None and k is not None
        self.x_stride, self.k_stride = x, k

    def base(self, fixed: Mapping[int, I64], x0: I64, k0: I64) -> I64:
        code, view = self.code, self.view
        sums = added(code, fixed, view.flat_sums(code, "x", x0), view.flat_sums(code, "k", k0))
        start = sum(c.start * c.stride for c in view.coordinates)
        return code.add(view.plain_offset(code, sums), start)

    def _read(self, offset: I64, width: int) -> str:
        src = self.code.offset(elements.storage_type(self.view.dtype), "%src", offset)
        return elements.read(self.code, self.view.dtype, src, width, self.type)

    def rows(self, base: I64, count: I64, panel_step: int) -> None:
        """All panels of columns [0, count): row after row, as memory has them."""
        code = self.code
        with code.loop(0, "%kn") as (k, _):
            line = code.add(base, code.mul(k, self.k_stride))
            column = code.offset(self.type, "%dst", code.mul(k, self.width))
            with code.loop(0, count, self.width) as (x, _):
                value = self._read(code.add(line, x), self.width)
                at = code.mul(code.div(x, self.width), panel_step)
                slot = code.offset(self.type, column, at)
                code.store(self.type, value, slot, self.size, self.width)

    def transposes(
        self, base: I64, panel: str, side: int, steps: tuple[int, int], to_columns: bool
    ) -> I64:
        """Does whole squares only: returns the number of k that are done. steps: of x and k in the
        panel, one of them 1."""
        code, (x_step, k_step) = self.code, steps
        whole = code.ins(f"and i64 %kn, {-side}")
        read_step = self.x_stride if to_columns else self.k_stride
        write_step = k_step if to_columns else x_step
        # Along memory in the inner loop.
        outer, inner = (self.width, whole) if to_columns else (whole, self.width)
        with code.loop(0, outer, side) as (i, _), code.loop(0, inner, side) as (j, _):
            x, k = (i, j) if to_columns else (j, i)
            at = code.add(base, code.mul(x, self.x_stride), code.mul(k, self.k_stride))
            lines = [self._read(code.add(at, i * read_step), side) for i in range(side)]
            corner = code.add(code.mul(x, x_step), code.mul(k, k_step))
            for i, line in enumerate(transposed(code, self.type, lines)):
                slot = code.offset(self.type, panel, code.add(corner, i * write_step))
                code.store(self.type, line, slot, self.size, side)
        return whole


def transposed(code: Code, type: str, lines: list[str]) -> list[str]:
    """The columns of a square given by its rows; the side is a power of two."""
    side = len(lines)
    t = vector(type, side)
    distance = side // 2
    while distance:
        swapped = list(lines)
        for i in range(side):
            if i & distance:
                continue
            a, b = lines[i], lines[i + distance]
            low = [j if not j & distance else side + j - distance for j in range(side)]
            high = [j + distance if not j & distance else side + j for j in range(side)]
            for row, chosen in ((i, low), (i + distance, high)):
                mask = ", ".join(f"i32 {c}" for c in chosen)
                swapped[row] = code.ins(f"shufflevector {t} {a}, {t} {b}, <{side} x i32> <{mask}>")
        lines = swapped
        distance //= 2
    return lines
