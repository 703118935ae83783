"""Elementwise ops on one operand."""

from __future__ import annotations

import numpy as np

from haloc.ir import dtype as dt
from haloc.ir.dtype import DType
from haloc.ops import reference as ref
from haloc.ops import reference_complex as cref
from haloc.ops.families import elementwise
from haloc.ops.raw_attrs import Accuracy
from haloc.ops.reference import arithmetic, by_kind, transcendental
from haloc.ops.rules import COMPLEX, FLOAT, INTEGER, PRED, SIGNED
from haloc.ops.table import Attr, transcendental_per_element

ACCURACY = (Attr("result_accuracy", Accuracy(), ""),)
"""Wanted accuracy of a function: {mode=highest} or {tolerance={...}}. haloc's one version of each
function is meant to satisfy all; the attribute is carried."""


def real_part(dtype: DType) -> DType:
    return dtype.real


def to_pred(dtype: DType) -> DType:
    return dt.PRED


# Arithmetic.
elementwise(
    "abs",
    1,
    SIGNED | FLOAT | COMPLEX,
    by_kind(integer=arithmetic(np.abs), real=arithmetic(np.abs), complex=cref.absolute),
    emit=lambda b, i, x: b.abs(x),
    result=real_part,
)
elementwise(
    "negate",
    1,
    INTEGER | FLOAT | COMPLEX,
    arithmetic(np.negative),
    emit=lambda b, i, x: b.negate(x),
)
elementwise(
    "sign",
    1,
    SIGNED | FLOAT | COMPLEX,
    by_kind(integer=arithmetic(np.sign), real=ref.float_sign, complex=cref.sign),
    emit=lambda b, i, x: b.sign(x),
)

# Rounding.
elementwise("ceil", 1, FLOAT, arithmetic(np.ceil), emit=lambda b, i, x: b.ceil(x))
elementwise("floor", 1, FLOAT, arithmetic(np.floor), emit=lambda b, i, x: b.floor(x))
elementwise(
    "round-nearest-afz",
    1,
    FLOAT,
    ref.round_nearest_afz,
    emit=lambda b, i, x: b.round_nearest_afz(x),
)
elementwise(
    "round-nearest-even",
    1,
    FLOAT,
    arithmetic(np.rint),
    emit=lambda b, i, x: b.round_nearest_even(x),
)

# Bits and tests.
elementwise(
    "not",
    1,
    INTEGER | PRED,
    arithmetic(np.invert),
    emit=lambda b, i, x: b.not_(x),
)
elementwise("popcnt", 1, INTEGER, ref.popcnt, emit=lambda b, i, x: b.popcnt(x))
elementwise(
    "count-leading-zeros",
    1,
    INTEGER,
    ref.count_leading_zeros,
    emit=lambda b, i, x: b.count_leading_zeros(x),
)
elementwise(
    "is-finite",
    1,
    FLOAT,
    arithmetic(np.isfinite),
    emit=lambda b, i, x: b.is_finite(x),
    result=to_pred,
)

# Functions of real and complex numbers. XLA counts all of them as transcendental.
elementwise(
    "exponential",
    1,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(np.exp), complex=np.exp),
    emit=lambda b, i, x: b.exponential(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "exponential-minus-one",
    1,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(np.expm1), complex=cref.exponential_minus_one),
    emit=lambda b, i, x: b.exponential_minus_one(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "log",
    1,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(np.log), complex=np.log),
    emit=lambda b, i, x: b.log(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "log-plus-one",
    1,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(np.log1p), complex=cref.log_plus_one),
    emit=lambda b, i, x: b.log_plus_one(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "logistic",
    1,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(ref.logistic), complex=cref.logistic),
    emit=lambda b, i, x: b.logistic(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "sqrt",
    1,
    FLOAT | COMPLEX,
    by_kind(real=arithmetic(np.sqrt), complex=np.sqrt),
    emit=lambda b, i, x: b.sqrt(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "rsqrt",
    1,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(lambda x: 1 / np.sqrt(x)), complex=cref.rsqrt),
    emit=lambda b, i, x: b.rsqrt(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "cbrt",
    1,
    FLOAT,
    transcendental(np.cbrt),
    emit=lambda b, i, x: b.cbrt(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "sine",
    1,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(np.sin), complex=np.sin),
    emit=lambda b, i, x: b.sine(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "cosine",
    1,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(np.cos), complex=np.cos),
    emit=lambda b, i, x: b.cosine(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "tan",
    1,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(np.tan), complex=np.tan),
    emit=lambda b, i, x: b.tan(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "asin",
    1,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(np.arcsin), complex=np.arcsin),
    emit=lambda b, i, x: b.asin(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "acos",
    1,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(np.arccos), complex=np.arccos),
    emit=lambda b, i, x: b.acos(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "sinh",
    1,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(np.sinh), complex=np.sinh),
    emit=lambda b, i, x: b.sinh(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "cosh",
    1,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(np.cosh), complex=np.cosh),
    emit=lambda b, i, x: b.cosh(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "tanh",
    1,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(np.tanh), complex=np.tanh),
    emit=lambda b, i, x: b.tanh(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "asinh",
    1,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(np.arcsinh), complex=np.arcsinh),
    emit=lambda b, i, x: b.asinh(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "acosh",
    1,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(np.arccosh), complex=np.arccosh),
    emit=lambda b, i, x: b.acosh(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "atanh",
    1,
    FLOAT | COMPLEX,
    by_kind(real=transcendental(np.arctanh), complex=np.arctanh),
    emit=lambda b, i, x: b.atanh(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
elementwise(
    "erf",
    1,
    FLOAT,
    transcendental(ref.erf),
    emit=lambda b, i, x: b.erf(x),
    cost=transcendental_per_element,
    attrs=ACCURACY,
)
