"""The elementary functions of `LlvmScalar`: which code serves which type."""

from __future__ import annotations

from collections.abc import Callable

from haloc.codegen import scalar_complex_functions as complex_functions
from haloc.codegen.math.error_function import erf
from haloc.codegen.math.exponential import exponential, exponential_minus_one, logistic
from haloc.codegen.math.hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from haloc.codegen.math.inverse_trigonometric import acos, asin, atan2
from haloc.codegen.math.logarithm import log, log_plus_one
from haloc.codegen.math.powers import cbrt, power, rsqrt
from haloc.codegen.math.trigonometric import cosine, sine, tan
from haloc.codegen.scalar_expr import Expr, outlined
from haloc.codegen.scalar_value import LlvmValue, ScalarCore
from haloc.errors import UnimplementedError

RealFunction = Callable[..., Expr]
ComplexFunction = Callable[..., tuple[Expr, Expr]]


class Functions(ScalarCore):
    """Short functions are emitted in place; long ones once, as a function that is called."""

    def _real(self, name: str, function: RealFunction, *values: LlvmValue) -> LlvmValue:
        dtype = values[0].dtype
        if not dtype.is_float:
            raise UnimplementedError(f"{name}: not of {dtype}")
        arguments = [self.real_expr(v) for v in self.matched(*values)]
        if name in _IN_PLACE and arguments[0].element in _IN_PLACE[name]:
            return self.rounded(dtype, function(*arguments))
        result = outlined(name, function, *arguments)
        assert isinstance(result, Expr)
        return self.rounded(dtype, result)

    def _either(self, name: str, function: RealFunction, *values: LlvmValue) -> LlvmValue:
        """A function of floats or of complex numbers."""
        dtype = values[0].dtype
        if not dtype.is_complex:
            return self._real(name, function, *values)
        body: ComplexFunction = getattr(complex_functions, name)
        parts = [p for v in self.matched(*values) for p in self.parts(v)]
        real, imag = outlined(f"complex_{name}", body, *parts)  # type: ignore[misc]
        return self.wrap(dtype, real, imag)

    def exponential(self, x: LlvmValue) -> LlvmValue:
        return self._either("exponential", exponential, x)

    def exponential_minus_one(self, x: LlvmValue) -> LlvmValue:
        return self._either("exponential_minus_one", exponential_minus_one, x)

    def log(self, x: LlvmValue) -> LlvmValue:
        return self._either("log", log, x)

    def log_plus_one(self, x: LlvmValue) -> LlvmValue:
        return self._either("log_plus_one", log_plus_one, x)

    def logistic(self, x: LlvmValue) -> LlvmValue:
        return self._either("logistic", logistic, x)

    def sqrt(self, x: LlvmValue) -> LlvmValue:
        return self._either("sqrt", Expr.sqrt, x)

    def rsqrt(self, x: LlvmValue) -> LlvmValue:
        return self._either("rsqrt", rsqrt, x)

    def cbrt(self, x: LlvmValue) -> LlvmValue:
        return self._real("cbrt", cbrt, x)

    def sine(self, x: LlvmValue) -> LlvmValue:
        return self._either("sine", sine, x)

    def cosine(self, x: LlvmValue) -> LlvmValue:
        return self._either("cosine", cosine, x)

    def tan(self, x: LlvmValue) -> LlvmValue:
        return self._either("tan", tan, x)

    def asin(self, x: LlvmValue) -> LlvmValue:
        return self._either("asin", asin, x)

    def acos(self, x: LlvmValue) -> LlvmValue:
        return self._either("acos", acos, x)

    def sinh(self, x: LlvmValue) -> LlvmValue:
        return self._either("sinh", sinh, x)

    def cosh(self, x: LlvmValue) -> LlvmValue:
        return self._either("cosh", cosh, x)

    def tanh(self, x: LlvmValue) -> LlvmValue:
        return self._either("tanh", tanh, x)

    def asinh(self, x: LlvmValue) -> LlvmValue:
        return self._either("asinh", asinh, x)

    def acosh(self, x: LlvmValue) -> LlvmValue:
        return self._either("acosh", acosh, x)

    def atanh(self, x: LlvmValue) -> LlvmValue:
        return self._either("atanh", atanh, x)

    def atan2(self, y: LlvmValue, x: LlvmValue) -> LlvmValue:
        return self._either("atan2", atan2, y, x)

    def erf(self, x: LlvmValue) -> LlvmValue:
        return self._real("erf", erf, x)

    def power(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        if x.dtype.is_integer:
            return self.integer_power(x, y)
        if x.dtype.is_pred:
            return self.or_(x, self.not_(y))
        return self._either("power", power, x, y)

    # Arithmetic's.
    def integer_power(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        raise NotImplementedError

    def or_(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        raise NotImplementedError

    def not_(self, x: LlvmValue) -> LlvmValue:
        raise NotImplementedError


_BOTH = ("float", "double")
_IN_PLACE = {
    "exponential": _BOTH,
    "logistic": ("float",),
    "tanh": ("float",),
    "log": ("float",),
    "sqrt": _BOTH,
    "rsqrt": _BOTH,
}
"""Functions short enough to repeat, for which element types."""
