"""sort: variadic, along any dimension, with any comparator; always stable.

Many lines are dealt out whole. One long line is radix sorted by all threads together: for each
digit a phase counts it in PARTS fixed parts, and a phase moves each part's records, whose places
follow from all counts. The parts do not depend on the threads, and so neither does the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from haloc.codegen.kernel import PREFIX, Kernel, Phase, kernel_for
from haloc.codegen.target import Target
from haloc.cpu.sort import merge
from haloc.cpu.sort.comparator import SortKey, keys_of
from haloc.cpu.sort.first import count_read, select_text
from haloc.cpu.sort.keys import KeyCode, pack, word_bits
from haloc.cpu.sort.radix import (
    COUNTS,
    DIGITS,
    Lines,
    Records,
    call_make,
    count_text,
    insertion_text,
    make_text,
    order_text,
    scatter_text,
)
from haloc.cpu.sort.region import region_less
from haloc.cpu.sort.results import decode_text, permute_text, restore_text
from haloc.cpu.writer import Function, Variable
from haloc.ir.module import HloInstruction

PARTS = 16
PARALLEL_LENGTH = 1 << 15
MAX_GROUPS = 16
TILE = 16
MAX_SCRATCH_BYTES = 64 << 20
_MEMSET = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"


LessEmitter = Callable[[HloInstruction, Target, Lines], merge.LessBody]


@kernel_for("sort")
def sort_kernel(instruction: HloInstruction, target: Target) -> Kernel:
    """By keys where the comparator is of a known form, else by merging with the comparator."""
    return emit_sort(instruction, target, region_less)


def emit_sort(instruction: HloInstruction, target: Target, emit_less: LessEmitter) -> Kernel:
    """The kernel of a sort; `emit_less` gives comparators that are not of the known forms."""
    shape = instruction.operands[0].shape
    dimension = _dimension(instruction)
    lines = Lines(
        tuple(o.shape.dtype for o in instruction.operands),
        shape.dims[dimension],
        prod(shape.dims[dimension + 1 :]),
    )
    count = prod(shape.dims[:dimension]) * lines.stride
    if count * lines.length == 0:
        f = Function(f"{PREFIX}.none", f"{lines.parameters}, ptr %s, i64 %begin, i64 %end")
        return Kernel(f.text(), (Phase(f"{PREFIX}.none"),))
    keys = keys_of(instruction.attrs["to_apply"])
    if keys is None:
        body = emit_less(instruction, target, lines)
        text = body.text + merge.line_text(lines)
        kernel = _lines_kernel(text, lines, count, merge.POSITIONS, 60.0, tile=1)
        return replace(kernel, declares=body.declares, symbols=body.symbols, library=body.library)
    return _radix_kernel(keys, lines, count, count_read(instruction, dimension))


def _dimension(instruction: HloInstruction) -> int:
    dimension = instruction.attrs["dimensions"]
    return dimension[0] if isinstance(dimension, tuple) else dimension


def _records(words: list[list[SortKey]], lines: Lines) -> Records:
    """The smallest records that hold any one word, and a position where operands are permuted."""
    key = words[0][0]
    complete = len(lines.dtypes) == 1 and len(words) == 1 and len(words[0]) == 1
    if complete and not lines.dtypes[0].is_complex and KeyCode(key).is_invertible:
        return Records(KeyCode(key).bits, 0)
    if max(map(word_bits, words)) <= 32 and lines.length < 1 << 32:
        return Records(64, 32)
    return Records(128, 64)


def _radix_kernel(keys: list[SortKey], lines: Lines, count: int, first: int | None) -> Kernel:
    """first: how many elements of each line are read, if not all."""
    words = pack(keys)
    records = _records(words, lines)
    text = count_text(records) + scatter_text(records)
    for number, word in enumerate(reversed(words)):
        text += make_text(number, word, records, lines)
    restores = False
    if records.index_bits:
        text += permute_text(records, lines)
    else:
        text += decode_text(keys[0], lines)
        restores = bool(KeyCode(keys[0]).canonical())
        text += restore_text(keys[0], lines) if restores else ""
    if count == 1 and lines.length >= PARALLEL_LENGTH:
        return _parallel_kernel(text, words, records, lines, restores)
    text += insertion_text(records)
    if first is not None and len(words) == 1 and records.index_bits:
        text += select_text(records, lines, first) + _tile_text(records, lines, first, restores)
        return _lines_kernel(text, lines, count, records, 2.0)
    text += order_text(words, records, lines)
    text += _tile_text(records, lines, lines.length, restores)
    digits = sum(len(records.shifts(word)) for word in words)
    kernel = _lines_kernel(text, lines, count, records, 3.0 * digits)
    return replace(kernel, declares=(_MEMSET,))


def _tile_text(records: Records, lines: Lines, count: int, restores: bool) -> str:
    """void tile(b..., base, a, lines): sort neighbouring lines, whose elements share cache lines
    where they are strided: TILE elements of each are read, and written, together. count: how many
    of the sorted elements are written."""
    n, step = lines.length, lines.length if lines.stride == 1 else TILE
    parameters = f"{lines.parameters}, i64 %base, ptr %a, i64 %lines"
    f = Function(f"{PREFIX}.tile", parameters, linkage="internal")
    line_bytes = 2 * n * records.bytes
    sorted_records = f.variable(f"[{TILE} x ptr]")
    with f.loop(0, n, step) as begin, f.loop(0, "%lines") as line:
        recs = f.element("%a", "i8", f.mul(line, line_bytes))
        part = (recs, begin, _stop(f, begin, step, n))
        call_make(f, 0, lines, f.add("%base", line), part)
    with f.loop(0, "%lines") as line:
        a = f.element("%a", "i8", f.mul(line, line_bytes))
        b = f.element(a, records.type, n)
        base = f.add("%base", line)
        place = f.op(f"call ptr @{PREFIX}.order({lines.parameters}, i64 {base}, ptr {a}, ptr {b})")
        f.store("ptr", place, f.element(sorted_records.ref, "ptr", line))
    step = count if lines.stride == 1 else TILE
    with f.loop(0, count, step) as begin, f.loop(0, "%lines") as line:
        recs = f.load("ptr", f.element(sorted_records.ref, "ptr", line))
        bounds = f"i64 {begin}, i64 {_stop(f, begin, step, count)}"
        base = f.add("%base", line)
        f.do(f"call void @{PREFIX}.put({lines.parameters}, i64 {base}, ptr {recs}, {bounds})")
    if restores:
        with f.loop(0, "%lines") as line:
            recs = f.load("ptr", f.element(sorted_records.ref, "ptr", line))
            base = f.add("%base", line)
            f.do(f"call void @{PREFIX}.restore({lines.parameters}, i64 {base}, ptr {recs})")
    return f.text()


def _stop(f: Function, begin: str, step: int, length: int) -> str:
    if length % step == 0:
        return f.add(begin, step)
    end = f.add(begin, step)
    return f.op(f"select i1 {f.op(f'icmp slt i64 {end}, {length}')}, i64 {end}, i64 {length}")


def _lines_kernel(
    text: str, lines: Lines, count: int, records: Records, element_ns: float, tile: int = TILE
) -> Kernel:
    """One phase whose unit is a group of tiles of lines, each group with scratch of its own."""
    tile = min(tile, lines.stride)
    tiles_across = -(-lines.stride // tile)
    tiles = count // lines.stride * tiles_across
    tile_bytes = -(-2 * lines.length * records.bytes * tile // 64) * 64
    groups = max(1, min(tiles, MAX_GROUPS, MAX_SCRATCH_BYTES // tile_bytes))
    f = Function(f"{PREFIX}.lines", f"{lines.parameters}, ptr %scratch, i64 %begin, i64 %end")
    with f.loop("%begin", "%end") as group:
        a = f.element("%scratch", "i8", f.mul(group, tile_bytes))
        first, _ = f.divmod(f.mul(group, tiles), groups)
        last, _ = f.divmod(f.mul(f.add(group, 1), tiles), groups)
        with f.loop(first, last) as number:
            outer, across = f.divmod(number, tiles_across)
            inner = f.mul(across, tile)
            base = f.add(f.mul(outer, lines.length * lines.stride), inner)
            left = f.sub(lines.stride, inner)
            is_full = f.op(f"icmp sge i64 {left}, {tile}")
            size = f.op(f"select i1 {is_full}, i64 {tile}, i64 {left}")
            f.do(f"call void @{PREFIX}.tile({lines.parameters}, i64 {base}, ptr {a}, i64 {size})")
    cost = element_ns * lines.length * count / groups
    return Kernel(
        text + f.text(),
        (Phase(f"{PREFIX}.lines", groups, cost),),
        scratch_bytes=groups * tile_bytes,
    )


def _parallel_kernel(
    text: str, words: list[list[SortKey]], records: Records, lines: Lines, restores: bool
) -> Kernel:
    """Phases over PARTS parts of the one line. Scratch: records twice, then counts by part."""
    n = lines.length
    array_bytes = -(-n * records.bytes // 64) * 64
    counts_at = 2 * array_bytes
    source, target = 0, array_bytes
    functions = [text]
    phases = []

    def add(f: Function, name: str, element_ns: float, extent: int = PARTS) -> None:
        functions.append(f.text())
        phases.append(Phase(f"{PREFIX}.{name}", extent, element_ns * n / extent))

    for number, word in enumerate(reversed(words)):
        f = _phase(f"make{number}.parts", lines)
        with f.loop("%begin", "%end") as part:
            recs = f.element("%scratch", "i8", source)
            call_make(f, number, lines, "0", (recs, *_bounds(f, part, n)))
        add(f, f"make{number}.parts", 1.0)
        for shift in records.shifts(word):
            name = f"count{number}.{shift}"
            f = _phase(name, lines)
            with f.loop("%begin", "%end") as part:
                begin, end = _bounds(f, part, n)
                recs = f.element("%scratch", "i8", source)
                counts = _counts(f, counts_at, part)
                f.do(
                    f"call void @{PREFIX}.count(ptr {recs}, i64 {begin}, i64 {end}, "
                    f"ptr {counts}, i64 {shift})"
                )
            add(f, name, 0.5)
            name = f"scatter{number}.{shift}"
            f = _phase(name, lines)
            offsets = f.variable(COUNTS)
            with f.loop("%begin", "%end") as part:
                begin, end = _bounds(f, part, n)
                _offsets_of_part(f, _counts(f, counts_at, "0"), part, offsets)
                f.do(
                    f"call void @{PREFIX}.scatter(ptr {f.element('%scratch', 'i8', source)}, "
                    f"i64 {begin}, i64 {end}, ptr {f.element('%scratch', 'i8', target)}, "
                    f"ptr {offsets.ref}, i64 {shift})"
                )
            add(f, name, 1.5)
            source, target = target, source
    f = _phase("put.parts", lines)
    with f.loop("%begin", "%end") as part:
        begin, end = _bounds(f, part, n)
        recs = f.element("%scratch", "i8", source)
        bounds = f"i64 {begin}, i64 {end}"
        f.do(f"call void @{PREFIX}.put({lines.parameters}, i64 0, ptr {recs}, {bounds})")
    add(f, "put.parts", 3.0)
    if restores:
        f = _phase("restore.line", lines)
        recs = f.element("%scratch", "i8", source)
        f.do(f"call void @{PREFIX}.restore({lines.parameters}, i64 0, ptr {recs})")
        add(f, "restore.line", 1.0, extent=1)
    return Kernel(
        "".join(functions),
        tuple(phases),
        (_MEMSET,),
        scratch_bytes=counts_at + PARTS * DIGITS * 8,
    )


def _phase(name: str, lines: Lines) -> Function:
    parameters = f"{lines.parameters}, ptr %scratch, i64 %begin, i64 %end"
    return Function(f"{PREFIX}.{name}", parameters)


def _bounds(f: Function, part: str, length: int) -> tuple[str, str]:
    """Where a part of a line begins and ends."""
    begin, _ = f.divmod(f.mul(part, length), PARTS)
    end, _ = f.divmod(f.mul(f.add(part, 1), length), PARTS)
    return begin, end


def _counts(f: Function, counts_at: int, part: str) -> str:
    return f.element("%scratch", "i8", f.add(counts_at, f.mul(part, DIGITS * 8)))


def _offsets_of_part(f: Function, counts: str, part: str, offsets: Variable) -> None:
    """offsets[d] = records with lower digits, and those with digit d in the parts before."""
    total = f.variable("i64", 0)
    with f.loop(0, DIGITS) as d:
        before = f.variable("i64")
        f.set(before, f.get(total))
        with f.loop(0, PARTS) as p:
            at = f.element(counts, "i64", f.add(f.mul(p, DIGITS), d))
            count = f.load("i64", at)
            f.set(total, f.add(f.get(total), count))
            is_before = f.op(f"icmp slt i64 {p}, {part}")
            counted = f.op(f"select i1 {is_before}, i64 {count}, i64 0")
            f.set(before, f.add(f.get(before), counted))
        f.store("i64", f.get(before), f.element(offsets.ref, "i64", d))
