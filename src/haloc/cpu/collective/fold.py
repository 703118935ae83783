"""Shares of all-reduce and reduce-scatter: what the members hold, folded in their order.

The work goes by blocks that stay in the first cache: a block is copied from member 0, the others'
are folded into it, and it is written where it is wanted. Each element is read from everybody
before it is written to anybody, so that results may lie where operands do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from haloc.codegen.builder import Builder, Reg
from haloc.codegen.elemental import Buffer, Elements, ElementScalar, emit_region
from haloc.codegen.kernel import PREFIX
from haloc.codegen.reduction import register_bytes
from haloc.codegen.target import Target
from haloc.cpu.collective.share import MEMCPY, MEMSET, Share, ShareText, around
from haloc.ir.module import HloComputation, HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.table import attr

_BLOCK_BYTES = 4096
_SMIN = "declare i64 @llvm.smin.i64(i64, i64)"

Load = Callable[[str, str, str, str], None]


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
    def blocks(self, shape: Shape, first: str, end: str, load: Load) -> Iterator[tuple[str, str]]:
        """Fold elements [first, end) of `shape` by blocks; gives (number of the block's first
        element, count) with the block in `total`. load(target, member, at, count) copies a
        member's elements."""
        block = _block(shape, self.target)
        fold = self.folds.symbol(block)
        for local in (self.total, self.other):  # a last block may not be full
            self.clear(local, _BLOCK_BYTES)
        with self.loop(first, end, block.dims[0]) as at:
            count = self.least(self.sub(end, at), block.dims[0])
            load(self.total, "0", at, count)
            with self.loop(1, self.members) as j:
                load(self.other, j, at, count)
                self.do(f"call void @{fold}(ptr {self.total}, ptr {self.other})")
            yield at, count

    def share(self) -> ShareText:
        text = "".join(self.folds.texts.values()) + self.finished()
        declares = (MEMCPY, MEMSET, _SMIN, *self.folds.declares)
        return ShareText(self.symbol, text, tuple(dict.fromkeys(declares)), self.folds.library)


def all_reduce(instruction: HloInstruction, members: int, target: Target) -> ShareText:
    """Folds one part of every operand and writes it to everybody's results."""
    f = _Fold(instruction, members, target)
    for number, operand in enumerate(instruction.operands):
        count, size = operand.shape.element_count, operand.shape.dtype.byte_size
        # Whole blocks to each: nobody writes to another's cache lines.
        block = _block(operand.shape, target).dims[0]
        part = -(-count // (block * members)) * block
        first = f.least(f.mul(f.part, part), count)

        def load(target: str, j: str, at: str, n: str, number: int = number, size: int = size):
            f.copy(target, f.bytes_at(f.buffer(j, number), f.mul(at, size)), f.mul(n, size))

        end = f.least(f.add(first, part), count)
        with f.blocks(operand.shape, first, end, load) as (at, n), f.loop(0, members) as j:
            there = f.bytes_at(f.result(j, number), f.mul(at, size))
            f.copy(there, f.total, f.mul(n, size))
    return f.share()


def reduce_scatter(instruction: HloInstruction, members: int, target: Target) -> ShareText:
    """Folds this member's piece of every operand into its result."""
    f = _Fold(instruction, members, target)
    (dim,) = attr(instruction, "dimensions")
    for number, piece in enumerate(instruction.shape.leaves()):
        count, size = piece.element_count, piece.dtype.byte_size
        if count == 0:
            continue
        load = _piece_loader(f, number, piece, dim)
        with f.blocks(piece, "0", str(count), load) as (at, n):
            there = f.bytes_at(f.result(f.part, number), f.mul(at, size))
            f.copy(there, f.total, f.mul(n, size))
    return f.share()


def _piece_loader(f: _Fold, number: int, piece: Shape, dim: int) -> Load:
    """Copies elements of this member's piece, which lies in runs in the operands."""
    size = piece.dtype.byte_size
    runs, run_bytes = around(piece, dim)
    run = run_bytes // size

    def load(target: str, j: str, at: str, n: str) -> None:
        source = f.buffer(j, number)
        if runs == 1:
            first = f.add(f.mul(f.part, run), at)
            f.copy(target, f.bytes_at(source, f.mul(first, size)), f.mul(n, size))
            return
        done = f.variable("i64", 0)
        with f.forever() as leave_if:
            before = f.get(done)
            leave_if(f.op(f"icmp sge i64 {before}, {n}"))
            outer, inner = f.divmod(f.add(at, before), run)
            length = f.least(f.sub(run, inner), f.sub(n, before))
            first = f.add(f.mul(f.add(f.mul(outer, f.members), f.part), run), inner)
            there = f.bytes_at(target, f.mul(before, size))
            f.copy(there, f.bytes_at(source, f.mul(first, size)), f.mul(length, size))
            f.set(done, f.add(before, length))

    return load
