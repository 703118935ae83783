"""A pass: transforms all lines along one direction of an array, in blocks of one line a lane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from haloc.codegen.kernel import PREFIX, Phase
from haloc.cpu.fft.lines import LineFunction
from haloc.cpu.writer import Function

MAX_GROUPS = 16
"""Units a pass is dealt out in, each with work arrays of its own."""

_TILE = 8
"""Elements of a line copied before the next line's: a cache line of c64."""


class Form(Enum):
    """What an array's lines hold of n values."""

    COMPLEX = "complex"
    REAL = "real"
    HALF = "half"
    """The first n // 2 + 1 of n complex numbers; value n - j is the conjugate of value j."""


@dataclass(frozen=True, slots=True)
class Side:
    """Where a pass reads or writes: a buffer, or an offset in scratch in bytes.
    Strides are in the array's elements.

    Element e of line l of batch b is at b * batch + l * line + e * element. For REAL and HALF
    arrays the values of one sequence of `length` lie side by side, and element e of line l is
    number e * element + l * line of it where `is_split`, number e otherwise.
    """

    pointer: str | int
    batch: int
    line: int
    element: int
    form: Form = Form.COMPLEX
    length: int = 0
    is_split: bool = False


@dataclass(frozen=True, slots=True)
class Pass:
    """batches x lines transforms of length n."""

    name: str
    n: int
    batches: int
    lines: int
    source: Side
    target: Side


@dataclass(frozen=True, slots=True)
class Element:
    """LLVM's names for the real type."""

    scalar: str

    @property
    def bytes(self) -> int:
        return 4 if self.scalar == "float" else 8

    @property
    def pair(self) -> str:
        return f"<2 x {self.scalar}>"


def scratch_bytes(function: LineFunction, element: Element, lanes: int) -> int:
    """Of one unit's two work arrays."""
    return 2 * _array_bytes(function, element, lanes)


def _array_bytes(function: LineFunction, element: Element, lanes: int) -> int:
    return -(-function.work * 2 * lanes * element.bytes // 64) * 64


def emit_pass(
    p: Pass, function: LineFunction, element: Element, lanes: int, scratch_at: int
) -> tuple[str, Phase, int]:
    """(text, phase, bytes of scratch it uses from scratch_at on)."""
    blocks_a_batch = -(-p.lines // lanes)
    blocks = p.batches * blocks_a_batch
    groups = min(blocks, MAX_GROUPS)
    size = scratch_bytes(function, element, lanes)
    f = Function(f"{PREFIX}.{p.name}", "ptr %b0, ptr %b1, ptr %scratch, i64 %begin, i64 %end")
    p = replace(p, source=_located(f, p.source), target=_located(f, p.target))
    with f.loop("%begin", "%end") as group:
        a = f.element("%scratch", "i8", f.add(scratch_at, f.mul(group, size)))
        b = f.element(a, "i8", size // 2)
        result = a if function.result_in_a else b
        first, _ = f.divmod(f.mul(group, blocks), groups)
        last, _ = f.divmod(f.mul(f.add(group, 1), blocks), groups)
        with f.loop(first, last) as number:
            batch, block = f.divmod(number, blocks_a_batch)
            line = f.mul(block, lanes)
            count = _count(f, p.lines, lanes, line)
            block_of = _Block(element, p.n, lanes, batch, line, count)
            _copy(f, p.source, block_of, a, _load)
            f.do(f"call void @{function.symbol}(ptr {a}, ptr {b}, i64 {block})")
            _copy(f, p.target, block_of, result, _store)
    cost = 4.0 * p.n * p.n.bit_length() * p.batches * p.lines / groups / 4
    return f.text(), Phase(f"{PREFIX}.{p.name}", groups, cost), groups * size


def _located(f: Function, side: Side) -> Side:
    """The side with its scratch offset made an address."""
    if isinstance(side.pointer, str):
        return side
    return replace(side, pointer=f.op(f"getelementptr i8, ptr %scratch, i64 {side.pointer}"))


def _count(f: Function, lines: int, lanes: int, line: str) -> str:
    """Lines in the block that begins at `line`."""
    if lines % lanes == 0:
        return str(lanes)
    left = f.sub(lines, line)
    return f.op(f"select i1 {f.op(f'icmp slt i64 {left}, {lanes}')}, i64 {left}, i64 {lanes}")


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines [line, line + count) of a batch, n elements each."""

    element: Element
    n: int
    lanes: int
    batch: str
    line: str
    count: str


Place = tuple[str, str, str]
"""Base offset, line, element: as i64."""

Move = Callable[[Function, Side, Element, Place, str], None]
"""Moves one element between memory and a slot of a work array."""


def _copy(f: Function, side: Side, block: _Block, array: str, move: Move) -> None:
    """Between memory and a work array."""
    element, n, lanes = block.element, block.n, block.lanes
    line, count = block.line, block.count
    base = f.mul(block.batch, side.batch)
    is_contiguous = side.form is Form.COMPLEX and side.line == 1

    def by_lane() -> None:
        with f.loop(0, n, _TILE) as tile, f.loop(0, count) as lane:
            stop = f.add(tile, _TILE)
            if n % _TILE:
                is_inside = f.op(f"icmp slt i64 {stop}, {n}")
                stop = f.op(f"select i1 {is_inside}, i64 {stop}, i64 {n}")
            with f.loop(tile, stop) as e:
                slot = f.element(array, element.pair, f.add(f.mul(e, lanes), lane))
                move(f, side, element, (base, f.add(line, lane), e), slot)

    def by_vector() -> None:
        t = f"<{2 * lanes} x {element.scalar}>"
        with f.loop(0, n) as e:
            at = f.add(base, f.add(line, f.mul(e, side.element)))
            memory = f.element(side.pointer, element.pair, at)
            slot = f.element(array, t, e)
            source, target = (memory, slot) if move is _load else (slot, memory)
            f.store(t, f.load(t, source, element.bytes), target, element.bytes)

    if not is_contiguous:
        by_lane()
    elif count == str(lanes):
        by_vector()
    else:
        is_full = f.op(f"icmp eq i64 {count}, {lanes}")
        with f.when(is_full):
            by_vector()
        with f.when(f.op(f"xor i1 {is_full}, true")):
            by_lane()


def _offset(f: Function, side: Side, place: Place) -> str:
    base, line, e = place
    return f.add(base, f.add(f.mul(line, side.line), f.mul(e, side.element)))


def _number(f: Function, side: Side, place: Place) -> str:
    """Which value of its sequence an element is."""
    _, line, e = place
    if not side.is_split:
        return e
    return f.add(f.mul(e, side.element), f.mul(line, side.line))


def _load(f: Function, side: Side, element: Element, place: Place, slot: str) -> None:
    t, pair, align = element.scalar, element.pair, element.bytes
    offset = _offset(f, side, place)
    if side.form is Form.REAL:
        x = f.load(t, f.element(side.pointer, t, offset), align)
        x = f.op(f"insertelement {pair} zeroinitializer, {t} {x}, i64 0")
    elif side.form is Form.COMPLEX:
        x = f.load(pair, f.element(side.pointer, pair, offset), align)
    else:
        x = _load_half(f, side, element, offset, _number(f, side, place))
    f.store(pair, x, slot, align)


def _load_half(f: Function, side: Side, element: Element, offset: str, number: str) -> str:
    """Value `number` of a Hermitian sequence; values that must be real are taken as real."""
    t, pair, align = element.scalar, element.pair, element.bytes
    n = side.length
    mirrored = f.sub(n, number)
    is_high = f.op(f"icmp sgt i64 {number}, {n // 2}")
    jump = f.sub(mirrored, number)
    offset = f.add(offset, f.op(f"select i1 {is_high}, i64 {jump}, i64 0"))
    x = f.load(pair, f.element(side.pointer, pair, offset), align)
    im = f.op(f"extractelement {pair} {x}, i64 1")
    im = f.op(f"select i1 {is_high}, {t} {f.op(f'fneg {t} {im}')}, {t} {im}")
    is_first = f.op(f"icmp eq i64 {number}, 0")
    is_middle = f.op(f"icmp eq i64 {f.mul(number, 2)}, {n}")
    is_real = f.op(f"or i1 {is_first}, {is_middle}")
    im = f.op(f"select i1 {is_real}, {t} 0.0, {t} {im}")
    return f.op(f"insertelement {pair} {x}, {t} {im}, i64 1")


def _store(f: Function, side: Side, element: Element, place: Place, slot: str) -> None:
    t, pair, align = element.scalar, element.pair, element.bytes
    x = f.load(pair, slot, align)
    offset = _offset(f, side, place)
    if side.form is Form.REAL:
        re = f.op(f"extractelement {pair} {x}, i64 0")
        f.store(t, re, f.element(side.pointer, t, offset), align)
    elif side.form is Form.COMPLEX:
        f.store(pair, x, f.element(side.pointer, pair, offset), align)
    else:
        is_kept = f.op(f"icmp sle i64 {_number(f, side, place)}, {side.length // 2}")
        with f.when(is_kept):
            f.store(pair, x, f.element(side.pointer, pair, offset), align)
