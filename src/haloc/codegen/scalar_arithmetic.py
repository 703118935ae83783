"""Arithmetic, bits and rounding of `LlvmScalar`."""

from __future__ import annotations

from haloc.codegen.scalar_complex import (
    complex_divide,
    complex_magnitude,
    complex_multiply,
    complex_sign,
)
from haloc.codegen.scalar_expr import Expr
from haloc.codegen.scalar_value import LlvmValue, ScalarCore
from haloc.errors import UnimplementedError
from haloc.ir.dtype import BF16, F8E8M0FNU, F16, F32, S16, S32, S64, DType

INTEGER_OF = {16: S16, 32: S32, 64: S64}


class Arithmetic(ScalarCore):
    def _operands(self, *values: LlvmValue) -> tuple[DType, list[LlvmValue]]:
        dtype = values[0].dtype
        assert all(v.dtype is dtype for v in values), values
        return dtype, self.matched(*values)

    def _exact(self, dtype: DType, expr: Expr) -> LlvmValue:
        """A result that a 16-bit float holds if its operands were such: rounds 8-bit types only."""
        return self.wrap(dtype, expr) if dtype in (F16, BF16) else self.rounded(dtype, expr)

    def add(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        dtype, (x, y) = self._operands(x, y)
        if dtype.is_complex:
            (a, b), (c, d) = self.parts(x), self.parts(y)
            return self.wrap(dtype, a + c, b + d)
        a, c = self.real_expr(x), self.real_expr(y)
        return self.rounded(dtype, a | c if dtype.is_pred else a + c)

    def subtract(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        dtype, (x, y) = self._operands(x, y)
        if dtype.is_complex:
            (a, b), (c, d) = self.parts(x), self.parts(y)
            return self.wrap(dtype, a - c, b - d)
        a, c = self.real_expr(x), self.real_expr(y)
        return self.rounded(dtype, a ^ c if dtype.is_pred else a - c)

    def multiply(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        dtype, (x, y) = self._operands(x, y)
        if dtype.is_complex:
            return self.wrap(dtype, *complex_multiply(self.parts(x), self.parts(y)))
        a, c = self.real_expr(x), self.real_expr(y)
        return self.rounded(dtype, a & c if dtype.is_pred else a * c)

    def mulhi(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        dtype, (x, y) = self._operands(x, y)
        wide, extend = f"i{2 * dtype.bits}", "sext" if dtype.is_signed else "zext"
        a, b = (self.real_expr(v).cast(extend, wide) for v in (x, y))
        return self.wrap(dtype, (a * b).lshr(dtype.bits).cast("trunc", f"i{dtype.bits}"))

    def divide(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        dtype, (x, y) = self._operands(x, y)
        if dtype.is_complex:
            return self.wrap(dtype, *complex_divide(self.parts(x), self.parts(y)))
        a, b = self.real_expr(x), self.real_expr(y)
        if dtype.is_float:
            return self.rounded(dtype, a / b)
        return self.wrap(dtype, b.eq(0).choose(-1, _quotient(a, _safe_divisor(a, b, dtype), dtype)))

    def remainder(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        dtype, (x, y) = self._operands(x, y)
        a, b = self.real_expr(x), self.real_expr(y)
        if dtype.is_float:
            return self._exact(dtype, a.binary("frem", b))
        safe = _safe_divisor(a, b, dtype)
        if a.width == 1:
            rest = a.binary("srem" if dtype.is_signed else "urem", safe)
        else:
            rest = a - _quotient(a, safe, dtype) * safe
        return self.wrap(dtype, b.eq(0).choose(a, rest))

    def integer_power(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        """x**y modulo 2^bits, by squaring. Negative y: 1 for x = 1, +-1 for x = -1, else 0."""
        dtype, (x, y) = self._operands(x, y)
        base, exponent = self.real_expr(x), self.real_expr(y)
        result, square = base.like(1), base
        for bit in range(dtype.bits):
            is_set = (exponent & (1 << bit)).ne(0)
            result = is_set.choose(result * square, result)
            if bit + 1 < dtype.bits:
                square = square * square
        if dtype.is_signed:
            sign = (exponent & 1).ne(0).choose(-1, base.like(1))
            fraction = base.eq(1).choose(1, base.eq(-1).choose(sign, base.like(0)))
            result = exponent.lt(0).choose(fraction, result)
        return self.wrap(dtype, result)

    # --- Order --------------------------------------------------------------------------------

    def maximum(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        return self._extreme(x, y, "maximum", "gt")

    def minimum(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        return self._extreme(x, y, "minimum", "lt")

    def _extreme(self, x: LlvmValue, y: LlvmValue, name: str, order: str) -> LlvmValue:
        dtype, (x, y) = self._operands(x, y)
        a, c = self.real_expr(x), self.real_expr(y)
        if dtype.is_float:
            return self.wrap(dtype, a.call(name, c))
        if dtype.is_complex:
            (a, b), (c, d) = self.parts(x), self.parts(y)
            first = a.compare(f"o{order}", c) | (a.eq(c) & b.compare(f"o{order}", d))
            first = first | a.is_nan() | b.is_nan()
            return self.wrap(dtype, first.choose(a, c), first.choose(b, d))
        if dtype.is_pred:
            return self.wrap(dtype, a | c if name == "maximum" else a & c)
        return self.wrap(dtype, a.call(("s" if dtype.is_signed else "u") + name[:3], c))

    def clamp(self, low: LlvmValue, x: LlvmValue, high: LlvmValue) -> LlvmValue:
        return self.minimum(self.maximum(x, low), high)

    # --- Signs --------------------------------------------------------------------------------

    def negate(self, x: LlvmValue) -> LlvmValue:
        if x.dtype.is_complex:
            a, b = self.parts(x)
            return self.wrap(x.dtype, -a, -b)
        return self._exact(x.dtype, -self.real_expr(x))

    def abs(self, x: LlvmValue) -> LlvmValue:
        if x.dtype.is_complex:
            return self.wrap(x.dtype.real, complex_magnitude(*self.parts(x)))
        if x.dtype.is_unsigned or x.dtype.is_pred:
            return x
        return self.wrap(x.dtype, self.real_expr(x).abs())

    def sign(self, x: LlvmValue) -> LlvmValue:
        """-1, 0 or 1; -0 and NaN stay; of a complex number z: z/|z|."""
        if x.dtype.is_complex:
            return self.wrap(x.dtype, *complex_sign(*self.parts(x)))
        a = self.real_expr(x)
        if x.dtype.is_float:
            one = a.like(1.0).copysign(a)
            return self._exact(x.dtype, (a.eq(0.0) | a.is_nan()).choose(a, one))
        if x.dtype.is_signed:
            return self.wrap(x.dtype, a.call("smax", -1).call("smin", 1) if x.dtype.bits > 1 else a)
        return self.wrap(x.dtype, a.ne(0).cast("zext", a.element))

    # --- Bits ---------------------------------------------------------------------------------

    def and_(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        dtype, (x, y) = self._operands(x, y)
        return self.wrap(dtype, self.real_expr(x) & self.real_expr(y))

    def or_(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        dtype, (x, y) = self._operands(x, y)
        return self.wrap(dtype, self.real_expr(x) | self.real_expr(y))

    def xor(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        dtype, (x, y) = self._operands(x, y)
        return self.wrap(dtype, self.real_expr(x) ^ self.real_expr(y))

    def not_(self, x: LlvmValue) -> LlvmValue:
        return self.wrap(x.dtype, ~self.real_expr(x))

    def shift_left(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        return self._shift(x, y, "shl")

    def shift_right_logical(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        return self._shift(x, y, "lshr")

    def _shift(self, x: LlvmValue, y: LlvmValue, opcode: str) -> LlvmValue:
        dtype, (x, y) = self._operands(x, y)
        a, count = self.real_expr(x), self.real_expr(y)
        return self.wrap(dtype, count.ult(dtype.bits).choose(a.binary(opcode, count), 0))

    def shift_right_arithmetic(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        dtype, (x, y) = self._operands(x, y)
        a, count = self.real_expr(x), self.real_expr(y)
        return self.wrap(dtype, a.ashr(count.call("umin", dtype.bits - 1)))

    def popcnt(self, x: LlvmValue) -> LlvmValue:
        return self.wrap(x.dtype, self.real_expr(x).call("ctpop"))

    def count_leading_zeros(self, x: LlvmValue) -> LlvmValue:
        return self.wrap(x.dtype, self.real_expr(x).call_flag("ctlz"))

    # --- Rounding -----------------------------------------------------------------------------

    def ceil(self, x: LlvmValue) -> LlvmValue:
        return self._exact(x.dtype, self.real_expr(x).call("ceil"))

    def floor(self, x: LlvmValue) -> LlvmValue:
        return self._exact(x.dtype, self.real_expr(x).call("floor"))

    def round_nearest_afz(self, x: LlvmValue) -> LlvmValue:
        return self._exact(x.dtype, self.real_expr(x).call("round"))

    def round_nearest_even(self, x: LlvmValue) -> LlvmValue:
        return self._exact(x.dtype, self.real_expr(x).call("roundeven"))

    def reduce_precision(self, x: LlvmValue, exponent_bits: int, mantissa_bits: int) -> LlvmValue:
        """The nearest number with so many bits, ties to even; too big: inf; too small: zero."""
        dtype = x.dtype
        if not dtype.is_float:
            raise UnimplementedError(f"reduce-precision: not of {dtype}")
        bits = self.bitcast(x, INTEGER_OF[dtype.bits]) if dtype.bits >= 16 else None
        if bits is None:  # 8 bits and less are cut as f16, as XLA does; f16 cannot hold f8e8m0fnu
            widened = LlvmValue(F32 if dtype is F8E8M0FNU else F16, x.width, x.reg)
            cut = self.reduce_precision(widened, exponent_bits, mantissa_bits)
            return self.rounded(dtype, self.real_expr(cut))
        source = {16: (5, 10), 32: (8, 23), 64: (11, 52)}[dtype.bits]
        if dtype is BF16:
            source = (8, 7)
        reduced = _reduce_bits(self.real_expr(bits), source, (exponent_bits, mantissa_bits))
        result = self.bitcast(self.wrap(bits.dtype, reduced), dtype)
        a = self.real_expr(x)
        return self.wrap(dtype, a.is_nan().choose(a, self.real_expr(result)))

    def bitcast(self, x: LlvmValue, dtype: DType) -> LlvmValue:
        raise NotImplementedError  # Conversion's


def _safe_divisor(a: Expr, b: Expr, dtype: DType) -> Expr:
    """1 where dividing would trap: then x/1 is what INT_MIN/-1 has to give, too."""
    traps = b.eq(0)
    if dtype.is_signed:
        traps = traps | (a.eq(1 << (dtype.bits - 1)) & b.eq(-1))
    return traps.choose(1, b)


def _quotient(a: Expr, b: Expr, dtype: DType) -> Expr:
    """a / b for b that does not trap. Vectors of up to 32 bits go through floating point.

    The float quotient truncates right: where a/b is not an integer it is at least 1/|a| away from
    one, relatively, and the format's rounding is finer (24 bits for 16, 53 for 32).
    """
    sign = "s" if dtype.is_signed else "u"
    if a.width == 1 or dtype.bits > 32:
        return a.binary(f"{sign}div", b)
    element = "float" if dtype.bits <= 16 else "double"
    to, back = f"{sign}itofp", f"fpto{sign}i"
    return (a.cast(to, element) / b.cast(to, element)).cast(back, a.element)


def _reduce_bits(x: Expr, source: tuple[int, int], to: tuple[int, int]) -> Expr:
    """Cut a float's bits from (exponent, mantissa) bits `source` to `to`."""
    (source_exponent, source_mantissa), (exponent, mantissa) = source, to
    if mantissa < source_mantissa:
        drop = source_mantissa - mantissa
        bias = (x.lshr(drop) & 1) + ((1 << (drop - 1)) - 1)
        x = (x + bias) & -(1 << drop)
    if exponent < source_exponent:
        source_bias = (1 << (source_exponent - 1)) - 1
        bias = (1 << (exponent - 1)) - 1
        field = ((1 << source_exponent) - 1) << source_mantissa
        sign = x & (1 << (x.bit_width - 1))
        magnitude = x & field
        is_over = magnitude.compare("ugt", (source_bias + bias) << source_mantissa)
        is_under = magnitude.compare("ule", (source_bias - bias) << source_mantissa)
        x = is_over.choose(sign | field, is_under.choose(sign, x))
    return x
