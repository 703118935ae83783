"""Facts about float and double, and the tools every function is built with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from haloc.codegen.scalar_expr import Expr


@dataclass(frozen=True, slots=True)
class Format:
    """magic: 1.5 * 2^mantissa_bits; x + magic rounds |x| < 2^(mantissa_bits - 1) to an integer,
    which its low bits then hold. ln2_exact has trailing zero bits: its product with an exponent
    is exact. ln2, ln2_low: ln 2 in two parts, for fma."""

    mantissa_bits: int
    bias: int
    magic: float
    smallest_normal: float
    ln2: float
    ln2_low: float
    ln2_exact: float
    ln2_rest: float

    @property
    def one_bits(self) -> int:
        return self.bias << self.mantissa_bits

    @property
    def mantissa_mask(self) -> int:
        return (1 << self.mantissa_bits) - 1


FLOAT = Format(
    mantissa_bits=23,
    bias=127,
    magic=1.5 * 2**23,
    smallest_normal=2.0**-126,
    ln2=0.6931471824645996,
    ln2_low=-1.9046542121259336e-09,
    ln2_exact=0.693115234375,
    ln2_rest=3.194618329871446e-05,
)
DOUBLE = Format(
    mantissa_bits=52,
    bias=1023,
    magic=1.5 * 2**52,
    smallest_normal=2.0**-1022,
    ln2=0.6931471805599453,
    ln2_low=2.3190468138462996e-17,
    ln2_exact=0.6931471805582987,
    ln2_rest=1.6465949582897082e-12,
)


def is_float(x: Expr) -> bool:
    """float, not double."""
    return x.element == "float"


def format_of(x: Expr) -> Format:
    return FLOAT if is_float(x) else DOUBLE


def polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """sum c[i] x^i by Horner's rule."""
    result = x.like(coefficients[-1])
    for c in coefficients[-2::-1]:
        result = result.fma(x, c)
    return result


def round_to_integer(x: Expr) -> tuple[Expr, Expr]:
    """The nearest integer as a float and as an integer register; |x| < 2^22 (float), 2^51."""
    return scaled_to_integer(x, 1.0)


def scaled_to_integer(x: Expr, factor: float) -> tuple[Expr, Expr]:
    """The integer nearest to x * factor, as float and as integer."""
    magic = x.like(format_of(x).magic)
    shifted = x.fma(factor, magic)
    return shifted - magic, shifted.bits() - magic.bits()


def times_power_of_two(x: Expr, n: Expr) -> Expr:
    """x * 2^n, rounded once: in two steps, for a subnormal or overflowing result."""
    f = format_of(x)
    first = n.ashr(1)
    for part in (first, n - first):
        x = x * (part + f.bias).shl(f.mantissa_bits).as_float()
    return x


def two_sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """a + b as rounded sum and exact error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def fast_two_sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """`two_sum` for |a| >= |b|."""
    total = a + b
    return total, b - (total - a)


def two_product(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """a * b as rounded product and exact error."""
    product = a * b
    return product, a.fma(b, -product)
