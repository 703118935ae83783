"""Ops from element to element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from haloc.errors import InvalidArgumentError
from haloc.frontend.builder import XlaOp
from haloc.frontend.messages import ResultAccuracy, ResultAccuracyMode
from haloc.frontend.ops.arguments import add, constant, element_type, value
from haloc.ir.shape import Shape

_UNARY = {
    "Abs": "abs",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atanh": "atanh",
    "Ceil": "ceil",
    "Clz": "count-leading-zeros",
    "Cosh": "cosh",
    "Floor": "floor",
    "Imag": "imag",
    "IsFinite": "is-finite",
    "Neg": "negate",
    "Not": "not",
    "OptimizationBarrier": "opt-barrier",
    "PopulationCount": "popcnt",
    "Real": "real",
    "Round": "round-nearest-afz",
    "Sign": "sign",
    "Sinh": "sinh",
}

_ACCURATE = {
    "Cbrt": "cbrt",
    "Cos": "cosine",
    "Erf": "erf",
    "Exp": "exponential",
    "Expm1": "exponential-minus-one",
    "Log": "log",
    "Log1p": "log-plus-one",
    "Logistic": "logistic",
    "Rsqrt": "rsqrt",
    "Sin": "sine",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}

_BINARY = {
    "Add": "add",
    "And": "and",
    "Atan2": "atan2",
    "Complex": "complex",
    "Div": "divide",
    "Max": "maximum",
    "Min": "minimum",
    "Mul": "multiply",
    "Or": "or",
    "Pow": "power",
    "Rem": "remainder",
    "ShiftLeft": "shift-left",
    "ShiftRightArithmetic": "shift-right-arithmetic",
    "ShiftRightLogical": "shift-right-logical",
    "Sub": "subtract",
    "Xor": "xor",
}

_COMPARE = {"Eq": "EQ", "Ge": "GE", "Gt": "GT", "Le": "LE", "Lt": "LT", "Ne": "NE"}


def _unary(opcode: str) -> Callable[[XlaOp], XlaOp]:
    def build(operand: XlaOp, /) -> XlaOp:
        return add(opcode, [operand])

    return build


def _accurate(opcode: str) -> Callable[..., XlaOp]:
    def build(operand: XlaOp, result_accuracy: ResultAccuracy | None = None) -> XlaOp:
        return add(opcode, [operand], **_accuracy(result_accuracy))

    return build


def _accuracy(wanted: ResultAccuracy | None) -> dict[str, str]:
    if wanted is None or wanted == ResultAccuracy():
        return {}
    if wanted.mode is not ResultAccuracyMode.DEFAULT:
        return {"result_accuracy": "{mode=" + wanted.mode.name.lower() + "}"}
    words = f"atol={wanted.atol:g},rtol={wanted.rtol:g},ulps={wanted.ulps}"
    return {"result_accuracy": "{tolerance={" + words + "}}"}


def _binary(opcode: str, **attrs: Any) -> Callable[..., XlaOp]:
    def build(lhs: XlaOp, rhs: XlaOp, broadcast_dimensions: Sequence[int] | None = None) -> XlaOp:
        a, b = broadcast_together(opcode, lhs, rhs, broadcast_dimensions)
        return add(opcode, [a, b], **attrs)

    return build


def _enter(names: dict[str, str], make: Callable[[str], Callable[..., XlaOp]]) -> None:
    for name, word in names.items():
        function = make(word)
        function.__name__ = function.__qualname__ = name
        function.__doc__ = f"HLO's {word}."
        globals()[name] = function


_enter(_UNARY, _unary)
_enter(_ACCURATE, _accurate)
_enter(_BINARY, _binary)
_enter(_COMPARE, lambda direction: _binary("compare", direction=direction))


def broadcast_together(
    opcode: str, lhs: XlaOp, rhs: XlaOp, dimensions: Sequence[int] | None = None
) -> tuple[XlaOp, XlaOp]:
    """Operands of one shape: scalars spread everywhere, dimensions of size 1 are stretched, and
    the operand of lower rank has its dimension i at dimensions[i] of the other."""
    a, b = value(lhs).shape, value(rhs).shape
    if a.dims == b.dims:
        return lhs, rhs
    if a.rank != b.rank:
        low, high = (lhs, b) if a.rank < b.rank else (rhs, a)
        if low.shape.rank and not dimensions:
            raise InvalidArgumentError(
                f"{opcode}: Shapes must be equal rank, but are {a.to_string(False)} and "
                f"{b.to_string(False)}; say broadcast_dimensions"
            )
        placed = dict(zip(dimensions or (), low.shape.dims))
        if len(placed) != low.shape.rank or not all(0 <= d < high.rank for d in placed):
            raise InvalidArgumentError(
                f"{opcode}: broadcast_dimensions {tuple(dimensions or ())} do not place "
                f"{low.shape.to_string(False)} in {high.to_string(False)}"
            )
        sizes = tuple(
            high.dims[d] if placed.get(d, 1) == 1 else placed[d] for d in range(high.rank)
        )
        spread = stretch(low, sizes, tuple(dimensions or ()))
        lhs, rhs = (spread, rhs) if low is lhs else (lhs, spread)
        a, b = lhs.shape, rhs.shape
    sizes = tuple(y if x == 1 else x for x, y in zip(a.dims, b.dims))
    if any(y not in (1, size) for y, size in zip(b.dims, sizes)):
        raise InvalidArgumentError(
            f"{opcode}: Binary op with incompatible shapes: {a.to_string(False)} and "
            f"{b.to_string(False)}"
        )
    same = tuple(range(len(sizes)))
    return stretch(lhs, sizes, same), stretch(rhs, sizes, same)


def stretch(x: XlaOp, sizes: Sequence[int], dimensions: Sequence[int]) -> XlaOp:
    """x's dimension i at dimensions[i] of the result; where it is 1 it may be stretched."""
    dims, sizes = x.shape.dims, tuple(sizes)
    if dims == sizes and tuple(dimensions) == tuple(range(len(sizes))):
        return x
    kept = [i for i, d in enumerate(dimensions) if dims[i] == sizes[d]]
    if len(kept) != len(dims):
        x = add("reshape", [x], x.shape.with_dims(tuple(dims[i] for i in kept)))
    placed = tuple(dimensions[i] for i in kept)
    return add("broadcast", [x], x.shape.with_dims(sizes), dimensions=placed)


def full_like(x: XlaOp, number: Any) -> XlaOp:
    return stretch(constant(x, number), x.shape.dims, ())


def Square(operand: XlaOp, /) -> XlaOp:
    """x * x."""
    return add("multiply", [operand, operand])


def Reciprocal(operand: XlaOp, /) -> XlaOp:
    """1 / x."""
    value(operand)
    return add("divide", [full_like(operand, 1), operand])


def Conj(operand: XlaOp, /) -> XlaOp:
    """The complex conjugate; a real operand itself."""
    if not value(operand).shape.dtype.is_complex:
        return operand
    return add("complex", [add("real", [operand]), add("negate", [add("imag", [operand])])])


def Clamp(min: XlaOp, operand: XlaOp, max: XlaOp) -> XlaOp:
    """`operand` within [min, max], which are scalars or of its shape."""
    return add("clamp", [min, operand, max])


def Select(pred: XlaOp, on_true: XlaOp, on_false: XlaOp) -> XlaOp:
    """Scalars are broadcast to the shape of the other values."""
    sizes = max((value(x).shape.dims for x in (on_true, on_false)), key=len)
    on_true, on_false = (
        x if x.shape.rank or not sizes else stretch(x, sizes, ()) for x in (on_true, on_false)
    )
    return add("select", [pred, on_true, on_false])


def ConvertElementType(operand: XlaOp, new_element_type: int) -> XlaOp:
    """The values in another type; of complex numbers the real parts for a real one."""
    source, target = value(operand).shape, element_type(new_element_type)
    if source.dtype.is_complex and not target.is_complex:
        operand = add("real", [operand])
    return add("convert", [operand], operand.shape.with_dtype(target))


def BitcastConvertType(operand: XlaOp, new_element_type: int) -> XlaOp:
    """The bits read as another type. A narrower one adds a last dimension, a wider one takes it."""
    source, target = value(operand).shape, element_type(new_element_type)
    dims, wide, narrow = source.dims, target.bits, source.dtype.bits
    if wide < narrow:
        dims = (*dims, narrow // wide)
    elif wide > narrow:
        dims = dims[:-1]
    return add("bitcast-convert", [operand], Shape(target, dims))


def ReducePrecision(operand: XlaOp, exponent_bits: int, mantissa_bits: int) -> XlaOp:
    """Rounded to a format of so many bits, in the operand's type."""
    attrs = {"exponent_bits": int(exponent_bits), "mantissa_bits": int(mantissa_bits)}
    return add("reduce-precision", [operand], **attrs)
