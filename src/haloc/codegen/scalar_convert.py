"""Comparison, choice, conversion and bitcast of `LlvmScalar`."""

from __future__ import annotations

from haloc.codegen.scalar_expr import Expr
from haloc.codegen.scalar_narrow import decode, encode
from haloc.codegen.scalar_value import LlvmValue, ScalarCore, is_narrow, register_element
from haloc.errors import UnimplementedError
from haloc.ir.dtype import C64, C128, F32, F64, PRED, DType

_FLOAT_ORDER = {"EQ": "oeq", "NE": "une", "GE": "oge", "GT": "ogt", "LE": "ole", "LT": "olt"}


class Conversion(ScalarCore):
    def compare(
        self, x: LlvmValue, y: LlvmValue, direction: str, total_order: bool = False
    ) -> LlvmValue:
        x, y = self.matched(x, y)
        a, b = self.real_expr(x), self.real_expr(y)
        dtype = x.dtype
        if dtype.is_complex:
            return self.wrap(PRED, self._compare_complex(x, y, direction))
        if dtype.is_float and not total_order:
            return self.wrap(PRED, a.compare(_FLOAT_ORDER[direction], b))
        predicate = direction.lower()
        is_signed = dtype.is_signed or dtype.is_float
        if dtype.is_float:
            a, b = _total_order_key(a), _total_order_key(b)
        if direction not in ("EQ", "NE"):
            predicate = ("s" if is_signed else "u") + predicate
        return self.wrap(PRED, a.compare(predicate, b))

    def _compare_complex(self, x: LlvmValue, y: LlvmValue, direction: str) -> Expr:
        (a, b), (c, d) = self.parts(x), self.parts(y)
        if direction == "EQ":
            return a.eq(c) & b.eq(d)
        if direction == "NE":
            return a.ne(c) | b.ne(d)
        raise UnimplementedError(f"compare: direction {direction} of {x.dtype} (EQ and NE only)")

    def select(self, pred: LlvmValue, on_true: LlvmValue, on_false: LlvmValue) -> LlvmValue:
        """Lane by lane; a width-1 pred picks whole vectors."""
        pred, on_true, on_false = self.matched(pred, on_true, on_false)
        mask = self.real_expr(pred)
        if on_true.dtype.is_complex:
            pairs = zip(self.parts(on_true), self.parts(on_false), strict=True)
            return self.wrap(on_true.dtype, *[mask.choose(t, f) for t, f in pairs])
        chosen = mask.choose(self.real_expr(on_true), self.real_expr(on_false))
        return self.wrap(on_true.dtype, chosen)

    def is_finite(self, x: LlvmValue) -> LlvmValue:
        parts = self.parts(x) if x.dtype.is_complex else (self.real_expr(x),)
        finite = [p.abs().lt(float("inf")) for p in parts]
        return self.wrap(PRED, finite[0] if len(finite) == 1 else finite[0] & finite[1])

    # --- Parts --------------------------------------------------------------------------------

    def complex(self, real: LlvmValue, imag: LlvmValue) -> LlvmValue:
        real, imag = self.matched(real, imag)
        return self.wrap(_COMPLEX_OF[real.dtype], self.real_expr(real), self.real_expr(imag))

    def real(self, x: LlvmValue) -> LlvmValue:
        return self.wrap(x.dtype.real, self.real_expr(x)) if x.dtype.is_complex else x

    def imag(self, x: LlvmValue) -> LlvmValue:
        if x.dtype.is_complex:
            return self.wrap(x.dtype.real, self.parts(x)[1])
        return self.constant(x.dtype, 0, x.width)

    # --- Conversion ---------------------------------------------------------------------------

    def convert(self, x: LlvmValue, dtype: DType) -> LlvmValue:
        """The same number in another type.

        To integers: towards zero, saturating, NaN to 0. To pred: x != 0. To a real type from a
        complex one: the real part. To floats: nearest, ties to even, one rounding.
        """
        if dtype is x.dtype:
            return x
        a = self.real_expr(x)
        if dtype.is_pred:
            zero = a.like(0.0 if a.is_float else 0)
            is_nonzero = a.ne(zero)
            if x.dtype.is_complex:
                is_nonzero = is_nonzero | self.parts(x)[1].ne(0.0)
            return self.wrap(PRED, is_nonzero)
        if dtype.is_complex:
            return self._to_complex(x, dtype)
        if x.dtype.is_complex:
            return self.convert(self.real(x), dtype)
        if x.dtype.is_float:
            return self._from_float(x, dtype)
        return self._from_integer(x, dtype)

    def _to_complex(self, x: LlvmValue, dtype: DType) -> LlvmValue:
        real = self.real_expr(self.convert(self.real(x), dtype.real))
        if not x.dtype.is_complex:
            return self.wrap(dtype, real, real.like(0.0))
        return self.wrap(dtype, real, self.real_expr(self.convert(self.imag(x), dtype.real)))

    def _from_integer(self, x: LlvmValue, dtype: DType) -> LlvmValue:
        a = self.real_expr(x)
        element = register_element(dtype)
        if dtype.is_integer:
            if dtype.bits <= x.dtype.bits:
                return self.wrap(dtype, a.cast("trunc", element))
            return self.wrap(dtype, a.cast("sext" if x.dtype.is_signed else "zext", element))
        return self.rounded(dtype, a.cast("sitofp" if x.dtype.is_signed else "uitofp", element))

    def _from_float(self, x: LlvmValue, dtype: DType) -> LlvmValue:
        a = self.real_expr(x)
        if dtype.is_integer:
            return self.wrap(dtype, _saturated(a, dtype))
        if dtype is F64:
            return self.wrap(dtype, a.cast("fpext", "double"))
        if dtype is F32:
            return self.wrap(dtype, a.cast("fptrunc", "float"))
        if x.dtype is F64:
            a = _to_odd(a)
        return self.rounded(dtype, a)

    def bitcast(self, x: LlvmValue, dtype: DType) -> LlvmValue:
        if dtype is x.dtype:
            return x
        if dtype.is_complex or x.dtype.is_complex or dtype.bits != x.dtype.bits:
            raise UnimplementedError(f"bitcast-convert: from {x.dtype} to {dtype}")
        a = self.real_expr(x)
        if is_narrow(x.dtype):
            a = encode(a, x.dtype, self.target).cast("trunc", f"i{x.dtype.bits}")
        elif x.dtype.is_float:
            a = a.bits()
        if is_narrow(dtype):
            return self.wrap(
                dtype, decode(a.cast("zext", f"i{max(8, dtype.bits)}"), dtype, self.target)
            )
        return self.wrap(dtype, a.as_float() if dtype.is_float else a)


_COMPLEX_OF = {F32: C64, F64: C128}


def _saturated(x: Expr, dtype: DType) -> Expr:
    """The integer towards zero, bounded by the type; NaN gives 0. (Both bounds are exact floats.)

    What llvm.fptosi.sat does; that one is slow in vectors.
    """
    kind = "s" if dtype.is_signed else "u"
    value_bits = dtype.bits - 1 if dtype.is_signed else dtype.bits
    over = 2.0**value_bits
    inside = x.lt(over).choose(x, 0.0).at_least(-over if dtype.is_signed else 0.0)
    wide = inside.cast(f"fpto{kind}i", f"i{max(32, dtype.bits)}")
    number = wide.cast("trunc", f"i{dtype.bits}")
    return x.ge(over).choose((1 << value_bits) - 1, number)


def _total_order_key(x: Expr) -> Expr:
    """A signed integer that orders as -NaN < -inf < -0 < +0 < inf < NaN."""
    bits = x.bits()
    n = bits.bit_width
    return bits ^ bits.ashr(n - 1).lshr(1)


def _to_odd(x: Expr) -> Expr:
    """double to float, inexact results made odd: rounding again, to less, is then right."""
    near = x.cast("fptrunc", "float")
    back = near.cast("fpext", "double")
    bits = near.bits()
    below = bits - back.abs().gt(x.abs()).cast("zext", "i32")
    return (back.eq(x) | x.is_nan()).choose(bits, below | 1).as_float()
