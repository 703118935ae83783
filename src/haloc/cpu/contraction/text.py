"""A small writer of LLVM functions: straight code, counted loops, branches.

i64 values are Python ints where they are known and register names ("%v3") where they are not, and
arithmetic on known ones is done here. Other values are register names or constants as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

I64 = int | str


def vector(type: str, width: int) -> str:
    """ "<16 x float>"; the type itself for width 1."""
    return type if width == 1 else f"<{width} x {type}>"


def mangled(type: str) -> str:
    """How an intrinsic's name spells a type: "v16f32"."""
    if type.startswith("<"):
        width, _, element = type[1:-1].partition(" x ")
        return f"v{width}{mangled(element)}"
    return {"float": "f32", "double": "f64", "half": "f16"}.get(type, type)


class Carried:
    """A value carried around a loop: set `after` in the body."""

    __slots__ = ("after", "ref", "start", "type")

    def __init__(self, ref: str, type: str, start: str):
        self.ref = ref
        self.type = type
        self.start = start
        self.after = ref


class Code:
    """One function's body under construction. declares: intrinsics it calls."""

    def __init__(self, declares: dict[str, None]):
        self.lines: list[str] = ["entry:"]
        self.declares = declares
        self.block = "entry"
        self._names = 0

    # --- Instructions -------------------------------------------------------------------------

    def name(self, stem: str = "v") -> str:
        self._names += 1
        return f"%{stem}{self._names}"

    def ins(self, text: str) -> str:
        """Append an instruction; returns the register it defines."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {text}")

    def intrinsic(self, name: str, type: str, *operands: str) -> str:
        """Call llvm.<name>.<type> on operands that all have the result's type."""
        symbol = f"@llvm.{name}.{mangled(type)}"
        self.declares[f"declare {type} {symbol}({', '.join([type] * len(operands))})"] = None
        return self.ins(f"call {type} {symbol}({', '.join(f'{type} {o}' for o in operands)})")

    def splat(self, type: str, scalar: str, width: int) -> str:
        if width == 1:
            return scalar
        t = vector(type, width)
        one = self.ins(f"insertelement {t} poison, {type} {scalar}, i64 0")
        return self.ins(f"shufflevector {t} {one}, {t} poison, <{width} x i32> zeroinitializer")

    def load(self, type: str, pointer: str, align: int, width: int = 1) -> str:
        """Load `width` elements; align is an element's, in bytes."""
        return self.ins(f"load {vector(type, width)}, ptr {pointer}, align {align}")

    def store(self, type: str, value: str, pointer: str, align: int, width: int = 1) -> None:
        self.do(f"store {vector(type, width)} {value}, ptr {pointer}, align {align}")

    def offset(self, type: str, pointer: str, index: I64) -> str:
        """pointer + index elements of `type`."""
        if index == 0:
            return pointer
        return self.ins(f"getelementptr inbounds {type}, ptr {pointer}, i64 {index}")

    # --- i64 ----------------------------------------------------------------------------------

    def add(self, *terms: I64) -> I64:
        known = sum(t for t in terms if isinstance(t, int))
        result: I64 | None = None
        for term in terms:
            if isinstance(term, str):
                result = term if result is None else self.ins(f"add nsw i64 {result}, {term}")
        if result is None:
            return known
        return self.ins(f"add nsw i64 {result}, {known}") if known else result

    def sub(self, x: I64, y: I64) -> I64:
        if isinstance(y, int):
            return self.add(x, -y)
        return self.ins(f"sub nsw i64 {x}, {y}")

    def mul(self, x: I64, y: int) -> I64:
        if isinstance(x, int):
            return x * y
        if y in (0, 1):
            return x if y else 0
        return self.ins(f"mul nsw i64 {x}, {y}")

    def div(self, x: I64, y: int) -> I64:
        """x // y for x >= 0."""
        if isinstance(x, int):
            return x // y
        return x if y == 1 else self.ins(f"udiv i64 {x}, {y}")

    def mod(self, x: I64, y: int) -> I64:
        """x % y for x >= 0."""
        if isinstance(x, int):
            return x % y
        return 0 if y == 1 else self.ins(f"urem i64 {x}, {y}")

    def min(self, x: I64, y: I64) -> I64:
        if isinstance(x, int) and isinstance(y, int):
            return min(x, y)
        return self.intrinsic("smin", "i64", str(x), str(y))

    def max(self, x: I64, y: I64) -> I64:
        if isinstance(x, int) and isinstance(y, int):
            return max(x, y)
        return self.intrinsic("smax", "i64", str(x), str(y))

    def split(self, index: I64, sizes: Sequence[int]) -> list[I64]:
        """A flat row-major index as coordinates; it must be in range."""
        coordinates: list[I64] = []
        for position, size in enumerate(reversed(sizes)):
            is_first = position == len(sizes) - 1
            coordinates.append(index if is_first else self.mod(index, size))
            if not is_first:
                index = self.div(index, size)
        return coordinates[::-1]

    # --- Control ------------------------------------------------------------------------------

    def label(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    @contextmanager
    def loop(
        self, begin: I64, end: I64, step: int = 1, carried: Sequence[tuple[str, str]] = ()
    ) -> Iterator[tuple[str, list[Carried]]]:
        """for (i = begin; i < end; i += step); yields i and the carried values (type, start).

        After the loop a carried value's `ref` is its final value.
        """
        self._names += 1
        head, body, done = (f"{s}{self._names}" for s in ("head", "body", "done"))
        before = self.block
        index = f"%i{self._names}"
        values = [Carried(self.name("c"), t, start) for t, start in carried]
        self.do(f"br label %{head}")
        self.label(head)
        at = len(self.lines)
        more = self.ins(f"icmp slt i64 {index}, {end}")
        self.do(f"br i1 {more}, label %{body}, label %{done}")
        self.label(body)
        yield index, values
        after = self.ins(f"add nsw i64 {index}, {step}")
        self.do(f"br label %{head}")
        phis = [f"  {index} = phi i64 [{begin}, %{before}], [{after}, %{self.block}]"]
        for v in values:
            start, latch = f"[{v.start}, %{before}]", f"[{v.after}, %{self.block}]"
            phis.append(f"  {v.ref} = phi {v.type} {start}, {latch}")
        self.lines[at:at] = phis
        self.label(done)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """if (condition) { ... }"""
        self._names += 1
        then, done = f"then{self._names}", f"fi{self._names}"
        self.do(f"br i1 {condition}, label %{then}, label %{done}")
        self.label(then)
        yield
        self.do(f"br label %{done}")
        self.label(done)

    def function(self, symbol: str, parameters: Sequence[str], attributes: str) -> str:
        """The finished void function; attributes: linkage, "|", attribute text."""
        linkage, _, after = attributes.partition("|")
        signature = ", ".join(parameters)
        head = f"define {linkage} void @{symbol}({signature}) {after} {{"
        return "\n".join([head, *self.lines, "  ret void", "}\n"])
