"""sinh, cosh, tanh and their inverses."""

from __future__ import annotations

import math

from haloc.codegen.math.coefficients import SINH_F32, SINH_F64, TANH_F32
from haloc.codegen.math.exponential import exponential, exponential_minus_one
from haloc.codegen.math.format import format_of, is_float, polynomial
from haloc.codegen.math.logarithm import log_plus_one
from haloc.codegen.scalar_expr import Expr


def sinh(x: Expr) -> Expr:
    """|x| <= 1: x + x^3 p(x^2); else (e^|x| - e^-|x|) / 2."""
    a = x.abs()
    t = a * a
    near = (a * t).fma(polynomial(t, SINH_F32 if is_float(x) else SINH_F64), a)
    e = exponential(a, halvings=1)
    return a.lt(1.0).choose(near, e - 0.25 / e).copysign(x)


def cosh(x: Expr) -> Expr:
    e = exponential(x.abs(), halvings=1)
    return e + 0.25 / e


def tanh(x: Expr) -> Expr:
    """float: x + x^3 p(x^2) below 0.625, else 1 - 2 / (e^2|x| + 1); double: from expm1(2|x|)."""
    a = x.abs()
    if is_float(x):
        t = a * a
        near = (a * t).fma(polynomial(t, TANH_F32), a)
        far = 1.0 - 2.0 / (exponential(a + a) + 1.0)
        return a.lt(0.625).choose(near, far).copysign(x)
    bounded = a.at_most(22.0)  # tanh 22 is 1
    u = exponential_minus_one(bounded + bounded)
    return (u / (u + 2.0)).copysign(x)


def asinh(x: Expr) -> Expr:
    """log1p(a + a^2 / (1 + sqrt(1 + a^2))), a = |x|; log a + ln2 for large a."""
    f = format_of(x)
    a = x.abs()
    is_large = a.gt(2.0 ** (f.bias // 2 - 3))  # a^2 does not overflow below
    square = a * a
    y = a + square / ((square + 1.0).sqrt() + 1.0)
    r = log_plus_one(is_large.choose(a, y))
    return is_large.choose(r + f.ln2, r).copysign(x)


def acosh(x: Expr) -> Expr:
    """log1p(t + sqrt(2t + t^2)), t = x - 1; log x + ln2 for large x."""
    f = format_of(x)
    is_large = x.gt(2.0 ** (f.bias // 2 - 3))
    t = x - 1.0
    y = t + t.fma(t, t + t).sqrt()
    r = log_plus_one(is_large.choose(x, y))
    return x.lt(1.0).choose(math.nan, is_large.choose(r + f.ln2, r))


def atanh(x: Expr) -> Expr:
    """log1p(2a / (1 - a)) / 2, a = |x|."""
    a = x.abs()
    return (log_plus_one((a + a) / (1.0 - a)) * 0.5).copysign(x)
