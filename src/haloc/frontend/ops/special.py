"""Functions HLO has no op for: formulas and iterations."""

from __future__ import annotations

from collections.abc import Callable

from haloc.errors import UnimplementedError
from haloc.formats.stablehlo.convert import special
from haloc.formats.stablehlo.convert.expression import Expression
from haloc.frontend.builder import XlaBuilder, XlaOp
from haloc.frontend.ops.arguments import add, value
from haloc.frontend.ops.elementwise import broadcast_together, full_like
from haloc.frontend.ops.loops import repeat
from haloc.ir.dtype import F32, F64, S8, S16, S32, S64, DType

_SIGNED = {8: S8, 16: S16, 32: S32, 64: S64}
_STEPS = 2000
_TINY = 1e-30


def _expression(x: XlaOp) -> Expression:
    return Expression(x.builder, value(x))


def _computed(name: str, formula: Callable[..., Expression], *operands: XlaOp) -> XlaOp:
    """A formula computed in f32, or in f64 for f64."""
    shape = value(operands[0]).shape
    for operand in operands:
        if not shape.dtype.is_float or value(operand).shape != shape:
            raise UnimplementedError(
                f"{name}: wanted floats of one shape and type, given "
                + ", ".join(o.shape.to_string(False) for o in operands)
            )
    wide = F64 if shape.dtype is F64 else F32
    arguments = [_expression(o).convert(wide) for o in operands]
    return XlaOp(operands[0].builder, formula(*arguments).convert(shape.dtype).instruction)


def Digamma(operand: XlaOp, /) -> XlaOp:
    """The derivative of the logarithm of the gamma function."""
    return _computed("Digamma", special.digamma, operand)


def Lgamma(operand: XlaOp, /) -> XlaOp:
    """log |gamma(x)|."""
    return _computed("Lgamma", special.lgamma, operand)


def Erfc(operand: XlaOp, /) -> XlaOp:
    """1 - erf(x), precise where it is small."""
    return _computed("Erfc", special.erfc, operand)


def ErfInv(operand: XlaOp, /) -> XlaOp:
    """The inverse of erf."""
    return _computed("ErfInv", special.erf_inv, operand)


def BesselI0e(operand: XlaOp, /) -> XlaOp:
    """exp(-|x|) I0(x)."""
    return _computed("BesselI0e", special.bessel_i0e, operand)


def BesselI1e(operand: XlaOp, /) -> XlaOp:
    """exp(-|x|) I1(x)."""
    return _computed("BesselI1e", special.bessel_i1e, operand)


def Zeta(x: XlaOp, q: XlaOp) -> XlaOp:
    """Hurwitz' zeta function: the sum over k of (q + k)^-x."""
    return _computed("Zeta", special.zeta, *broadcast_together("Zeta", x, q))


def NextAfter(from_: XlaOp, to: XlaOp) -> XlaOp:
    """The next number after one in the direction of another."""
    a, b = broadcast_together("NextAfter", from_, to)
    dtype = a.shape.dtype
    if not dtype.is_float or dtype.bits not in _SIGNED or b.shape.dtype is not dtype:
        raise UnimplementedError(f"NextAfter of {dtype.name} and {b.shape.dtype.name}")
    moved = special.next_after(_expression(a), _expression(b), _SIGNED[dtype.bits])
    return XlaOp(a.builder, moved.instruction)


def Atan(operand: XlaOp, /) -> XlaOp:
    """Of complex numbers -i atanh(i z)."""
    if not value(operand).shape.dtype.is_complex:
        return add("atan2", [operand, full_like(operand, 1)])
    turned = add("complex", [add("negate", [add("imag", [operand])]), add("real", [operand])])
    found = add("atanh", [turned])
    return add("complex", [add("imag", [found]), add("negate", [add("real", [found])])])


# --- Incomplete gamma functions ------------------------------------------------------------------


def _loop(
    dtype: DType,
    state: list[Expression],
    step: Callable[[Expression, list[Expression]], list[Expression]],
) -> list[Expression]:
    """Repeat until the first of the state, the size of the last change, is below precision.

    step(i, state): i = 1, 2, ... as numbers of the state's shape.
    """
    precision = 1e-16 if dtype is F64 else 6e-8
    outer = state[0].scope
    assert isinstance(outer, XlaBuilder)

    def inside(body: XlaBuilder, i: XlaOp, members: list[XlaOp]) -> list[XlaOp]:
        values = [_expression(m) for m in members]
        number = _expression(i).convert(dtype) + 1.0
        whole = (
            Expression(
                body, body.add("broadcast", state[0].shape, [number.instruction], dimensions=())
            )
            if state[0].shape.rank
            else number
        )
        return [XlaOp(body, e.instruction) for e in step(whole, values)]

    def goes_on(members: list[XlaOp]) -> XlaOp:
        change = _expression(members[0])
        return XlaOp(members[0].builder, (change > precision).instruction)

    found = repeat(_STEPS, [XlaOp(outer, e.instruction) for e in state], inside, goes_on)
    return [_expression(e) for e in found]


def _series(a: Expression, x: Expression) -> tuple[Expression, Expression]:
    """Sum of x^n / (a (a+1) ... (a+n)), and its derivative by a. For x up to a + 1."""

    def step(n: Expression, state: list[Expression]) -> list[Expression]:
        _, term, slope, total, total_slope, a, x = state
        ratio = x / (a + n)
        slope = (slope - term / (a + n)) * ratio
        term = term * ratio
        total, total_slope = total + term, total_slope + slope
        relative = (term / total).unary("abs")
        change = relative.binary("maximum", (slope / total_slope).unary("abs"))
        return [change, term, slope, total, total_slope, a, x]

    first = 1.0 / a
    slope = -(first * first)
    state = [a.like(1.0), first, slope, first, slope, a, x]
    _, _, _, total, total_slope, _, _ = _loop(a.dtype, state, step)
    return total, total_slope


def _fraction(a: Expression, x: Expression) -> tuple[Expression, Expression]:
    """The continued fraction of gamma(a, x) e^x x^-a, and its derivative by a. For x over a + 1.

    Lentz' method, with each variable's derivative by a beside it.
    """

    def step(n: Expression, state: list[Expression]) -> list[Expression]:
        _, b, c, dc, d, dd, h, dh, a, x = state
        top = n * (a - n)
        b = b + 2.0
        below = top * d + b
        slope = n * d + top * dd - 1.0
        d = 1.0 / below
        dd = -slope * d * d
        dc = n / c - top * dc / (c * c) - 1.0
        c = b + top / c
        factor = c * d
        dh = dh * factor + h * (dc * d + c * dd)
        h = h * factor
        return [(factor - 1.0).unary("abs"), b, c, dc, d, dd, h, dh, a, x]

    b = x + 1.0 - a
    d = 1.0 / b
    zero = a.like(0.0)
    state = [a.like(1.0), b, a.like(1.0 / _TINY), zero, d, d * d, d, d * d, a, x]
    found = _loop(a.dtype, state, step)
    return found[6], found[7]


def _branches(a: Expression, x: Expression) -> tuple[Expression, Expression, Expression]:
    """(where the series serves, x for the series, x for the fraction): others get a harmless x."""
    by_series = x <= a + 1.0
    return by_series, by_series.select(x, a), by_series.select(a + 2.0, x)


def _weight(a: Expression, x: Expression) -> Expression:
    """x^a e^-x / gamma(a)."""
    return (a * x.unary("log") - x - special.lgamma(a)).unary("exponential")


def _limits(
    a: Expression, x: Expression, result: Expression, at_zero: float, at_infinity: float
) -> Expression:
    """NaN outside a > 0, x >= 0; the values at both ends of x."""
    result = x.equals(special.INF).select(at_infinity, x.equals(0.0).select(at_zero, result))
    bad = (a <= 0.0) | (x < 0.0) | a.differs(a) | x.differs(x)
    return bad.select(special.NAN, result)


def _igamma(a: Expression, x: Expression, upper: bool) -> Expression:
    by_series, near, far = _branches(a, x)
    low = _series(a, near)[0] * _weight(a, x)
    high = _fraction(a, far)[0] * _weight(a, x)
    if upper:
        return _limits(a, x, by_series.select(1.0 - low, high), 1.0, 0.0)
    return _limits(a, x, by_series.select(low, 1.0 - high), 0.0, 1.0)


def _slope(a: Expression, x: Expression) -> Expression:
    """The derivative of the lower function by a, over `_weight`."""
    by_series, near, far = _branches(a, x)
    rate = x.unary("log") - special.digamma(a)
    total, total_slope = _series(a, near)
    h, dh = _fraction(a, far)
    return by_series.select(total_slope + total * rate, -(dh + h * rate))


def Igamma(a: XlaOp, x: XlaOp) -> XlaOp:
    """The regularised lower incomplete gamma function."""
    operands = broadcast_together("Igamma", a, x)
    return _computed("Igamma", lambda a, x: _igamma(a, x, upper=False), *operands)


def Igammac(a: XlaOp, x: XlaOp) -> XlaOp:
    """The regularised upper incomplete gamma function."""
    operands = broadcast_together("Igammac", a, x)
    return _computed("Igammac", lambda a, x: _igamma(a, x, upper=True), *operands)


def IgammaGradA(a: XlaOp, x: XlaOp) -> XlaOp:
    """The derivative of Igamma by a."""

    def formula(a: Expression, x: Expression) -> Expression:
        return _limits(a, x, _slope(a, x) * _weight(a, x), 0.0, 0.0)

    return _computed("IgammaGradA", formula, *broadcast_together("IgammaGradA", a, x))


def RandomGammaGrad(a: XlaOp, x: XlaOp) -> XlaOp:
    """How a sample x of gamma(a) changes with a."""

    def formula(a: Expression, x: Expression) -> Expression:
        return _limits(a, x, -(x * _slope(a, x)), 0.0, special.INF)

    return _computed("RandomGammaGrad", formula, *broadcast_together("RandomGammaGrad", a, x))


# --- The incomplete beta function ----------------------------------------------------------------


def _beta_fraction(a: Expression, b: Expression, x: Expression) -> Expression:
    """Lentz' method for the continued fraction of I_x(a, b), two terms a step."""

    def term(top: Expression, state: list[Expression]) -> list[Expression]:
        c, d, h = state
        below, c = 1.0 + top * d, 1.0 + top / c
        d = 1.0 / below.equals(0.0).select(_TINY, below)
        c = c.equals(0.0).select(_TINY, c)
        return [c, d, h * d * c]

    def step(m: Expression, state: list[Expression]) -> list[Expression]:
        _, c, d, h, a, b, x = state
        at = a + 2.0 * m
        before = h
        c, d, h = term(m * (b - m) * x / ((at - 1.0) * at), [c, d, h])
        c, d, h = term(-(a + m) * (a + b + m) * x / (at * (at + 1.0)), [c, d, h])
        return [(h / before - 1.0).unary("abs"), c, d, h, a, b, x]

    d = 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    return _loop(a.dtype, [a.like(1.0), a.like(1.0), d, d, a, b, x], step)[3]


def RegularizedIncompleteBeta(a: XlaOp, b: XlaOp, x: XlaOp) -> XlaOp:
    """I_x(a, b)."""
    a, x = broadcast_together("RegularizedIncompleteBeta", a, x)
    b, x = broadcast_together("RegularizedIncompleteBeta", b, x)
    a, x = broadcast_together("RegularizedIncompleteBeta", a, x)
    return _computed("RegularizedIncompleteBeta", _beta, a, b, x)


def _beta(a: Expression, b: Expression, x: Expression) -> Expression:
    turned = x >= (a + 1.0) / (a + b + 2.0)
    p, q, y = turned.select(b, a), turned.select(a, b), turned.select(1.0 - x, x)
    logs = special.lgamma(a + b) - special.lgamma(a) - special.lgamma(b)
    powers = a * x.unary("log") + b * (-x).unary("log-plus-one")
    part = (logs + powers).unary("exponential") * _beta_fraction(p, q, y) / p
    result = turned.select(1.0 - part, part)
    result = x.equals(0.0).select(0.0, x.equals(1.0).select(1.0, result))
    bad = (a <= 0.0) | (b <= 0.0) | (x < 0.0) | (x > 1.0) | x.differs(x)
    return bad.select(special.NAN, result)
