"""Packing: an operand's block is copied, converted and zero-filled into panels.

A panel holds `width` rows (or columns) x and some k; element (x, k) of it lies at
x * x_step + k * k_step. Lines of memory are read along the group (x or k) whose minor axis is
contiguous. Where a view's coordinates leave the array the panel gets zeros, which is how
convolutions pad.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from haloc.cpu.contraction import elements
from haloc.cpu.contraction.pack_blocks import BlockPacker, BlockPacking, block_packing
from haloc.cpu.contraction.text import I64, Code
from haloc.cpu.contraction.view import Coordinate, View, added


@dataclass(frozen=True, slots=True)
class Panels:
    """The packed form: steps in elements of `type`; width counts real columns.

    is_paired: complex right-hand sides. Column n of row k becomes columns 2n, 2n+1 of rows 2k
    (re, im) and 2k+1 (-im, re), so that a real product with interleaved numbers is complex.
    """

    type: str
    lanes: int
    width: int
    x_step: int
    k_step: int
    panel_step: int
    is_paired: bool = False
    preferred_run: str = "k"

    @property
    def pair(self) -> int:
        return 2 if self.is_paired else 1


def run_group(view: View, preferred: str) -> str:
    """Which flat index, x or k, to read along; `preferred` where both are as good."""
    strides = {g: view.minor_stride(g) for g in ("x", "k")}
    if strides["k"] == 1 or not view.groups["x"]:
        return "k"
    if strides["x"] == 1 or not view.groups["k"]:
        return "x"
    moved = {g: abs(_minor_step(view, g)) for g in ("x", "k")}
    if moved["x"] == moved["k"]:
        return preferred
    return "x" if moved["x"] < moved["k"] else "k"


def _minor_step(view: View, group: str) -> int:
    steps = view.groups[group][-1].steps
    return sum(view.coordinates[c].stride * s for c, s in steps.items())


def pack_function(
    symbol: str, view: View, panels: Panels, declares: dict[str, None], attributes: str
) -> str:
    """define internal void @symbol(ptr src, i64 g, i64 x0, i64 xn, i64 k0, i64 kn, ptr dst):
    pack x0 <= x < x0 + xn (padded with zeros to whole panels), k0 <= k < k0 + kn of batch g.

    Needs xn, kn > 0.
    """
    code = Code(declares)
    packer = _Packer(code, view, panels, symbol)
    fixed = view.flat_sums(code, "g", "%g")
    width = panels.width // panels.pair
    done = packer.whole_rows(fixed)
    with code.loop(done, "%xn", width) as (first, _):
        panel_offset = code.mul(code.div(first, width), panels.panel_step)
        panel = code.offset(panels.type, "%dst", panel_offset)
        x0, here = code.add("%x0", first), code.min(width, code.sub("%xn", first))
        packer.panel(fixed, x0, here, panel)
    i64s = [f"i64 %{n}" for n in ("g", "x0", "xn", "k0", "kn")]
    text = code.function(symbol, ["ptr %src", *i64s, "ptr %dst"], attributes)
    return packer.copy_text(declares, attributes) + text


class _Packer:
    """Emits lines: runs along one group, at fixed indices of the others."""

    def __init__(self, code: Code, view: View, panels: Panels, symbol: str):
        self.code = code
        self.view = view
        self.panels = panels
        self.run = run_group(view, panels.preferred_run)
        self.x_step = panels.x_step * panels.pair
        self.k_step = panels.k_step * panels.pair
        self.step = self.k_step if self.run == "k" else self.x_step
        self.width = panels.width // panels.pair
        form = block_packing(view, panels.lanes, panels.x_step, panels.k_step)
        self.form = None if panels.is_paired else form
        self.copy_symbol = f"{symbol}_run"
        axes = view.groups[self.run]
        self.axis_steps: Mapping[int, int] = axes[-1].steps if axes else {}
        self.stride = _minor_step(view, self.run) if axes else 1
        # A run is checked element by element only where no interval of it is inside the array.
        self.is_checked = any(
            view.coordinates[c].size is not None and (s < 0 or view.coordinates[c].dilation > 1)
            for c, s in self.axis_steps.items()
        )

    def whole_rows(self, fixed: Mapping[int, I64]) -> I64:
        """Pack whole panels of an operand whose x is contiguous; returns the number of x done."""
        if self.form is not BlockPacking.ROWS:
            return 0
        code, width = self.code, self.width
        done = code.sub("%xn", code.mod("%xn", width))
        blocks = BlockPacker(code, self.view, self.panels.type, width)
        blocks.rows(blocks.base(fixed, "%x0", "%k0"), done, self.panels.panel_step)
        return done

    def panel(self, fixed: Mapping[int, I64], x0: I64, here: I64, panel: str) -> None:
        """x0 <= x < x0 + here, zeros up to the panel's width, for all k of the block."""
        code, panels = self.code, self.panels
        if self.form not in (BlockPacking.TO_COLUMNS, BlockPacking.TO_ROWS):
            self._lines(fixed, x0, here, panel, 0)
            return
        is_whole = code.ins(f"icmp eq i64 {here}, {self.width}")
        with code.when(is_whole):
            blocks = BlockPacker(code, self.view, panels.type, self.width)
            base, side = blocks.base(fixed, x0, "%k0"), min(panels.lanes, 8)
            steps, to_columns = (self.x_step, self.k_step), self.form is BlockPacking.TO_COLUMNS
            done = blocks.transposes(base, panel, side, steps, to_columns)
            self._lines(fixed, x0, self.width, panel, done)
        with code.when(code.ins(f"xor i1 {is_whole}, true")):
            self._lines(fixed, x0, here, panel, 0)

    def _lines(self, fixed: Mapping[int, I64], x0: I64, here: I64, panel: str, done: I64) -> None:
        """The panel line by line, from `done` k on."""
        code, view, type = self.code, self.view, self.panels.type
        if self.run == "k":
            count = code.sub("%kn", done)
            with code.loop(0, here) as (i, _):
                at = code.add(code.mul(i, self.x_step), code.mul(done, self.k_step))
                sums = added(code, fixed, view.flat_sums(code, "x", code.add(x0, i)))
                self.line(sums, code.add("%k0", done), count, code.offset(type, panel, at))
            with code.loop(here, self.width) as (i, _):
                line = code.offset(type, panel, code.mul(i, self.x_step))
                self.zero(line, done, "%kn")
            return
        with code.loop(done, "%kn") as (i, _):
            line = code.offset(type, panel, code.mul(i, self.k_step))
            sums = added(code, fixed, view.flat_sums(code, "k", code.add("%k0", i)))
            self.line(sums, x0, here, line)
            self.zero(line, here, self.width)

    def line(self, sums: Mapping[int, I64], begin: I64, count: I64, dst: str) -> None:
        """Elements begin <= j < begin + count along the run group, to dst, dst + step, ..."""
        code, axes = self.code, self.view.groups[self.run]
        if len(axes) <= 1:
            self._segment(sums, begin, code.add(begin, count), begin, dst)
            return
        inner = axes[-1].size
        end = code.add(begin, count)
        outer_end = code.add(code.div(code.sub(end, 1), inner), 1)
        with code.loop(code.div(begin, inner), outer_end) as (outer, _):
            base = code.mul(outer, inner)
            low = code.sub(code.max(base, begin), base)
            high = code.sub(code.min(code.add(base, inner), end), base)
            moved = self.view.sums(
                code, self.run, [*code.split(outer, [a.size for a in axes[:-1]]), 0]
            )
            self._segment(added(code, sums, moved), low, high, code.sub(begin, base), dst)

    def _segment(
        self, sums: Mapping[int, I64], begin: I64, end: I64, origin: I64, dst: str
    ) -> None:
        """begin <= i < end along the minor axis; i goes to dst + (i - origin) * step."""
        code = self.code
        target = code.offset(self.panels.type, dst, code.mul(code.sub(begin, origin), self.step))
        count = code.sub(end, begin)
        base = self.view.plain_offset(code, sums)
        base = code.add(base, *(c.start for c in self.view.coordinates if c.size is None))
        base = code.add(base, code.mul(begin, self._plain_step()))
        bounded = [(n, c) for n, c in enumerate(self.view.coordinates) if c.size is not None]
        if not bounded:
            self._copy(base, count, target)
            return
        if self.is_checked:
            self._checked(sums, begin, count, target)
            return
        low: I64 = 0
        high: I64 = count
        for number, coordinate in bounded:
            value = code.add(sums.get(number, 0), coordinate.start)
            step = self.axis_steps.get(number, 0)
            if step == 0:
                inside, index = inside_bound(code, coordinate, value)
                high = code.ins(f"select i1 {inside}, i64 {high}, i64 0")
                base = code.add(base, code.mul(index, coordinate.stride))
                continue
            value = code.add(value, code.mul(begin, step))
            base = code.add(base, code.mul(value, coordinate.stride))
            low = code.max(low, self._steps_until(code.sub(0, value), step))
            high = code.min(high, self._steps_until(code.sub(coordinate.size, value), step))
        low = code.min(low, count)
        high = code.max(low, high)
        self.zero(target, 0, low)
        base = code.add(base, code.mul(low, self.stride))
        inside = code.offset(self.panels.type, target, code.mul(low, self.step))
        self._copy(base, code.sub(high, low), inside)
        self.zero(target, high, count)

    def _plain_step(self) -> int:
        return sum(
            s * self.view.coordinates[c].stride
            for c, s in self.axis_steps.items()
            if self.view.coordinates[c].size is None
        )

    def _steps_until(self, distance: I64, step: int) -> I64:
        """Steps to cover a distance: its quotient rounded up, 0 when it is negative."""
        code = self.code
        return code.div(code.max(0, code.add(distance, step - 1)), step)

    def _checked(self, sums: Mapping[int, I64], begin: I64, count: I64, target: str) -> None:
        """One element at a time, each coordinate checked."""
        code = self.code
        with code.loop(0, count) as (i, _):
            index = code.add(begin, i)
            moved = {c: code.mul(index, s) for c, s in self.axis_steps.items()}
            inside, offset = inside_bounds(code, self.view, added(code, sums, moved))
            slot = code.offset(self.panels.type, target, code.mul(i, self.step))
            # Outside, element 0 is read and thrown away.
            safe = code.ins(f"select i1 {inside}, i64 {offset}, i64 0")
            self._element(code, self._source(code, "%src", safe), slot, inside)

    # --- Elements and runs --------------------------------------------------------------------

    def _source(self, code: Code, pointer: str, index: I64) -> str:
        storage = elements.storage_type(self.view.dtype)
        return code.offset(storage, pointer, code.mul(index, self.panels.pair))

    def _element(self, code: Code, src: str, slot: str, inside: str = "") -> None:
        panels, dtype = self.panels, self.view.dtype
        size = elements.type_bytes(panels.type)
        if not panels.is_paired:
            placed = [(0, elements.read(code, dtype, src, 1, panels.type))]
        else:
            storage = elements.storage_type(dtype)
            real = elements.read(code, dtype, src, 1, panels.type)
            imag = elements.read(code, dtype, code.offset(storage, src, 1), 1, panels.type)
            minus = code.ins(f"fneg {panels.type} {imag}")
            x, k = panels.x_step, panels.k_step
            placed = [(0, real), (x, imag), (k, minus), (k + x, real)]
        for at, value in placed:
            if inside:
                t = panels.type
                value = code.ins(f"select i1 {inside}, {t} {value}, {t} {zero_of(t)}")
            code.store(panels.type, value, code.offset(panels.type, slot, at), size)

    def _copy(self, base: I64, count: I64, target: str) -> None:
        src = self._source(self.code, "%src", base)
        self.code.do(f"call void @{self.copy_symbol}(ptr {src}, i64 {count}, ptr {target})")

    def copy_text(self, declares: dict[str, None], attributes: str) -> str:
        """define internal void @copy_symbol(ptr src, i64 count, ptr dst): one run."""
        panels, dtype = self.panels, self.view.dtype
        code = Code(declares)
        begin: I64 = 0
        is_plain = self.stride == 1 and self.step == 1 and not panels.is_paired
        if is_plain and not elements.is_tabled(dtype) and panels.lanes > 1:
            begin = code.ins(f"and i64 %count, {-panels.lanes}")
            with code.loop(0, begin, panels.lanes) as (i, _):
                src = self._source(code, "%src", i)
                value = elements.read(code, dtype, src, panels.lanes, panels.type)
                slot = code.offset(panels.type, "%dst", i)
                size = elements.type_bytes(panels.type)
                code.store(panels.type, value, slot, size, panels.lanes)
        with code.loop(begin, "%count") as (i, _):
            src = self._source(code, "%src", code.mul(i, self.stride))
            self._element(code, src, code.offset(panels.type, "%dst", code.mul(i, self.step)))
        return code.function(self.copy_symbol, ["ptr %src", "i64 %count", "ptr %dst"], attributes)

    def zero(self, dst: str, begin: I64, end: I64) -> None:
        """Zeros at begin <= i < end along a line."""
        code, panels = self.code, self.panels
        size = elements.type_bytes(panels.type)
        with code.loop(begin, end) as (i, _):
            slot = code.offset(panels.type, dst, code.mul(i, self.step))
            x, k = panels.x_step, panels.k_step
            for at in (0, x, k, k + x) if panels.is_paired else (0,):
                pointer = code.offset(panels.type, slot, at)
                code.store(panels.type, zero_of(panels.type), pointer, size)


def inside_bound(code: Code, coordinate: Coordinate, value: I64) -> tuple[str, I64]:
    """(whether a bounded coordinate's value is inside the array, the index it stands for)."""
    assert coordinate.size is not None
    limit = (coordinate.size - 1) * coordinate.dilation + 1
    inside = code.ins(f"icmp ult i64 {value}, {limit}")
    if coordinate.dilation == 1:
        return inside, value
    index = code.ins(f"sdiv i64 {value}, {coordinate.dilation}")
    rest = code.ins(f"srem i64 {value}, {coordinate.dilation}")
    even = code.ins(f"icmp eq i64 {rest}, 0")
    return code.ins(f"and i1 {inside}, {even}"), index


def inside_bounds(code: Code, view: View, sums: Mapping[int, I64]) -> tuple[str, I64]:
    """(whether an element is inside the array, its offset if so)."""
    inside = "true"
    offset = view.plain_offset(code, sums)
    for number, coordinate in enumerate(view.coordinates):
        if coordinate.size is None:
            offset = code.add(offset, coordinate.start * coordinate.stride)
            continue
        value = code.add(sums.get(number, 0), coordinate.start)
        here, index = inside_bound(code, coordinate, value)
        inside = here if inside == "true" else code.ins(f"and i1 {inside}, {here}")
        offset = code.add(offset, code.mul(index, coordinate.stride))
    return inside, offset


def zero_of(type: str, width: int = 1) -> str:
    if width > 1:
        return "zeroinitializer"
    return "0.0" if type in ("float", "double") else "0"
