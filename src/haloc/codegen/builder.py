"""Writes LLVM functions as text, with hoisting and value numbering built into how code is placed.

A function is a tree of `Region`s: the root, and one per loop. A pure operation is placed in the
deepest region among its operands' regions, not where the cursor stands: what does not depend on
an inner loop is computed outside it. Asking twice for the same operation gives the same register.
A loop joins its parent's code when it is closed, so code hoisted meanwhile stands before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class Reg:
    """An LLVM value: `ref` ("%v3", "0x3FF0..."), its type, and the region that defines it
    (None: usable everywhere)."""

    __slots__ = ("ref", "region", "type")

    def __init__(self, ref: str, type: str, region: Region | None = None):
        self.ref = ref
        self.type = type
        self.region = region

    def __str__(self) -> str:
        return f"{self.type} {self.ref}"


class Region:
    """Straight-line code with loops in it."""

    __slots__ = ("depth", "items", "numbered", "parent")

    def __init__(self, parent: Region | None):
        self.parent = parent
        self.depth = 0 if parent is None else parent.depth + 1
        self.items: list[str | Loop] = []
        self.numbered: dict[tuple[object, ...], Reg] = {}


class Loop:
    """for (index = begin; ; index += step) body, tested at the bottom: it runs at least once.

    `carry` are loop-carried registers; `next` sets each one's value for the next iteration, which
    is also its value after the loop (`results`).
    """

    __slots__ = ("begin", "body", "carries", "end", "index", "label", "nexts", "starts", "step")

    def __init__(self, label: str, body: Region, begin: Reg, end: Reg, step: int):
        self.label = label
        self.body = body
        self.begin = begin
        self.end = end
        self.step = step
        self.index = Reg(f"%{label}.i", "i64", body)
        self.starts: list[Reg] = []
        self.carries: list[Reg] = []
        self.nexts: list[Reg] = []

    def carry(self, start: Reg) -> Reg:
        """A register that enters the loop as `start`."""
        reg = Reg(f"%{self.label}.c{len(self.carries)}", start.type, self.body)
        self.starts.append(start)
        self.carries.append(reg)
        return reg

    def next(self, *values: Reg) -> None:
        """The carried registers' values for the next iteration, in `carry` order."""
        assert len(values) == len(self.carries)
        self.nexts = list(values)

    def results(self) -> list[Reg]:
        """The carried registers' final values, usable after the loop."""
        return [Reg(r.ref, r.type, self.body.parent) for r in self.nexts]


class Builder:
    """One function under construction. `cursor` is the region being filled."""

    def __init__(self) -> None:
        self.root = Region(None)
        self.cursor = self.root
        self.declares: dict[str, None] = {}
        self.library: dict[str, str] = {}
        self._counter = 0

    # --- Operations ---------------------------------------------------------------------------

    def op(self, type: str, template: str, *operands: Reg) -> Reg:
        """A pure operation: `template` with {0}, {1}, ... standing for the operands' refs.

        op("float", "fadd float {0}, {1}", x, y) gives a register of type float. Equal requests
        share one register; the code goes to the deepest operand's region.
        """
        region = self.root
        for operand in operands:
            if operand.region is not None and operand.region.depth > region.depth:
                region = operand.region
        key = (template, *(o.ref for o in operands))
        found = region.numbered.get(key)
        if found is None:
            found = self._place(region, type, template, operands)
            region.numbered[key] = found
        return found

    def op_here(self, type: str, template: str, *operands: Reg) -> Reg:
        """An operation that must run where the cursor stands (a load after a store, ...)."""
        return self._place(self.cursor, type, template, operands)

    def effect(self, template: str, *operands: Reg) -> None:
        """A void operation at the cursor: a store, a call."""
        self.cursor.items.append(template.format(*(o.ref for o in operands)))

    def _place(self, region: Region, type: str, template: str, operands: Sequence[Reg]) -> Reg:
        name = self.name()
        region.items.append(f"{name} = " + template.format(*(o.ref for o in operands)))
        return Reg(name, type, region)

    def name(self, stem: str = "v") -> str:
        self._counter += 1
        return f"%{stem}{self._counter}"

    def declare(self, line: str) -> None:
        """An external function the code calls, as its `declare` line."""
        self.declares[line] = None

    def define(self, symbol: str, text: str) -> None:
        """An internal function shared by kernels: "@haloc.exp.v16f32" and its definition."""
        self.library.setdefault(symbol, text)

    # --- Intrinsics and splats ----------------------------------------------------------------

    def intrinsic(self, name: str, type: str, *operands: Reg) -> Reg:
        """Call llvm.<name> overloaded on `type` ("llvm.fma.v16f32"), result of that type."""
        mangled = f"@llvm.{name}.{mangle(type)}"
        types = ", ".join(o.type for o in operands)
        self.declare(f"declare {type} {mangled}({types})")
        arguments = ", ".join(f"{o.type} {{{i}}}" for i, o in enumerate(operands))
        return self.op(type, f"call {type} {mangled}({arguments})", *operands)

    def splat(self, scalar: Reg, width: int) -> Reg:
        """All `width` lanes equal to a scalar."""
        if width == 1:
            return scalar
        t = vector(scalar.type, width)
        if scalar.region is None:
            return Reg(f"splat ({scalar.type} {scalar.ref})", t)
        one = self.op(t, f"insertelement {t} poison, {scalar.type} {{0}}, i64 0", scalar)
        return self.op(
            t, f"shufflevector {t} {{0}}, {t} poison, <{width} x i32> zeroinitializer", one
        )

    # --- Loops --------------------------------------------------------------------------------

    @contextmanager
    def loop(self, begin: Reg | int, end: Reg | int, step: int = 1) -> Iterator[Loop]:
        """Fill a loop's body. begin < end must hold, and end - begin be a multiple of step."""
        outer = self.cursor
        self._counter += 1
        loop = Loop(f"loop{self._counter}", Region(outer), i64(begin), i64(end), step)
        self.cursor = loop.body
        yield loop
        self.cursor = outer
        outer.items.append(loop)

    def is_visible(self, region: Region | None) -> bool:
        """Whether registers of `region` may be used at the cursor."""
        at: Region | None = self.cursor
        while region is not None and at is not region:
            if at is None:
                return False
            at = at.parent
        return True

    # --- Text ---------------------------------------------------------------------------------

    def function(
        self,
        symbol: str,
        parameters: Sequence[Reg],
        linkage: str = "",
        attributes: str = "nounwind",
    ) -> str:
        """The finished void function."""
        signature = ", ".join(f"{p.type} {p.ref}" for p in parameters)
        lines = [f"define {linkage}void @{symbol}({signature}) {attributes} {{", *self.body()]
        lines += ["  ret void", "}"]
        return "\n".join(lines) + "\n"

    def body(self) -> list[str]:
        """The lines from the entry label on; what ends the function is to follow."""
        lines = ["entry:"]
        _render(self.root, "entry", lines)
        return lines


def _render(region: Region, label: str, lines: list[str]) -> str:
    """Append a region's text; returns the label of the block it ends in."""
    for item in region.items:
        if isinstance(item, str):
            lines.append("  " + item)
            continue
        head, done = item.label, f"{item.label}.done"
        lines += [f"  br label %{head}", f"{head}:"]
        at = len(lines)  # the phis need the label the body ends in
        end_label = _render(item.body, head, lines)
        advanced = f"{item.index.ref}.next"
        phis = [
            f"  {item.index.ref} = phi i64 [{item.begin.ref}, %{label}], [{advanced}, %{end_label}]"
        ]
        for reg, start, after in zip(item.carries, item.starts, item.nexts, strict=True):
            phis.append(
                f"  {reg.ref} = phi {reg.type} [{start.ref}, %{label}], [{after.ref}, %{end_label}]"
            )
        lines[at:at] = phis
        lines += [
            f"  {advanced} = add nuw nsw i64 {item.index.ref}, {item.step}",
            f"  %{head}.more = icmp slt i64 {advanced}, {item.end.ref}",
            f"  br i1 %{head}.more, label %{head}, label %{done}",
            f"{done}:",
        ]
        label = done
    return label


# --- Types -------------------------------------------------------------------------------------


def vector(type: str, width: int) -> str:
    """ "<16 x float>"; the type itself for width 1."""
    return type if width == 1 else f"<{width} x {type}>"


def mangle(type: str) -> str:
    """How an intrinsic's name spells a type: "<16 x float>" -> "v16f32"."""
    if type.startswith("<"):
        width, _, element = type[1:-1].partition(" x ")
        return f"v{width}{mangle(element)}"
    return {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16", "ptr": "p0"}.get(
        type, type
    )


def i64(number: int | Reg) -> Reg:
    return number if isinstance(number, Reg) else Reg(str(number), "i64")


def const(type: str, text: str | int) -> Reg:
    """A constant operand, usable everywhere."""
    return Reg(str(text), type)
