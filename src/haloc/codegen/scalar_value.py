"""`LlvmValue` and `ScalarCore`: how elements of each type are held in registers.

| type              | register         | memory                       |
|-------------------|------------------|------------------------------|
| pred              | i1               | i8, 0 or 1                   |
| sN, uN            | iN               | iN; sub-byte: i8             |
| f32, f64          | float, double    | the same                     |
| narrower floats   | float, rounded   | i16 or i8 with the type's bits |
| c64, c128         | two registers    | (real, imag) interleaved     |
"""

from __future__ import annotations

from functools import cache

import numpy as np

from haloc.codegen.builder import Builder, Reg, vector
from haloc.codegen.scalar_expr import Expr, constant_reg, shape_of
from haloc.codegen.scalar_narrow import round_to
from haloc.codegen.target import Target
from haloc.ir.dtype import DType


class LlvmValue:
    """One element (width 1) or `width` elements of `dtype`. imag: of a complex value, else None."""

    __slots__ = ("dtype", "imag", "reg", "width")

    def __init__(self, dtype: DType, width: int, reg: Reg, imag: Reg | None = None):
        self.dtype = dtype
        self.width = width
        self.reg = reg
        self.imag = imag

    def __repr__(self) -> str:
        imag = f", {self.imag}" if self.imag else ""
        return f"LlvmValue({self.dtype} x {self.width}: {self.reg}{imag})"


@cache
def register_element(dtype: DType) -> str:
    """LLVM's type of one element (one part, for complex) in a register."""
    if dtype.is_pred:
        return "i1"
    if dtype.is_integer:
        return f"i{dtype.bits}"
    return "double" if dtype.real.bits == 64 and not dtype.is_integer else "float"


def is_narrow(dtype: DType) -> bool:
    """A float type held in a wider register."""
    return dtype.is_float and dtype.bits < 32


class ScalarCore:
    """What every part of `LlvmScalar` builds on: wrapping registers, constants, widths."""

    def __init__(self, builder: Builder, target: Target):
        self.builder = builder
        self.target = target

    # --- Between values and expressions -------------------------------------------------------

    def real_expr(self, x: LlvmValue) -> Expr:
        """The register (the real part's, for complex)."""
        return Expr(self.builder, x.reg)

    def parts(self, x: LlvmValue) -> tuple[Expr, Expr]:
        """Real and imaginary part of a complex value."""
        assert x.imag is not None, x
        return Expr(self.builder, x.reg), Expr(self.builder, x.imag)

    def wrap(self, dtype: DType, expr: Expr, imag: Expr | None = None) -> LlvmValue:
        """A register that holds a value of `dtype` already."""
        return LlvmValue(dtype, expr.width, expr.reg, None if imag is None else imag.reg)

    def rounded(self, dtype: DType, expr: Expr) -> LlvmValue:
        """A float result, rounded when the type is narrower than its register."""
        if is_narrow(dtype):
            expr = round_to(expr, dtype, self.target)
        return self.wrap(dtype, expr)

    def matched(self, *values: LlvmValue) -> list[LlvmValue]:
        """All splatted to the widest one's width."""
        width = max(v.width for v in values)
        return [self.splat(v, width) for v in values]

    # --- Constants ----------------------------------------------------------------------------

    def constant(self, dtype: DType, number: object, width: int = 1) -> LlvmValue:
        """`number` (Python or NumPy) rounded to the type."""
        element = register_element(dtype)
        if dtype.is_complex:
            z = complex(number)  # type: ignore[call-overload]
            return LlvmValue(
                dtype,
                width,
                self._number(element, z.real, width),
                self._number(element, z.imag, width),
            )
        if dtype.is_integer:
            bits = int(number) & ((1 << dtype.bits) - 1)  # type: ignore[call-overload]
            return LlvmValue(dtype, width, constant_reg(vector(element, width), bits))
        if dtype.is_pred:
            return LlvmValue(dtype, width, constant_reg(vector(element, width), bool(number)))
        if is_narrow(dtype):
            assert dtype.numpy is not None
            with np.errstate(all="ignore"):
                number = float(np.asarray(number, np.float64).astype(dtype.numpy))
        return LlvmValue(dtype, width, self._number(element, float(number), width))  # type: ignore

    def _number(self, element: str, number: float, width: int) -> Reg:
        negative_zero = number == 0 and str(number)[0] == "-"
        return constant_reg(vector(element, width), number, negative_zero)

    # --- Widths -------------------------------------------------------------------------------

    def splat(self, value: LlvmValue, width: int) -> LlvmValue:
        """Every lane equal to a width-1 value; the value itself if it has that width."""
        if value.width == width:
            return value
        assert value.width == 1, (value, width)
        imag = None if value.imag is None else self.builder.splat(value.imag, width)
        return LlvmValue(value.dtype, width, self.builder.splat(value.reg, width), imag)

    def split(self, value: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
        """The low and the high half of a vector."""
        half = value.width // 2
        assert half * 2 == value.width, value
        return (
            self._map(value, half, lambda reg: self._lanes(reg, 0, half)),
            self._map(value, half, lambda reg: self._lanes(reg, half, half)),
        )

    def extract(self, value: LlvmValue, lane: int) -> LlvmValue:
        """One lane of a vector, width 1."""
        assert 0 <= lane < value.width
        return self._map(value, 1, lambda reg: self._lanes(reg, lane, 1))

    def _map(self, value, width, part) -> LlvmValue:  # type: ignore[no-untyped-def]
        imag = None if value.imag is None else part(value.imag)
        return LlvmValue(value.dtype, width, part(value.reg), imag)

    def _lanes(self, reg: Reg, first: int, count: int) -> Reg:
        width, element = shape_of(reg.type)
        if width == count:
            return reg
        if count == 1:
            return self.builder.op(element, f"extractelement {reg.type} {{0}}, i64 {first}", reg)
        return shuffle(self.builder, reg, reg, range(first, first + count))


def shuffle(builder: Builder, a: Reg, b: Reg, lanes: range | list[int]) -> Reg:
    """Lanes of a followed by b, picked by number (-1: unspecified)."""
    element = shape_of(a.type)[1]
    picked = ", ".join("i32 poison" if i < 0 else f"i32 {i}" for i in lanes)
    return builder.op(
        f"<{len(lanes)} x {element}>",
        f"shufflevector {a.type} {{0}}, {b.type} {{1}}, <{len(lanes)} x i32> <{picked}>",
        a,
        b,
    )
