"""Merge sort with any comparator: bottom-up over an array of positions, always stable.

A comparator that is no strict weak order gives some order of the operands' elements, as in XLA;
it cannot make the sort read or write out of place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from haloc.codegen.kernel import PREFIX
from haloc.cpu.sort.radix import Lines, Records
from haloc.cpu.sort.results import copy_elements
from haloc.cpu.writer import Function

POSITIONS = Records(64, 64)
"""What merge sort moves: positions along the line."""


LESS_PARAMETERS = 3
"""%a, %b and %out, after the operands' pointers."""


@dataclass(frozen=True, slots=True)
class LessBody:
    """A comparator as native code. text defines

        void @KERNEL.less(ptr %b0, ..., i64 %a, i64 %b, ptr %out)

    which stores 1 as an i8 when the element at offset %a of every operand comes before the one at
    %b, else 0. The other fields are as in `Kernel`.
    """

    text: str
    declares: tuple[str, ...] = ()
    symbols: Mapping[str, int] = field(default_factory=dict)
    library: Mapping[str, str] = field(default_factory=dict)


def line_text(lines: Lines) -> str:
    """void tile(b..., base, a, lines): sort the one line at base; a holds 2 length positions."""
    n = lines.length
    f = Function(
        f"{PREFIX}.tile",
        f"{lines.parameters}, i64 %base, ptr %a, i64 %lines",
        linkage="internal",
    )
    source = f.variable("ptr", "%a")
    target = f.variable("ptr", f.element("%a", "i64", n))
    with f.loop(0, n) as i:
        f.store("i64", i, f.element("%a", "i64", i))
    width = f.variable("i64", 1)
    with f.forever() as leave_if:
        leave_if(f.op(f"icmp sge i64 {f.get(width)}, {n}"))
        _merge_runs(f, lines, f.get(source), f.get(target), f.get(width))
        moved = f.get(target)
        f.set(target, f.get(source))
        f.set(source, moved)
        f.set(width, f.mul(f.get(width), 2))
    with f.loop(0, n) as i:
        position = f.load("i64", f.element(f.get(source), "i64", i))
        copy_elements(f, lines, lines.offset(f, "%base", position), lines.offset(f, "%base", i))
    return f.text()


def _merge_runs(f: Function, lines: Lines, source: str, target: str, width: str) -> None:
    """Merge the sorted runs of `width` positions in pairs."""
    n = lines.length
    start = f.variable("i64", 0)
    with f.forever() as leave_if:
        low = f.get(start)
        leave_if(f.op(f"icmp sge i64 {low}, {n}"))
        middle = _min(f, f.add(low, width), n)
        high = _min(f, f.add(middle, width), n)
        left, right = f.variable("i64"), f.variable("i64")
        f.set(left, low)
        f.set(right, middle)
        with f.loop(low, high) as out:
            take_right = f.variable("i1")
            f.set(take_right, f.op(f"icmp sge i64 {f.get(left)}, {middle}"))
            both = f.op(f"icmp slt i64 {f.get(left)}, {middle}")
            more = f.op(f"icmp slt i64 {f.get(right)}, {high}")
            with f.when(f.op(f"and i1 {both}, {more}")):
                x = f.load("i64", f.element(source, "i64", f.get(right)))
                y = f.load("i64", f.element(source, "i64", f.get(left)))
                f.set(take_right, _less(f, lines, x, y))
                # Elements each of which comes before the other (as with LE) are equal.
                with f.when(f.get(take_right)):
                    f.set(take_right, f.op(f"xor i1 {_less(f, lines, y, x)}, true"))
            is_right = f.get(take_right)
            at = f.op(f"select i1 {is_right}, i64 {f.get(right)}, i64 {f.get(left)}")
            position = f.load("i64", f.element(source, "i64", at))
            f.store("i64", position, f.element(target, "i64", out))
            step = f.op(f"zext i1 {is_right} to i64")
            f.set(right, f.add(f.get(right), step))
            f.set(left, f.add(f.get(left), f.op(f"xor i64 {step}, 1")))
        f.set(start, high)


def _less(f: Function, lines: Lines, x: str, y: str) -> str:
    operands = ", ".join(f"ptr %b{i}" for i in range(len(lines.dtypes)))
    a, b = lines.offset(f, "%base", x), lines.offset(f, "%base", y)
    out = f.variable("i8")
    f.do(f"call void @{PREFIX}.less({operands}, i64 {a}, i64 {b}, ptr {out.ref})")
    return f.op(f"icmp ne i8 {f.get(out)}, 0")


def _min(f: Function, x: str, n: int) -> str:
    return f.op(f"select i1 {f.op(f'icmp slt i64 {x}, {n}')}, i64 {x}, i64 {n}")
