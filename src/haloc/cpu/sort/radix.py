"""Least-significant-digit radix sort of records, as LLVM functions.

A record is an unsigned integer with the key word in its upper bits and, where operands must be
permuted, the element's position along the line in its lower bits. Every pass is stable, so records
with equal words keep their order; a key of several words is sorted by its last word first.
"""

from __future__ import annotations

from dataclasses import dataclass

from haloc.codegen.kernel import PREFIX
from haloc.cpu.sort.comparator import SortKey
from haloc.cpu.sort.keys import KeyCode, word_bits
from haloc.cpu.writer import Function
from haloc.ir.dtype import DType

DIGITS = 256
COUNTS = f"[{DIGITS} x i64]"
INSERTION_LIMIT = 32
"""Lines up to this length are sorted by insertion."""


@dataclass(frozen=True, slots=True)
class Records:
    """bits: of a record. index_bits: of the position in it; 0: the key is all there is."""

    bits: int
    index_bits: int

    @property
    def type(self) -> str:
        return f"i{self.bits}"

    @property
    def bytes(self) -> int:
        return self.bits // 8

    def shifts(self, word: list[SortKey]) -> range:
        """Where the digits of a word stand, lowest first."""
        return range(self.index_bits, self.index_bits + word_bits(word), 8)


@dataclass(frozen=True, slots=True)
class Lines:
    """The arrays: `length` elements a line, `stride` elements apart; pointers b0, b1, ...:
    operands, then results."""

    dtypes: tuple[DType, ...]
    length: int
    stride: int

    @property
    def parameters(self) -> str:
        return ", ".join(f"ptr %b{i}" for i in range(2 * len(self.dtypes)))

    def offset(self, f: Function, base: str, position: str) -> str:
        return f.add(base, f.mul(position, self.stride))


def count_text(records: Records) -> str:
    """void count(recs, begin, end, counts, shift): histogram of one digit."""
    t = records.type
    f = Function(
        f"{PREFIX}.count",
        "ptr %recs, i64 %begin, i64 %end, ptr %counts, i64 %shift",
        linkage="internal",
    )
    f.do(f"call void @llvm.memset.p0.i64(ptr %counts, i8 0, i64 {DIGITS * 8}, i1 false)")
    with f.loop("%begin", "%end") as i:
        digit = _digit(f, records, f.load(t, f.element("%recs", t, i)))
        counter = f.element("%counts", "i64", digit)
        f.store("i64", f.add(f.load("i64", counter), 1), counter)
    return f.text()


def scatter_text(records: Records) -> str:
    """void scatter(from, begin, end, to, offsets, shift): move records to their digit's place."""
    t = records.type
    f = Function(
        f"{PREFIX}.scatter",
        "ptr %from, i64 %begin, i64 %end, ptr noalias %to, ptr noalias %offsets, i64 %shift",
        linkage="internal",
    )
    with f.loop("%begin", "%end") as i:
        record = f.load(t, f.element("%from", t, i))
        counter = f.element("%offsets", "i64", _digit(f, records, record))
        place = f.load("i64", counter)
        f.store(t, record, f.element("%to", t, place))
        f.store("i64", f.add(place, 1), counter)
    return f.text()


def _digit(f: Function, records: Records, record: str) -> str:
    t = records.type
    shift = convert_integer(f, "%shift", 64, records.bits)
    shifted = f.op(f"lshr {t} {record}, {shift}")
    byte = f.op(f"and {t} {shifted}, {DIGITS - 1}") if records.bits > 8 else shifted
    return convert_integer(f, byte, records.bits, 64)


def convert_integer(f: Function, value: str, from_bits: int, to_bits: int) -> str:
    if from_bits == to_bits:
        return value
    opcode = "zext" if to_bits > from_bits else "trunc"
    return f.op(f"{opcode} i{from_bits} {value} to i{to_bits}")


def prefix(f: Function, counts: str) -> None:
    """Counts -> where each digit's records begin."""
    total = f.variable("i64", 0)
    with f.loop(0, DIGITS) as d:
        place = f.element(counts, "i64", d)
        count = f.load("i64", place)
        f.store("i64", f.get(total), place)
        f.set(total, f.add(f.get(total), count))


def make_text(number: int, word: list[SortKey], records: Records, lines: Lines) -> str:
    """void make<number>(b..., base, recs, begin, end): records of one word of the key.

    The first word sorted by (number 0) takes elements in order; later ones rewrite the records in
    the order the earlier words gave.
    """
    t = records.type
    f = Function(
        f"{PREFIX}.make{number}",
        f"{lines.parameters}, i64 %base, ptr %recs, i64 %begin, i64 %end",
        linkage="internal",
    )
    with f.loop("%begin", "%end") as i:
        place = f.element("%recs", t, i)
        position = i if number == 0 else index_of(f, f.load(t, place), records)
        offset = lines.offset(f, "%base", position)
        bits = word_bits(word)
        packed = ""
        for key in word:
            code = KeyCode(key)
            wide = convert_integer(
                f, code.encode(f, _load_key(f, key, lines, offset)), code.bits, bits
            )
            if packed:
                wide = f.op(f"or i{bits} {f.op(f'shl i{bits} {packed}, {code.bits}')}, {wide}")
            packed = wide
        record = convert_integer(f, packed, bits, records.bits)
        if records.index_bits:
            record = f.op(f"shl {t} {record}, {records.index_bits}")
            record = f.op(f"or {t} {record}, {convert_integer(f, position, 64, records.bits)}")
        f.store(t, record, place)
    return f.text()


def _load_key(f: Function, key: SortKey, lines: Lines, offset: str) -> str:
    dtype = lines.dtypes[key.operand]
    bits = KeyCode(key).bits
    parts = 2 if dtype.is_complex else 1
    at = f.add(f.mul(offset, parts), key.component)
    return f.load(f"i{bits}", f.element(f"%b{key.operand}", f"i{bits}", at))


def index_of(f: Function, record: str, records: Records) -> str:
    low = convert_integer(f, record, records.bits, records.index_bits)
    return convert_integer(f, low, records.index_bits, 64)


def insertion_text(records: Records) -> str:
    """void insert(recs, n): sort by whole records; the position decides between equal keys."""
    t = records.type
    f = Function(f"{PREFIX}.insert", "ptr %recs, i64 %n", linkage="internal")
    with f.loop(1, "%n") as i:
        record = f.load(t, f.element("%recs", t, i))
        j = f.variable("i64", i)
        with f.forever() as leave_if:
            leave_if(f.op(f"icmp eq i64 {f.get(j)}, 0"))
            before = f.sub(f.get(j), 1)
            other = f.load(t, f.element("%recs", t, before))
            leave_if(f.op(f"icmp ule {t} {other}, {record}"))
            f.store(t, other, f.element("%recs", t, f.get(j)))
            f.set(j, before)
        f.store(t, record, f.element("%recs", t, f.get(j)))
    return f.text()


def order_text(words: list[list[SortKey]], records: Records, lines: Lines) -> str:
    """ptr order(b..., base, a, b): sort the records in a, made by the first word, with b to move
    to. Returns where they are then."""
    n, t = lines.length, records.type
    parameters = f"{lines.parameters}, i64 %base, ptr %a, ptr %b"
    f = Function(f"{PREFIX}.order", parameters, "ptr", "internal")
    source, target = f.variable("ptr", "%a"), f.variable("ptr", "%b")
    counts = f.variable(COUNTS)
    for number, word in enumerate(reversed(words)):
        if number:
            call_make(f, number, lines, "%base", (f.get(source), "0", str(n)))
        if n <= INSERTION_LIMIT and len(words) == 1:
            f.do(f"call void @{PREFIX}.insert(ptr {f.get(source)}, i64 {n})")
            continue
        with f.loop(records.shifts(word).start, records.shifts(word).stop, 8) as shift:
            range_of = f"ptr {f.get(source)}, i64 0, i64 {n}"
            f.do(f"call void @{PREFIX}.count({range_of}, ptr {counts.ref}, i64 {shift})")
            first = f.load(t, f.get(source))
            wide_shift = convert_integer(f, shift, 64, records.bits)
            digit = f.op(f"lshr {t} {first}, {wide_shift}")
            digit = f.op(f"and {t} {digit}, {DIGITS - 1}") if records.bits > 8 else digit
            digit = convert_integer(f, digit, records.bits, 64)
            count = f.load("i64", f.element(counts.ref, "i64", digit))
            with f.when(f.op(f"icmp ne i64 {count}, {n}")):  # else all have this digit
                prefix(f, counts.ref)
                rest = f"ptr {f.get(target)}, ptr {counts.ref}, i64 {shift}"
                f.do(f"call void @{PREFIX}.scatter({range_of}, {rest})")
                moved = f.get(target)
                f.set(target, f.get(source))
                f.set(source, moved)
    return f.text(f"ptr {f.get(source)}")


def call_make(
    f: Function, number: int, lines: Lines, base: str, part: tuple[str, str, str]
) -> None:
    """part: the records' array, and where it begins and ends."""
    recs, begin, end = part
    f.do(
        f"call void @{PREFIX}.make{number}({lines.parameters}, i64 {base}, "
        f"ptr {recs}, i64 {begin}, i64 {end})"
    )
