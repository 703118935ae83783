"""Ops of the chlo dialect: HLO's own op where there is one, else a formula."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from haloc.formats.stablehlo.convert import reading, special
from haloc.formats.stablehlo.convert.context import (
    CONVERSIONS,
    Scope,
    converts,
    result_shape,
    results_shape,
)
from haloc.formats.stablehlo.convert.expression import Expression
from haloc.formats.stablehlo.convert.shaping import broadcast_in_dim
from haloc.formats.stablehlo.mlir import DenseElements, Float, Integer, MlirOp, MlirValue
from haloc.ir.dtype import F32, F64, S8, S16, S32, S64, DType
from haloc.ir.module import HloInstruction

Formula = Callable[..., Expression]

FORMULAS: dict[str, Formula] = {
    "chlo.bessel_i1e": special.bessel_i1e,
    "chlo.digamma": special.digamma,
    "chlo.erf_inv": special.erf_inv,
    "chlo.erfc": special.erfc,
    "chlo.lgamma": special.lgamma,
    "chlo.polygamma": special.polygamma,
    "chlo.zeta": special.zeta,
}


def _formula(scope: Scope, op: MlirOp) -> HloInstruction:
    """Computed in f32, or in f64 for f64."""
    operands = scope.operands(op)
    dtype = operands[0].shape.dtype
    if not dtype.is_float:
        reading.unimplemented(op, f"of {dtype.name}: floating-point types only")
    wide = F64 if dtype is F64 else F32
    arguments = [Expression(scope, o).convert(wide) for o in operands]
    return FORMULAS[op.name](*arguments).convert(dtype).instruction


converts(*FORMULAS)(_formula)


@converts("chlo.is_inf")
def _is_inf(scope: Scope, op: MlirOp) -> HloInstruction:
    x = Expression(scope, scope.operands(op, 1)[0])
    return x.unary("abs").equals(np.inf).instruction


@converts("chlo.is_pos_inf")
def _is_pos_inf(scope: Scope, op: MlirOp) -> HloInstruction:
    return Expression(scope, scope.operands(op, 1)[0]).equals(np.inf).instruction


@converts("chlo.is_neg_inf")
def _is_neg_inf(scope: Scope, op: MlirOp) -> HloInstruction:
    return Expression(scope, scope.operands(op, 1)[0]).equals(-np.inf).instruction


@converts("chlo.conj")
def _conj(scope: Scope, op: MlirOp) -> HloInstruction:
    (operand,) = scope.operands(op, 1)
    if not operand.shape.dtype.is_complex:
        return operand
    z = Expression(scope, operand)
    real, imag = _parts(z)
    return scope.add("complex", operand.shape, (real.instruction, (-imag).instruction))


def _parts(z: Expression) -> tuple[Expression, Expression]:
    return z.unary("real", z.dtype.real), z.unary("imag", z.dtype.real)


@converts("chlo.square")
def _square(scope: Scope, op: MlirOp) -> HloInstruction:
    x = Expression(scope, scope.operands(op, 1)[0])
    return (x * x).instruction


@converts("chlo.atan")
def _atan(scope: Scope, op: MlirOp) -> HloInstruction:
    """atan2(x, 1); of complex numbers -i atanh(i z)."""
    (operand,) = scope.operands(op, 1)
    x = Expression(scope, operand)
    if not operand.shape.dtype.is_complex:
        return x.binary("atan2", 1.0).instruction
    real, imag = _parts(x)
    turned = scope.add("complex", operand.shape, ((-imag).instruction, real.instruction))
    real, imag = _parts(Expression(scope, turned).unary("atanh"))
    return scope.add("complex", operand.shape, (imag.instruction, (-real).instruction))


@converts("chlo.next_after")
def _next_after(scope: Scope, op: MlirOp) -> HloInstruction:
    """The neighbour of x in the direction of y, by its bit pattern."""
    x, y = (Expression(scope, o) for o in scope.operands(op, 2))
    bits = x.dtype.bits
    integers: dict[int, DType] = {8: S8, 16: S16, 32: S32, 64: S64}
    if bits not in integers or not x.dtype.is_float:
        reading.unimplemented(op, f"of {x.dtype.name}")
    return special.next_after(x, y, integers[bits]).instruction


@converts("chlo.constant_like")
def _constant_like(scope: Scope, op: MlirOp) -> HloInstruction:
    (operand,) = scope.operands(op, 1)
    value = reading.get(op, "value")
    if isinstance(value, DenseElements):
        if value.array.size == 0:
            reading.fail(op, "attribute value is empty")
        value = value.array.flat[0]
    elif isinstance(value, Integer | Float):
        value = value.value
    else:
        reading.fail(op, "attribute value must be a number")
    like = scope.constant(value, result_shape(op).dtype)
    shape = operand.shape.with_dtype(like.shape.dtype)
    if not shape.rank:
        return like
    return scope.add("broadcast", shape, (like,), dimensions=())


@converts("chlo.top_k")
def _top_k(scope: Scope, op: MlirOp) -> None:
    operands = scope.operands(op, 1)
    attrs = {"k": reading.integer(op, "k"), "largest": reading.flag(op, "largest", True)}
    scope.results(op, scope.add("topk", results_shape(op), operands, **attrs))


# --- Implicit broadcasting -----------------------------------------------------------------------

_BROADCAST = """
add and atan2 compare complex divide maximum minimum multiply next_after or polygamma power
remainder select shift_left shift_right_arithmetic shift_right_logical subtract xor zeta
"""


def _plain_name(word: str) -> str:
    """chlo.broadcast_add is stablehlo.add on stretched operands."""
    dialect = "chlo" if f"chlo.{word}" in CONVERSIONS else "stablehlo"
    return f"{dialect}.{word}"


def _broadcasting(scope: Scope, op: MlirOp) -> None:
    """Stretch the operands to the result's shape, the way NumPy does or as the op says."""
    shape = result_shape(op)
    operands = scope.operands(op)
    given = reading.ints(op, "broadcast_dimensions", None)
    lowest = min(o.shape.rank for o in operands)
    stretched = []
    for value, operand in zip(op.operands, operands):
        rank = operand.shape.rank
        dims = tuple(range(shape.rank - rank, shape.rank))
        if given is not None and rank == lowest and len(given) == rank:
            dims = given
        target = shape.with_dtype(operand.shape.dtype)
        copy = MlirValue(value.type, value.name)
        scope.values[copy] = operand
        if operand.shape.dims != shape.dims:
            scope.values[copy] = broadcast_in_dim(scope, op, operand, target, dims)
        stretched.append(copy)
    attributes = {k: v for k, v in op.attributes.items() if k != "broadcast_dimensions"}
    name = _plain_name(op.name.removeprefix("chlo.broadcast_"))
    plain = MlirOp(name, stretched, attributes, [], op.results, op.location, op.position)
    scope.convert(plain)


converts(*(f"chlo.broadcast_{word}" for word in _BROADCAST.split()))(_broadcasting)
