"""lax's functions from element to element: operands of one type and shape, or scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from haloc.frontend import ops
from haloc.frontend.elementary import astype, broadcast, convert, emit, promote, wrap
from haloc.frontend.staging import staged
from haloc.frontend.tracer import TracedArray

_UNARY = {
    "abs": "Abs",
    "acos": "Acos",
    "acosh": "Acosh",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "bessel_i0e": "BesselI0e",
    "bessel_i1e": "BesselI1e",
    "bitwise_not": "Not",
    "cbrt": "Cbrt",
    "ceil": "Ceil",
    "clz": "Clz",
    "conj": "Conj",
    "cos": "Cos",
    "cosh": "Cosh",
    "digamma": "Digamma",
    "erf": "Erf",
    "erf_inv": "ErfInv",
    "erfc": "Erfc",
    "exp": "Exp",
    "expm1": "Expm1",
    "floor": "Floor",
    "imag": "Imag",
    "is_finite": "IsFinite",
    "lgamma": "Lgamma",
    "log": "Log",
    "log1p": "Log1p",
    "logistic": "Logistic",
    "neg": "Neg",
    "population_count": "PopulationCount",
    "real": "Real",
    "reciprocal": "Reciprocal",
    "round": "Round",
    "rsqrt": "Rsqrt",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "square": "Square",
    "tan": "Tan",
    "tanh": "Tanh",
}

_BINARY = {
    "add": "Add",
    "atan2": "Atan2",
    "bitwise_and": "And",
    "bitwise_or": "Or",
    "bitwise_xor": "Xor",
    "complex": "Complex",
    "div": "Div",
    "eq": "Eq",
    "ge": "Ge",
    "gt": "Gt",
    "igamma": "Igamma",
    "igamma_grad_a": "IgammaGradA",
    "igammac": "Igammac",
    "le": "Le",
    "lt": "Lt",
    "max": "Max",
    "min": "Min",
    "mul": "Mul",
    "ne": "Ne",
    "nextafter": "NextAfter",
    "pow": "Pow",
    "random_gamma_grad": "RandomGammaGrad",
    "rem": "Rem",
    "shift_left": "ShiftLeft",
    "shift_right_arithmetic": "ShiftRightArithmetic",
    "shift_right_logical": "ShiftRightLogical",
    "sub": "Sub",
    "zeta": "Zeta",
}


def _unary(op: Callable[..., Any]) -> Callable[..., Any]:
    def function(x: TracedArray) -> TracedArray:
        return wrap(x, op(x.op), x.weak_type)

    return function


def _binary(op: Callable[..., Any]) -> Callable[..., Any]:
    def function(x: TracedArray, y: TracedArray) -> TracedArray:
        if x.shape != y.shape and x.shape and y.shape:
            raise TypeError(
                f"{op.__name__.lower()} got incompatible shapes for broadcasting: "
                f"{x.shape}, {y.shape}."
            )
        if x.element_type is not y.element_type and not (x.weak_type or y.weak_type):
            raise TypeError(
                f"lax.{op.__name__.lower()} requires arguments to have the same dtypes, got "
                f"{x.dtype}, {y.dtype}."
            )
        (x, y), weak = promote(x, y)
        x, y = broadcast(x, y)
        made = op(x.op, y.op)
        return wrap(x, made, weak)

    return function


for _names, _make, _count in ((_UNARY, _unary, 1), (_BINARY, _binary, 2)):
    for _name, _op in _names.items():
        _function = _make(getattr(ops, _op))
        _function.__name__ = _function.__qualname__ = _name
        _function.__doc__ = f"HLO by `ops.{_op}`."
        globals()[_name] = staged(_count)(_function)


@staged(3)
def select(pred: TracedArray, on_true: TracedArray, on_false: TracedArray) -> TracedArray:
    """on_true where pred, else on_false."""
    return emit("select", [pred, on_true, on_false], weak=on_true.weak_type and on_false.weak_type)


@staged(3)
def clamp(min: TracedArray, x: TracedArray, max: TracedArray) -> TracedArray:
    """x within [min, max], which are scalars or of x's shape."""
    low, high = (convert(b, x.element_type) if b.weak_type else b for b in (min, max))
    return emit("clamp", [low, x, high])


@staged(1)
def convert_element_type(operand: TracedArray, new_dtype: Any) -> TracedArray:
    return astype(operand, new_dtype)
