"""Formulas over HLO instructions, written as Python expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from haloc.ir.dtype import PRED, DType
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape


class Scope(Protocol):
    """Where instructions of a formula are added."""

    def add(
        self, opcode: str, shape: Shape, operands: Iterable[HloInstruction] = (), /, **attrs: Any
    ) -> HloInstruction: ...

    def constant(self, array: object, dtype: DType | None = None, /) -> HloInstruction: ...


class Expression:
    """An array in a formula. Numbers beside it become constants of its type and shape."""

    __slots__ = ("instruction", "scope")

    def __init__(self, scope: Scope, instruction: HloInstruction):
        self.scope = scope
        self.instruction = instruction

    @property
    def dtype(self) -> DType:
        return self.instruction.shape.dtype

    @property
    def shape(self) -> Shape:
        return self.instruction.shape

    def like(self, value: object) -> Expression:
        """A number as an array of this type and shape."""
        if isinstance(value, Expression):
            return value
        constant = self.scope.constant(value, self.dtype)
        if self.shape.rank == 0:
            return Expression(self.scope, constant)
        made = self.scope.add("broadcast", self.shape, (constant,), dimensions=())
        return Expression(self.scope, made)

    def _op(self, opcode: str, *others: object, shape: Shape | None = None) -> Expression:
        operands = [self.instruction, *(self.like(o).instruction for o in others)]
        made = self.scope.add(opcode, shape or self.shape, operands)
        return Expression(self.scope, made)

    def convert(self, dtype: DType) -> Expression:
        if dtype is self.dtype:
            return self
        return self._op("convert", shape=self.shape.with_dtype(dtype))

    def bitcast(self, dtype: DType) -> Expression:
        return self._op("bitcast-convert", shape=self.shape.with_dtype(dtype))

    def unary(self, opcode: str, dtype: DType | None = None) -> Expression:
        return self._op(opcode, shape=self.shape.with_dtype(dtype or self.dtype))

    def binary(self, opcode: str, other: object) -> Expression:
        return self._op(opcode, other)

    def compare(self, direction: str, other: object) -> Expression:
        operands = (self.instruction, self.like(other).instruction)
        shape = self.shape.with_dtype(PRED)
        made = self.scope.add("compare", shape, operands, direction=direction)
        return Expression(self.scope, made)

    def rounded_to(self, exponent_bits: int, mantissa_bits: int) -> Expression:
        attrs = {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits}
        operands = (self.instruction,)
        made = self.scope.add("reduce-precision", self.shape, operands, **attrs)
        return Expression(self.scope, made)

    def select(self, on_true: Expression | float, on_false: Expression | float) -> Expression:
        """This predicate ? on_true : on_false; at least one of them an Expression."""
        known = on_true if isinstance(on_true, Expression) else on_false
        assert isinstance(known, Expression)
        a, b = known.like(on_true), known.like(on_false)
        operands = (self.instruction, a.instruction, b.instruction)
        return Expression(self.scope, self.scope.add("select", known.shape, operands))

    def __add__(self, other: object) -> Expression:
        return self._op("add", other)

    __radd__ = __add__

    def __mul__(self, other: object) -> Expression:
        return self._op("multiply", other)

    __rmul__ = __mul__

    def __sub__(self, other: object) -> Expression:
        return self._op("subtract", other)

    def __rsub__(self, other: object) -> Expression:
        return self.like(other)._op("subtract", self)

    def __truediv__(self, other: object) -> Expression:
        return self._op("divide", other)

    def __rtruediv__(self, other: object) -> Expression:
        return self.like(other)._op("divide", self)

    def __neg__(self) -> Expression:
        return self._op("negate")

    def __and__(self, other: object) -> Expression:
        return self._op("and", other)

    def __or__(self, other: object) -> Expression:
        return self._op("or", other)

    def __invert__(self) -> Expression:
        return self._op("not")

    def __lt__(self, other: object) -> Expression:
        return self.compare("LT", other)

    def __le__(self, other: object) -> Expression:
        return self.compare("LE", other)

    def __gt__(self, other: object) -> Expression:
        return self.compare("GT", other)

    def __ge__(self, other: object) -> Expression:
        return self.compare("GE", other)

    def equals(self, other: object) -> Expression:
        return self.compare("EQ", other)

    def differs(self, other: object) -> Expression:
        return self.compare("NE", other)


def chebyshev(y: Expression, coefficients: Sequence[float]) -> Expression:
    """sum c_n T_n(y), by Clenshaw's recurrence; terms too small for the type are left out."""
    tiny = {"f32": 1e-9, "f64": 0.0}[y.dtype.name] * abs(coefficients[0])
    kept = list(coefficients)
    while abs(kept[-1]) < tiny:
        kept.pop()
    double = y + y
    second, first = y.like(0.0), y.like(kept[-1])
    for c in reversed(kept[1:-1]):
        second, first = first, double * first - second + c
    return y * first - second + kept[0]


def nan_of(dtype: DType) -> object:
    return np.array(np.nan).astype(dtype.numpy)
