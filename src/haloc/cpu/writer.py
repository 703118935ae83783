"""Writes LLVM functions statement by statement: variables, loops that may run zero times, tests.

For irregular code (sorting, library calls, transforms). Loop nests over arrays use
`codegen.builder`, which hoists and numbers values. Variables are allocas in the entry block, which
LLVM's sroa turns into registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """A mutable local: its address and type."""

    ref: str
    type: str


class Function:
    """One function under construction. Values are their LLVM spelling ("%v3", "7")."""

    def __init__(self, symbol: str, parameters: str = "", result: str = "void", linkage: str = ""):
        """parameters: as LLVM writes them, "ptr %a, i64 %n"."""
        words = " ".join(w for w in ("define", linkage, result) if w)
        self._head = f"{words} @{symbol}({parameters}) nounwind {{"
        self._entry: list[str] = []
        self._lines: list[str] = []
        self._count = 0

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def op(self, text: str) -> str:
        """Run an instruction that has a result; returns its register."""
        name = "%" + self._name()
        self._lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Run an instruction without a result."""
        self._lines.append(f"  {text}")

    # --- i64 arithmetic, folded when both sides are numbers ------------------------------------

    def _fold(self, opcode: str, x: str | int, y: str | int) -> str:
        x, y = str(x), str(y)
        if _is_number(x) and _is_number(y):
            a, b = int(x), int(y)
            return str({"add": a + b, "sub": a - b, "mul": a * b}[opcode])
        if (opcode, y) in (("add", "0"), ("sub", "0"), ("mul", "1")):
            return x
        if (opcode, x) in (("add", "0"), ("mul", "1")):
            return y
        if opcode == "mul" and "0" in (x, y):
            return "0"
        return self.op(f"{opcode} i64 {x}, {y}")

    def add(self, x: str | int, y: str | int) -> str:
        return self._fold("add", x, y)

    def sub(self, x: str | int, y: str | int) -> str:
        return self._fold("sub", x, y)

    def mul(self, x: str | int, y: str | int) -> str:
        return self._fold("mul", x, y)

    def divmod(self, x: str | int, divisor: int) -> tuple[str, str]:
        """Quotient and remainder of a non-negative i64 by a positive constant."""
        if divisor == 1:
            return str(x), "0"
        quotient = self.op(f"udiv i64 {x}, {divisor}")
        return quotient, self.op(f"urem i64 {x}, {divisor}")

    # --- Memory --------------------------------------------------------------------------------

    def variable(self, type: str, start: str | int | None = None) -> Variable:
        variable = Variable("%" + self._name(), type)
        self._entry.append(f"  {variable.ref} = alloca {type}, align 64")
        if start is not None:
            self.set(variable, start)
        return variable

    def get(self, variable: Variable) -> str:
        return self.load(variable.type, variable.ref)

    def set(self, variable: Variable, value: str | int) -> None:
        self.store(variable.type, value, variable.ref)

    def element(self, pointer: str, type: str, index: str | int) -> str:
        """The address of element `index` of an array of `type`."""
        if str(index) == "0":
            return pointer
        return self.op(f"getelementptr inbounds {type}, ptr {pointer}, i64 {index}")

    def load(self, type: str, pointer: str, align: int = 0) -> str:
        return self.op(f"load {type}, ptr {pointer}" + (f", align {align}" if align else ""))

    def store(self, type: str, value: str | int, pointer: str, align: int = 0) -> None:
        self.do(f"store {type} {value}, ptr {pointer}" + (f", align {align}" if align else ""))

    # --- Control -------------------------------------------------------------------------------

    @contextmanager
    def loop(self, begin: str | int, end: str | int, step: int = 1) -> Iterator[str]:
        """for (i = begin; i < end; i += step), the i64 index given."""
        index = self.variable("i64", begin)
        with self.forever() as leave_if:
            i = self.get(index)
            leave_if(self.op(f"icmp sge i64 {i}, {end}"))
            yield i
            self.set(index, self.op(f"add nsw i64 {i}, {step}"))

    @contextmanager
    def forever(self) -> Iterator[object]:
        """Loop until `leave_if(condition)`, called anywhere in the body, finds an i1 true."""
        name = self._name()
        self._lines += [f"  br label %{name}.top", f"{name}.top:"]

        def leave_if(condition: str) -> None:
            stay = self._name()
            self._lines += [f"  br i1 {condition}, label %{name}.out, label %{stay}", f"{stay}:"]

        yield leave_if
        self._lines += [f"  br label %{name}.top", f"{name}.out:"]

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """if (condition) body."""
        name = self._name()
        self._lines += [f"  br i1 {condition}, label %{name}.yes, label %{name}.no", f"{name}.yes:"]
        yield
        self._lines += [f"  br label %{name}.no", f"{name}.no:"]

    def text(self, result: str = "void") -> str:
        """The finished function, returning `result` ("i1 %v7")."""
        entry = ["entry:", *self._entry, "  br label %start", "start:"]
        return "\n".join([self._head, *entry, *self._lines, f"  ret {result}", "}"]) + "\n"


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()
