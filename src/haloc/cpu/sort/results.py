"""From sorted records to sorted operands."""

from __future__ import annotations

from haloc.codegen.kernel import PREFIX
from haloc.cpu.sort.comparator import SortKey
from haloc.cpu.sort.keys import KeyCode
from haloc.cpu.sort.radix import Lines, Records, index_of
from haloc.cpu.writer import Function


def permute_text(records: Records, lines: Lines) -> str:
    """void put(b..., base, recs, begin, end): result[i] = operand[position of record i]."""
    f = _put(lines)
    with f.loop("%begin", "%end") as i:
        position = index_of(f, f.load(records.type, f.element("%recs", records.type, i)), records)
        copy_elements(f, lines, lines.offset(f, "%base", position), lines.offset(f, "%base", i))
    return f.text()


def copy_elements(f: Function, lines: Lines, source: str, target: str) -> None:
    """One element of every operand to its result, at element offsets."""
    for number, dtype in enumerate(lines.dtypes):
        t = f"i{8 * dtype.byte_size}"
        align = dtype.real.byte_size
        result = f"%b{number + len(lines.dtypes)}"
        value = f.load(t, f.element(f"%b{number}", t, source), align)
        f.store(t, value, f.element(result, t, target), align)


def decode_text(key: SortKey, lines: Lines) -> str:
    """The same where records are keys alone: the elements come from the keys."""
    code, t = KeyCode(key), f"i{KeyCode(key).bits}"
    f = _put(lines)
    with f.loop("%begin", "%end") as i:
        raw = code.decode(f, f.load(t, f.element("%recs", t, i)))
        f.store(t, raw, f.element("%b1", t, lines.offset(f, "%base", i)))
    return f.text()


def _put(lines: Lines) -> Function:
    parameters = f"{lines.parameters}, i64 %base, ptr %recs, i64 %begin, i64 %end"
    return Function(f"{PREFIX}.put", parameters, linkage="internal")


def restore_text(key: SortKey, lines: Lines) -> str:
    """void restore(b..., base, recs): give NaNs and zeros, which `put` wrote as the canonical one,
    their own bits, in the operand's order."""
    code, t = KeyCode(key), f"i{KeyCode(key).bits}"
    parameters = f"{lines.parameters}, i64 %base, ptr %recs"
    f = Function(f"{PREFIX}.restore", parameters, linkage="internal")
    classes = [
        (getattr(code, test), f.variable("i64", _first(f, lines.length, t, canonical)))
        for test, canonical in code.canonical()
    ]
    with f.loop(0, lines.length) as i:
        raw = f.load(t, f.element("%b0", t, lines.offset(f, "%base", i)))
        for belongs, cursor in classes:
            with f.when(belongs(f, raw)):
                place = f.get(cursor)
                f.store(t, raw, f.element("%b1", t, lines.offset(f, "%base", place)))
                f.set(cursor, f.add(place, 1))
    return f.text()


def _first(f: Function, length: int, t: str, canonical: int) -> str:
    """Position of the first sorted record not below `canonical`."""
    low, high = f.variable("i64", 0), f.variable("i64", length)
    with f.forever() as leave_if:
        a, b = f.get(low), f.get(high)
        leave_if(f.op(f"icmp sge i64 {a}, {b}"))
        middle = f.op(f"lshr i64 {f.add(a, b)}, 1")
        below = f.op(f"icmp ult {t} {f.load(t, f.element('%recs', t, middle))}, {canonical}")
        f.set(low, f.op(f"select i1 {below}, i64 {f.add(middle, 1)}, i64 {a}"))
        f.set(high, f.op(f"select i1 {below}, i64 {b}, i64 {middle}"))
    return f.get(low)
