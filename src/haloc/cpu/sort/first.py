"""Sorts of which only the first elements are read: they are found without sorting the rest.

JAX's top_k is one: a stable sort of (x, iota), then slices.
"""

from __future__ import annotations

from haloc.codegen.kernel import PREFIX
from haloc.cpu.sort.radix import Lines, Records
from haloc.cpu.writer import Function
from haloc.ir.module import HloInstruction

MAX_COUNT = 64
LEAST_SHARE = 8
"""A line has to be this many times as long as what is read of it."""


def count_read(instruction: HloInstruction, dimension: int) -> int | None:
    """How many elements of each sorted line are read at most, where those are few; else None."""
    length = instruction.operands[0].shape.dims[dimension]
    arrays = [instruction]
    if instruction.shape.is_tuple:
        arrays = list(instruction.users)
        if any(a.opcode != "get-tuple-element" for a in arrays):
            return None
    if instruction.parent is None or instruction.parent.root in (instruction, *arrays):
        return None
    count = 0
    for array in arrays:
        for user in array.users:
            if user.opcode != "slice":
                return None
            count = max(count, user.attrs["slice"][dimension][1])
    return count if 0 < count <= min(MAX_COUNT, length // LEAST_SHARE) else None


def select_text(records: Records, lines: Lines, count: int) -> str:
    """ptr order(b..., base, a, b): bring the `count` smallest of the records in a to its start, in
    order. Records are made by one word and a position, so that no two are equal."""
    t = records.type
    parameters = f"{lines.parameters}, i64 %base, ptr %a, ptr %b"
    f = Function(f"{PREFIX}.order", parameters, "ptr", "internal")
    f.do(f"call void @{PREFIX}.insert(ptr %a, i64 {count})")
    last = f.element("%a", t, count - 1)
    with f.loop(count, lines.length) as i:
        record = f.load(t, f.element("%a", t, i))
        with f.when(f.op(f"icmp ult {t} {record}, {f.load(t, last)}")):
            f.store(t, record, last)
            f.do(f"call void @{PREFIX}.insert(ptr %a, i64 {count})")
    return f.text("ptr %a")
