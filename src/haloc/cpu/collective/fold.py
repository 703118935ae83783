"""Shares of all-reduce and reduce-scatter: what the members hold, folded in their order.

The work goes by blocks that stay in the first cache: a block is copied from member 0, the others'
are folded into it, and it is written where it is wanted. Each element is read from everybody
before it is written to anybody, so that results may lie where operands do. Large results are
written past the caches, which would read them first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from haloc.codegen.builder import Builder, Reg
from haloc.codegen.elemental import Buffer, Elements, ElementScalar, emit_region
from haloc.codegen.kernel import PREFIX
from haloc.codegen.reduction import register_bytes
from haloc.codegen.target import Target
from haloc.cpu.collective.share import MEMCPY, MEMSET, Share, ShareText, around
from haloc.cpu.writer import Function
from haloc.ir.module import HloComputation, HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.table import attr

_BLOCK_BYTES = 4096
_SMIN = "declare i64 @llvm.smin.i64(i64, i64)"

_STREAM_BYTES = 8 << 20
"""Results of a group from this size on will not stay in any cache."""


class Block(NamedTuple):
    """Where a folded block belongs: byte offset, and bytes."""

    offset: str
    size_bytes: str


class _Folds:
    """The functions `void (ptr total, ptr other)`: total = region(total, other), block by block."""

    def __init__(self, region: HloComputation, target: Target):
        self.region = region
        self.target = target
        self.texts: dict[str, str] = {}
        self.declares: dict[str, None] = {}
        self.library: dict[str, str] = {}

    def symbol(self, shape: Shape) -> str:
        """The function for blocks of this shape, one dimension of whole vectors."""
        symbol = f"{PREFIX}.fold.{shape.dtype.name}.{shape.dims[0]}"
        if symbol not in self.texts:
            self.texts[symbol] = self._emit(symbol, shape)
        return symbol

    def _emit(self, symbol: str, shape: Shape) -> str:
        builder = Builder()
        elements = Elements(ElementScalar(builder, self.target), {})
        total, other = (Buffer(Reg(r, "ptr", builder.root), shape) for r in ("%a", "%b"))
        width = vector_width(shape, self.target)
        space = elements.space
        space.set_width(width)
        with builder.loop(0, shape.dims[0], width) as loop:
            i = space.atom(0, shape.dims[0] - width, loop.index, width)
            index = (i + space.lanes(),)
            values = [elements.load(b, index, None) for b in (total, other)]
            (value,) = emit_region(elements.scalar, self.region, values)
            elements.store(value, total, index)
        self.declares.update(dict.fromkeys(builder.declares))
        self.library.update(builder.library)
        return builder.function(symbol, [Reg("%a", "ptr"), Reg("%b", "ptr")])


def vector_width(shape: Shape, target: Target) -> int:
    """Lanes for arrays of this type, at most as many as there are elements."""
    width = target.lanes(register_bytes(shape.dtype))
    while width > max(1, shape.element_count):
        width //= 2
    return width


def _block(shape: Shape, target: Target) -> Shape:
    """A block of an array's elements: a page, or less if the array is smaller."""
    width = vector_width(shape, target)
    most = max(width, _BLOCK_BYTES // shape.dtype.byte_size)
    wanted = -(-max(1, shape.element_count) // width) * width
    return Shape(shape.dtype, (min(wanted, most),))


class _Fold(Share):
    """The share under construction, with two blocks of its own to work in."""

    def __init__(self, instruction: HloInstruction, members: int, target: Target):
        super().__init__(instruction, members)
        self.target = target
        self.folds = _Folds(attr(instruction, "to_apply"), target)
        self.total, self.other = (self.variable(f"[{_BLOCK_BYTES} x i8]").ref for _ in "ab")

    def least(self, x: str | int, y: str | int) -> str:
        return self.op(f"call i64 @llvm.smin.i64(i64 {x}, i64 {y})")

    @contextmanager
    def blocks(self, shape: Shape, first: str, end: str, source: Source) -> Iterator[Block]:
        """Fold elements [first, end) of `shape` by blocks; gives each with its value in `total`."""
        block = _block(shape, self.target)
        size = shape.dtype.byte_size
        for local in (self.total, self.other):  # a last block may not be full
            self.clear(local, _BLOCK_BYTES)
        with self.loop(first, end, block.dims[0]) as at:
            count = self.least(self.sub(end, at), block.dims[0])
            source.copy(self.total, "0", at, count)
            is_full = self.op(f"icmp eq i64 {count}, {block.dims[0]}")
            with self.loop(1, self.members) as j:
                if source.is_contiguous:
                    with self.when(is_full):
                        self.combine(block, source.pointer(j, at))
                    with self.when(self.op(f"xor i1 {is_full}, true")):
                        source.copy(self.other, j, at, count)
                        self.combine(block, self.other)
                else:
                    source.copy(self.other, j, at, count)
                    self.combine(block, self.other)
            yield Block(self.mul(at, size), self.mul(count, size))

    def combine(self, block: Shape, other: str) -> None:
        self.do(f"call void @{self.folds.symbol(block)}(ptr {self.total}, ptr {other})")

    def write(self, target: str, block: Block, streams: bool) -> None:
        """Write the folded block from the target's byte offset on."""
        there = self.bytes_at(target, block.offset)
        if streams:
            self.do(f"call void @{_STREAM}(ptr {there}, ptr {self.total}, i64 {block.size_bytes})")
        else:
            self.copy(there, self.total, block.size_bytes)

    def share(self) -> ShareText:
        text = "".join(self.folds.texts.values()) + _stream_text() + self.finished()
        declares = (MEMCPY, MEMSET, _SMIN, *self.folds.declares)
        return ShareText(self.symbol, text, tuple(dict.fromkeys(declares)), self.folds.library)


def all_reduce(instruction: HloInstruction, members: int, target: Target) -> ShareText:
    """Folds one part of every operand and writes it to everybody's results."""
    f = _Fold(instruction, members, target)
    for number, operand in enumerate(instruction.operands):
        count = operand.shape.element_count
        # Whole blocks to each: nobody writes to another's cache lines.
        block = _block(operand.shape, target).dims[0]
        part = -(-count // (block * members)) * block
        first = f.least(f.mul(f.part, part), count)
        end = f.least(f.add(first, part), count)
        source = Source(f, number, operand.shape.dtype.byte_size)
        streams = operand.shape.byte_size * members >= _STREAM_BYTES
        with f.blocks(operand.shape, first, end, source) as done, f.loop(0, members) as j:
            f.write(f.result(j, number), done, streams)
    return f.share()


def reduce_scatter(instruction: HloInstruction, members: int, target: Target) -> ShareText:
    """Folds this member's piece of every operand into its result."""
    f = _Fold(instruction, members, target)
    (dim,) = attr(instruction, "dimensions")
    for number, piece in enumerate(instruction.shape.leaves()):
        count, size = piece.element_count, piece.dtype.byte_size
        if count == 0:
            continue
        runs, run_bytes = around(piece, dim)
        source = Source(f, number, size, runs, run_bytes // size)
        streams = piece.byte_size * members >= _STREAM_BYTES
        with f.blocks(piece, "0", str(count), source) as done:
            f.write(f.result(f.part, number), done, streams)
    return f.share()


class Source:
    """An operand of everybody: all of it, or this member's piece, which lies in `runs` runs."""

    def __init__(self, f: _Fold, number: int, size: int, runs: int = 1, run: int = 0):
        self.f = f
        self.number = number
        self.size = size
        self.runs = runs
        self.run = run
        self.is_contiguous = runs == 1

    def pointer(self, j: str, at: str) -> str:
        """Of element `at` of member j's; for what is contiguous."""
        f = self.f
        first = f.add(f.mul(f.part, self.run), at)
        return f.bytes_at(f.buffer(j, self.number), f.mul(first, self.size))

    def copy(self, target: str, j: str, at: str, count: str) -> None:
        """Copy elements [at, at + count) of member j's."""
        f = self.f
        if self.is_contiguous:
            f.copy(target, self.pointer(j, at), f.mul(count, self.size))
            return
        whole = f.buffer(j, self.number)
        done = f.variable("i64", 0)
        with f.forever() as leave_if:
            before = f.get(done)
            leave_if(f.op(f"icmp sge i64 {before}, {count}"))
            outer, inner = f.divmod(f.add(at, before), self.run)
            length = f.least(f.sub(self.run, inner), f.sub(count, before))
            run = f.add(f.mul(outer, f.members), f.part)
            first = f.add(f.mul(run, self.run), inner)
            there = f.bytes_at(target, f.mul(before, self.size))
            source = f.bytes_at(whole, f.mul(first, self.size))
            f.copy(there, source, f.mul(length, self.size))
            f.set(done, f.add(before, length))


_STREAM = f"{PREFIX}.stream"


def _stream_text() -> str:
    """void (ptr to, ptr from, i64 bytes): a copy past the caches, where `to` is at a cache line and
    whole lines are copied; `from` is at one."""
    f = Function(_STREAM, "ptr %to, ptr %from, i64 %bytes")
    address = f.op("ptrtoint ptr %to to i64")
    loose = f.op(f"and i64 {f.op(f'or i64 {address}, %bytes')}, 63")
    is_lines = f.op(f"icmp eq i64 {loose}, 0")
    with f.when(is_lines), f.loop(0, "%bytes", 64) as at:
        line = f.load("<16 x float>", f.element("%from", "i8", at), align=64)
        place = f.element("%to", "i8", at)
        f.do(f"store <16 x float> {line}, ptr {place}, align 64, !nontemporal !{{i32 1}}")
    with f.when(f.op(f"xor i1 {is_lines}, true")):
        f.do("call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)")
    return f.text()
