"""`Expr`: an LLVM register with arithmetic operators, in which scalar code and math are written.

Every operator is one pure LLVM instruction placed through `Builder.op`. Comparisons are methods
(`x.lt(y)`), give i1 masks, and are false for NaN except `ne`. Integers are signless, as in LLVM:
the u-methods take them as unsigned. A Python number as operand is a constant of the Expr's type.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache

from haloc.codegen.builder import Builder, Reg, mangle, vector

FLOATS = ("half", "float", "double")
FLOAT_BITS = {"half": 16, "float": 32, "double": 64}


@cache
def shape_of(type: str) -> tuple[int, str]:
    """("float", or "<16 x float>") -> (1 or 16, "float")."""
    if type.startswith("<"):
        width, _, element = type[1:-1].partition(" x ")
        return int(width), element
    return 1, type


def literal(element: str, number: float) -> str:
    """A constant as LLVM text; floats are rounded to the type."""
    if element == "i1":
        return "true" if number else "false"
    if element == "float":
        with_overflow = abs(number) > 3.4028235677973366e38
        single = number if with_overflow else struct.unpack("f", struct.pack("f", number))[0]
        if with_overflow:
            single = float("inf") if number > 0 else float("-inf")
        return f"0x{struct.unpack('Q', struct.pack('d', single))[0]:016X}"
    if element == "double":
        return f"0x{struct.unpack('Q', struct.pack('d', number))[0]:016X}"
    if element == "half":
        return f"0xH{struct.unpack('H', struct.pack('e', number))[0]:04X}"
    return str(int(number))


@cache
def constant_reg(type: str, number: float, sign: bool = False) -> Reg:
    """A constant, splatted to a vector type. (`sign` only tells -0.0 from 0.0 in the cache.)"""
    width, element = shape_of(type)
    text = literal(element, -0.0 if sign else number)
    return Reg(text if width == 1 else f"splat ({element} {text})", type)


class Expr:
    """One register: a scalar or a vector."""

    __slots__ = ("builder", "reg")

    def __init__(self, builder: Builder, reg: Reg):
        self.builder = builder
        self.reg = reg

    @property
    def type(self) -> str:
        return self.reg.type

    @property
    def width(self) -> int:
        return shape_of(self.reg.type)[0]

    @property
    def element(self) -> str:
        return shape_of(self.reg.type)[1]

    @property
    def is_float(self) -> bool:
        return self.element in FLOATS

    @property
    def bit_width(self) -> int:
        element = self.element
        return FLOAT_BITS.get(element) or int(element[1:])

    # --- Constants and raw operations ---------------------------------------------------------

    def like(self, number: float) -> Expr:
        """A constant of this type."""
        return self.constant(self.element, number)

    def constant(self, element: str, number: float) -> Expr:
        """A constant of another element type and this width."""
        negative_zero = number == 0 and isinstance(number, float) and str(number)[0] == "-"
        reg = constant_reg(vector(element, self.width), number, negative_zero)
        return Expr(self.builder, reg)

    def _of(self, other: Expr | float) -> Expr:
        return other if isinstance(other, Expr) else self.like(other)

    def raw(self, type: str, template: str, *others: Expr) -> Expr:
        """Any pure instruction; {0} is this register."""
        return Expr(
            self.builder, self.builder.op(type, template, self.reg, *[o.reg for o in others])
        )

    def binary(self, opcode: str, other: Expr | float) -> Expr:
        return self.raw(self.type, f"{opcode} {self.type} {{0}}, {{1}}", self._of(other))

    def call(self, intrinsic: str, *others: Expr | float) -> Expr:
        """llvm.<intrinsic> overloaded on this type."""
        registers = [self._of(o).reg for o in others]
        return Expr(
            self.builder, self.builder.intrinsic(intrinsic, self.type, self.reg, *registers)
        )

    def call_flag(self, intrinsic: str, flag: str = "false") -> Expr:
        """llvm.<intrinsic>(x, i1 flag): ctlz, abs."""
        name = f"@llvm.{intrinsic}.{mangle(self.type)}"
        self.builder.declare(f"declare {self.type} {name}({self.type}, i1)")
        return self.raw(self.type, f"call {self.type} {name}({self.type} {{0}}, i1 {flag})")

    # --- Arithmetic ---------------------------------------------------------------------------

    def __add__(self, other: Expr | float) -> Expr:
        return self.binary("fadd" if self.is_float else "add", other)

    def __radd__(self, other: float) -> Expr:
        return self._of(other) + self

    def __sub__(self, other: Expr | float) -> Expr:
        return self.binary("fsub" if self.is_float else "sub", other)

    def __rsub__(self, other: float) -> Expr:
        return self._of(other) - self

    def __mul__(self, other: Expr | float) -> Expr:
        return self.binary("fmul" if self.is_float else "mul", other)

    def __rmul__(self, other: float) -> Expr:
        return self._of(other) * self

    def __truediv__(self, other: Expr | float) -> Expr:
        return self.binary("fdiv", other)

    def __rtruediv__(self, other: float) -> Expr:
        return self._of(other) / self

    def __neg__(self) -> Expr:
        if self.is_float:
            return self.raw(self.type, f"fneg {self.type} {{0}}")
        return self.like(0) - self

    def __and__(self, other: Expr | int) -> Expr:
        return self.binary("and", other)

    def __or__(self, other: Expr | int) -> Expr:
        return self.binary("or", other)

    def __xor__(self, other: Expr | int) -> Expr:
        return self.binary("xor", other)

    def __invert__(self) -> Expr:
        return self.binary("xor", 1 if self.element == "i1" else -1)

    def shl(self, count: Expr | int) -> Expr:
        return self.binary("shl", count)

    def lshr(self, count: Expr | int) -> Expr:
        return self.binary("lshr", count)

    def ashr(self, count: Expr | int) -> Expr:
        return self.binary("ashr", count)

    def fma(self, factor: Expr | float, addend: Expr | float) -> Expr:
        """self * factor + addend, rounded once."""
        return self.call("fma", factor, addend)

    def abs(self) -> Expr:
        return self.call("fabs") if self.is_float else self.call_flag("abs")

    def sqrt(self) -> Expr:
        return self.call("sqrt")

    def copysign(self, sign: Expr) -> Expr:
        return self.call("copysign", sign)

    # --- Comparison and choice ----------------------------------------------------------------

    def compare(self, predicate: str, other: Expr | float) -> Expr:
        """fcmp or icmp with LLVM's predicate name ("olt", "ult", ...)."""
        opcode = "fcmp" if self.is_float else "icmp"
        return self.raw(
            vector("i1", self.width),
            f"{opcode} {predicate} {self.type} {{0}}, {{1}}",
            self._of(other),
        )

    def lt(self, other: Expr | float) -> Expr:
        return self.compare("olt" if self.is_float else "slt", other)

    def le(self, other: Expr | float) -> Expr:
        return self.compare("ole" if self.is_float else "sle", other)

    def gt(self, other: Expr | float) -> Expr:
        return self.compare("ogt" if self.is_float else "sgt", other)

    def ge(self, other: Expr | float) -> Expr:
        return self.compare("oge" if self.is_float else "sge", other)

    def eq(self, other: Expr | float) -> Expr:
        return self.compare("oeq" if self.is_float else "eq", other)

    def ne(self, other: Expr | float) -> Expr:
        return self.compare("une" if self.is_float else "ne", other)

    def ult(self, other: Expr | int) -> Expr:
        return self.compare("ult", other)

    def uge(self, other: Expr | int) -> Expr:
        return self.compare("uge", other)

    def is_nan(self) -> Expr:
        return self.raw(vector("i1", self.width), f"fcmp uno {self.type} {{0}}, {{0}}")

    def choose(self, on_true: Expr | float, on_false: Expr | float) -> Expr:
        """A mask picks; at least one choice is an Expr."""
        if not isinstance(on_true, Expr):
            assert isinstance(on_false, Expr)
            on_true = on_false.like(on_true)
        on_false = on_true._of(on_false)
        return self.raw(
            on_true.type,
            f"select {self.type} {{0}}, {on_true.type} {{1}}, {on_true.type} {{2}}",
            on_true,
            on_false,
        )

    def at_most(self, bound: float) -> Expr:
        """min(self, bound); NaN stays."""
        return self.gt(bound).choose(bound, self)

    def at_least(self, bound: float) -> Expr:
        """max(self, bound); NaN stays."""
        return self.lt(bound).choose(bound, self)

    # --- Conversion ---------------------------------------------------------------------------

    def cast(self, opcode: str, element: str) -> Expr:
        """zext, sext, trunc, fpext, fptrunc, sitofp, uitofp, ... ; nothing for the same type."""
        if element == self.element:
            return self
        to = vector(element, self.width)
        return self.raw(to, f"{opcode} {self.type} {{0}} to {to}")

    def bits(self) -> Expr:
        """A float's bits as an integer."""
        return self.cast("bitcast", f"i{self.bit_width}")

    def as_float(self) -> Expr:
        """An integer's bits as float or double."""
        return self.cast("bitcast", {16: "half", 32: "float", 64: "double"}[self.bit_width])


def outlined(
    name: str,
    body: Callable[..., Expr | tuple[Expr, ...]],
    *arguments: Expr,
) -> Expr | tuple[Expr, ...]:
    """body(*arguments) as a call of an internal function written once per name and types.

    For code too big to repeat. `body` may return several registers.
    """
    builder = arguments[0].builder
    types = tuple(a.type for a in arguments)
    symbol = f"@haloc.{name}." + ".".join(mangle(t) for t in dict.fromkeys(types))
    text, results, declares, library = _function(symbol, body, types)
    for line in declares:
        builder.declare(line)
    for inner, inner_text in library:
        builder.define(inner, inner_text)
    builder.define(symbol, text)
    returned = _returned(results)
    operands = ", ".join(f"{t} {{{i}}}" for i, t in enumerate(types))
    struct = returned.replace("{", "{{").replace("}", "}}")  # the template's own braces
    call = builder.op(returned, f"call {struct} {symbol}({operands})", *[a.reg for a in arguments])
    if len(results) == 1:
        return Expr(builder, call)
    return tuple(
        Expr(builder, builder.op(t, f"extractvalue {struct} {{0}}, {i}", call))
        for i, t in enumerate(results)
    )


def _returned(types: tuple[str, ...]) -> str:
    return types[0] if len(types) == 1 else "{ " + ", ".join(types) + " }"


@cache
def _function(
    symbol: str, body: Callable[..., Expr | tuple[Expr, ...]], types: tuple[str, ...]
) -> tuple[str, tuple[str, ...], tuple[str, ...], tuple[tuple[str, str], ...]]:
    """An outlined function's text, result types, declares and the functions it calls."""
    builder = Builder()
    parameters = [Reg(f"%a{i}", t, builder.root) for i, t in enumerate(types)]
    out = body(*[Expr(builder, p) for p in parameters])
    results = out if isinstance(out, tuple) else (out,)
    result_types = tuple(r.type for r in results)
    returned = _returned(result_types)
    lines = builder.body()
    value = results[0].reg.ref
    if len(results) > 1:
        value = "poison"
        for i, r in enumerate(results):
            lines.append(f"  %r{i} = insertvalue {returned} {value}, {r.reg}, {i}")
            value = f"%r{i}"
    signature = ", ".join(str(p) for p in parameters)
    text = "\n".join(
        [
            f"define internal {returned} {symbol}({signature}) nounwind noinline memory(none) {{",
            *lines,
            f"  ret {returned} {value}",
            "}\n",
        ]
    )
    return text, result_types, tuple(builder.declares), tuple(builder.library.items())
