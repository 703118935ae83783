"""sine, cosine and tangent of r + low, |r| <= pi/4, and the quadrant's signs and swaps."""

from __future__ import annotations

from haloc.codegen.math.coefficients import COS_F32, COS_F64, SIN_F32, SIN_F64
from haloc.codegen.math.format import is_float, polynomial
from haloc.codegen.math.reduction import reduce_argument
from haloc.codegen.scalar_expr import Expr


def _sin_and_cos(r: Expr, low: Expr) -> tuple[Expr, Expr]:
    """sin = r + r^3 p(r^2); cos = 1 - r^2/2 + r^4 p(r^2); low enters to first order."""
    t = r * r
    cube = r * t
    half = t * 0.5
    sines, cosines = (SIN_F32, COS_F32) if is_float(r) else (SIN_F64, COS_F64)
    sine = r + cube.fma(polynomial(t, sines), (-half).fma(low, low))
    w = 1.0 - half
    tail = (t * t).fma(polynomial(t, cosines), (-r).fma(low, (1.0 - w) - half))
    return sine, w + tail


def _quadrant(x: Expr, shift: int) -> Expr:
    """sin(x + shift pi/2)."""
    r, low, q = reduce_argument(x)
    sine, cosine = _sin_and_cos(r, low)
    q = q + shift if shift else q
    value = (q & 1).ne(0).choose(cosine, sine)
    sign = (q & 2).shl(q.bit_width - 2)
    return (value.bits() ^ sign).as_float()


def sine(x: Expr) -> Expr:
    return x.eq(0.0).choose(x, _quadrant(x, 0))


def cosine(x: Expr) -> Expr:
    return _quadrant(x, 1)


def tan(x: Expr) -> Expr:
    r, low, q = reduce_argument(x)
    sine, cosine = _sin_and_cos(r, low)
    is_odd = (q & 1).ne(0)
    value = is_odd.choose(-cosine, sine) / is_odd.choose(sine, cosine)
    return x.eq(0.0).choose(x, value)
