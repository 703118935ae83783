"""NumPy's functions from element to element, with JAX's promotion of types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from haloc.frontend import ops
from haloc.frontend.dtypes import element_type
from haloc.frontend.elementary import broadcast, convert, emit, full_like, promote, wrap
from haloc.frontend.staging import staged
from haloc.frontend.tracer import TracedArray
from haloc.ir.dtype import PRED

_FLOAT = {
    "arccos": "Acos",
    "arccosh": "Acosh",
    "arcsin": "Asin",
    "arcsinh": "Asinh",
    "arctan": "Atan",
    "arctanh": "Atanh",
    "cbrt": "Cbrt",
    "cos": "Cos",
    "cosh": "Cosh",
    "exp": "Exp",
    "expm1": "Expm1",
    "log": "Log",
    "log1p": "Log1p",
    "reciprocal": "Reciprocal",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
}
"""Of integers in floats."""

_ANY = {
    "abs": "Abs",
    "conj": "Conj",
    "invert": "Not",
    "negative": "Neg",
    "sign": "Sign",
    "square": "Square",
}

_BINARY = {
    "add": "Add",
    "bitwise_and": "And",
    "bitwise_or": "Or",
    "bitwise_xor": "Xor",
    "equal": "Eq",
    "greater": "Gt",
    "greater_equal": "Ge",
    "left_shift": "ShiftLeft",
    "less": "Lt",
    "less_equal": "Le",
    "maximum": "Max",
    "minimum": "Min",
    "multiply": "Mul",
    "not_equal": "Ne",
    "subtract": "Sub",
}

_BINARY_FLOAT = {"arctan2": "Atan2", "true_divide": "Div", "nextafter": "NextAfter"}

_ALIASES = {
    "absolute": "abs",
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "bitwise_not": "invert",
    "bitwise_invert": "invert",
    "conjugate": "conj",
    "divide": "true_divide",
    "bitwise_left_shift": "left_shift",
}


def _unary(op: Callable[..., Any], inexact: bool) -> Callable[..., Any]:
    def function(x: TracedArray) -> TracedArray:
        (x,), weak = promote(x, inexact=inexact)
        return wrap(x, op(x.op), weak)

    return function


def _binary(op: Callable[..., Any], inexact: bool) -> Callable[..., Any]:
    def function(x1: TracedArray, x2: TracedArray) -> TracedArray:
        (x, y), weak = promote(x1, x2, inexact=inexact)
        x, y = broadcast(x, y)
        made = op(x.op, y.op)
        return wrap(x, made, weak)

    return function


for _names, _make, _count, _inexact in (
    (_FLOAT, _unary, 1, True),
    (_ANY, _unary, 1, False),
    (_BINARY, _binary, 2, False),
    (_BINARY_FLOAT, _binary, 2, True),
):
    for _name, _op in _names.items():
        _function = _make(getattr(ops, _op), _inexact)
        _function.__name__ = _function.__qualname__ = _name
        _function.__doc__ = f"As numpy.{_name}."
        globals()[_name] = staged(_count)(_function)

globals().update((alias, globals()[name]) for alias, name in _ALIASES.items())


@staged(1)
def floor(x: TracedArray) -> TracedArray:
    """Of integers themselves."""
    return x if _is_whole(x) else wrap(x, ops.Floor(x.op), x.weak_type)


@staged(1)
def ceil(x: TracedArray) -> TracedArray:
    """Of integers themselves."""
    return x if _is_whole(x) else wrap(x, ops.Ceil(x.op), x.weak_type)


def _is_whole(x: TracedArray) -> bool:
    return x.element_type.is_integer or x.element_type is PRED


@staged(1)
def isnan(x: TracedArray) -> TracedArray:
    return wrap(x, ops.Ne(x.op, x.op))


@staged(1)
def isfinite(x: TracedArray) -> TracedArray:
    (x,), _ = promote(x, inexact=True)
    return wrap(x, ops.IsFinite(x.op))


@staged(1)
def isinf(x: TracedArray) -> TracedArray:
    (x,), _ = promote(x, inexact=True)
    return wrap(x, ops.Eq(ops.Abs(x.op), full_like(x, np.inf).op))


def _truth(x: TracedArray) -> TracedArray:
    return x if x.element_type is PRED else wrap(x, ops.Ne(x.op, full_like(x, 0).op))


@staged(1)
def logical_not(x: TracedArray) -> TracedArray:
    return emit("not", [_truth(x)])


@staged(2)
def logical_and(x1: TracedArray, x2: TracedArray) -> TracedArray:
    return emit("and", broadcast(_truth(x1), _truth(x2)))


@staged(2)
def logical_or(x1: TracedArray, x2: TracedArray) -> TracedArray:
    return emit("or", broadcast(_truth(x1), _truth(x2)))


@staged(2)
def logical_xor(x1: TracedArray, x2: TracedArray) -> TracedArray:
    return emit("xor", broadcast(_truth(x1), _truth(x2)))


@staged(2)
def power(x1: TracedArray, x2: TracedArray) -> TracedArray:
    (x, y), weak = promote(x1, x2)
    x, y = broadcast(x, y)
    return emit("power", [x, y], weak=weak)


@staged(2)
def remainder(x1: TracedArray, x2: TracedArray) -> TracedArray:
    """Of the sign of x2, as Python's %."""
    (x, y), weak = promote(x1, x2)
    x, y = broadcast(x, y)
    zero = full_like(x, 0)
    if not x.element_type.is_float:  # by zero gives 0, as JAX has it
        y = wrap(y, ops.Select(ops.Eq(y.op, zero.op), full_like(y, 1).op, y.op))
    rest = emit("remainder", [x, y])
    apart = ops.Ne(ops.Lt(rest.op, zero.op), ops.Lt(y.op, zero.op))
    wrong = wrap(x, ops.And(apart, ops.Ne(rest.op, zero.op)))
    return emit("select", [wrong, emit("add", [rest, y]), rest], weak=weak)


mod = remainder


@staged(2)
def floor_divide(x1: TracedArray, x2: TracedArray) -> TracedArray:
    (x, y), weak = promote(x1, x2)
    x, y = broadcast(x, y)
    quotient = emit("divide", [x, y])
    if x.element_type.is_float:
        return emit("floor", [quotient], weak=weak)
    if x.element_type.is_unsigned:
        return quotient
    inexact = ops.Ne(emit("remainder", [x, y]).op, full_like(x, 0).op)
    apart = ops.Ne(ops.Sign(x.op), ops.Sign(y.op))
    less = emit("subtract", [quotient, full_like(x, 1)])
    wrong = wrap(x, ops.And(inexact, apart))
    return emit("select", [wrong, less, quotient], weak=weak)


@staged(3)
def where(condition: TracedArray, x: TracedArray, y: TracedArray) -> TracedArray:
    (x, y), weak = promote(x, y)
    c, x, y = broadcast(_truth(condition), x, y)
    return emit("select", [c, x, y], weak=weak)


@staged(1)
def real(x: TracedArray) -> TracedArray:
    return emit("real", [x]) if x.element_type.is_complex else x


@staged(1)
def imag(x: TracedArray) -> TracedArray:
    return emit("imag", [x]) if x.element_type.is_complex else full_like(x, 0)


@staged(2)
def right_shift(x1: TracedArray, x2: TracedArray) -> TracedArray:
    (x, y), weak = promote(x1, x2)
    x, y = broadcast(x, y)
    kind = "logical" if x.element_type.is_unsigned else "arithmetic"
    return emit(f"shift-right-{kind}", [x, y], weak=weak)


@staged(1)
def astype(x: TracedArray, dtype: Any) -> TracedArray:
    """The values in another type, a NumPy dtype or its name."""
    return convert(x, element_type(dtype))
