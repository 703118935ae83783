"""erf: x + x p(x^2) for |x| < 1; beyond, 1 - exp(q(|x|)) with q fitted to log erfc."""

from __future__ import annotations

from haloc.codegen.math.coefficients import ERF_F32, ERF_F64, ERFC_F32, ERFC_F64
from haloc.codegen.math.exponential import exponential
from haloc.codegen.math.format import is_float, polynomial
from haloc.codegen.scalar_expr import Expr


def erf(x: Expr) -> Expr:
    single = is_float(x)
    near_t = x * x
    near = x.fma(polynomial(near_t, ERF_F32 if single else ERF_F64), x)
    a = x.abs().at_most(4.0 if single else 6.0)  # erf is 1 from there on
    far = 1.0 - exponential(polynomial(a, ERFC_F32 if single else ERFC_F64))
    return x.abs().lt(1.0).choose(near, far.copysign(x))
