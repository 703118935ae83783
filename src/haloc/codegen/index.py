"""Index expressions: sums of integer multiples of atoms, kept symbolic until an address is needed.

An atom is a loop variable, an index read from memory, the lane number of a vector, or a floor
division or remainder that could not be simplified. Ranges and divisibility of atoms are known, so
that (i * 8 + j) // 8 is i and the index arithmetic of fused reshapes mostly disappears; what is
left tells whether neighbouring lanes read neighbouring elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from haloc.codegen.builder import Builder, Reg, Region, const, vector


class Atom:
    """An integer in [low, high], a multiple of `multiple`.

    `reg` is its register: i64, or an i64 vector when the value differs between lanes (`lanes`).
    LANE, the lane number itself, has none. A quotient or remainder gets one when it is needed:
    until then `source` says of what: (numerator, divisor, partner quotient or None).
    """

    __slots__ = ("high", "lanes", "low", "multiple", "number", "reg", "source")
    _count = 0

    def __init__(
        self,
        low: int,
        high: int,
        reg: Reg | None,
        multiple: int = 1,
        lanes: bool = False,
        source: tuple[Affine, int, Atom | None] | None = None,
    ):
        Atom._count += 1
        self.number = Atom._count
        self.low = low
        self.high = high
        self.reg = reg
        self.multiple = multiple
        self.lanes = lanes
        self.source = source

    @property
    def region(self) -> Region | None:
        """The deepest region this atom depends on; None when it is known everywhere."""
        if self.source is not None:
            return self.source[0].region
        return self.reg.region if self.reg is not None else None


class Affine:
    """constant + sum of coefficient * atom. Immutable; `key` identifies it."""

    __slots__ = ("constant", "key", "space", "terms")

    def __init__(self, space: IndexSpace, constant: int, terms: dict[Atom, int]):
        self.space = space
        self.constant = constant
        self.terms = {a: c for a, c in terms.items() if c}
        self.key = (constant, *sorted((a.number, c) for a, c in self.terms.items()))

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.space, self.constant + other, self.terms)
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            terms[atom] = terms.get(atom, 0) + coefficient
        return Affine(self.space, self.constant + other.constant, terms)

    __radd__ = __add__

    def __mul__(self, factor: int) -> Affine:
        scaled = {a: c * factor for a, c in self.terms.items()}
        return Affine(self.space, self.constant * factor, scaled)

    __rmul__ = __mul__

    def __sub__(self, other: Affine | int) -> Affine:
        return self + other * -1

    def __rsub__(self, other: int) -> Affine:
        return self * -1 + other

    def __floordiv__(self, divisor: int) -> Affine:
        return self.space.divide(self, divisor)[0]

    def __mod__(self, divisor: int) -> Affine:
        return self.space.divide(self, divisor)[1]

    @property
    def range(self) -> tuple[int, int]:
        """Bounds of the value, both inclusive."""
        low = high = self.constant
        for atom, c in self.terms.items():
            low += c * (atom.low if c > 0 else atom.high)
            high += c * (atom.high if c > 0 else atom.low)
        return low, high

    @property
    def region(self) -> Region | None:
        """The deepest region among the atoms'."""
        regions = [r for a in self.terms if (r := a.region) is not None]
        return max(regions, key=lambda r: r.depth, default=None)

    @property
    def varies_by_lane(self) -> bool:
        return any(a.lanes for a in self.terms)

    @property
    def lane_stride(self) -> int | None:
        """Step from one lane to the next: 0 when equal in all lanes, None when irregular."""
        lane = self.space.lane
        if any(a.lanes and a is not lane for a in self.terms):
            return None
        return self.terms.get(lane, 0)

    def __repr__(self) -> str:
        parts = [f"{c}*a{a.number}" for a, c in self.terms.items()]
        return " + ".join([str(self.constant), *parts])


class IndexSpace:
    """Makes index expressions for one function, of vectors of `width` lanes at present."""

    def __init__(self, builder: Builder):
        self.builder = builder
        self.width = 1
        self.lane = Atom(0, 0, None, lanes=True)
        self.zero = Affine(self, 0, {})
        self._derived: dict[tuple[object, ...], tuple[Affine, Affine]] = {}

    def constant(self, number: int) -> Affine:
        return Affine(self, number, {})

    def atom(self, low: int, high: int, reg: Reg, multiple: int = 1, lanes: bool = False) -> Affine:
        """A new variable as an expression; a range of one value is a constant."""
        if low == high:
            return self.constant(low)
        return Affine(self, 0, {Atom(low, high, reg, multiple, lanes): 1})

    def set_width(self, width: int) -> None:
        """Later expressions are for vectors of `width` lanes, with a lane atom of their own."""
        self.width = width
        self.lane = Atom(0, width - 1, None, lanes=True)

    def lanes(self) -> Affine:
        return Affine(self, 0, {self.lane: 1} if self.width > 1 else {})

    def unravel(self, number: Affine, sizes: Sequence[int]) -> list[Affine]:
        """The index of element `number` of an array of dimensions `sizes`."""
        at: list[Affine] = []
        for size in reversed(sizes):
            at.insert(0, number % size)
            number = number // size
        return at

    # --- Division -------------------------------------------------------------------------------

    def divide(self, x: Affine, divisor: int) -> tuple[Affine, Affine]:
        """(x // divisor, x % divisor), rounding down; divisor > 0."""
        if divisor == 1:
            return x, self.zero
        quotient, rest = self._take_multiples(x, divisor)
        low, high = rest.range
        if low // divisor == high // divisor:
            whole = low // divisor
            return quotient + whole, rest - whole * divisor
        small, grain = self._fine_part(rest, divisor)
        coarse = rest - small
        if not small.terms and not small.constant:
            q, r = self._derive(rest, divisor)
            return quotient + q, r
        assert grain > 1
        q, r = self.divide(coarse, divisor)
        return quotient + q, r + small

    def _take_multiples(self, x: Affine, divisor: int) -> tuple[Affine, Affine]:
        """x = divisor * quotient + rest, as far as coefficients tell."""
        whole = {a: c // divisor for a, c in x.terms.items() if c % divisor == 0}
        rest = {a: c for a, c in x.terms.items() if c % divisor}
        q, r = divmod(x.constant, divisor)
        return Affine(self, q, whole), Affine(self, r, rest)

    def _fine_part(self, x: Affine, divisor: int) -> tuple[Affine, int]:
        """The part of x that stays below a grain which divides both `divisor` and the rest of x.

        Then that part cannot carry over: (coarse + fine) // d = coarse // d.
        """
        ordered = sorted(x.terms.items(), key=lambda t: abs(t[1]) * t[0].multiple)
        fine = self.constant(0)
        best, best_grain = self.constant(0), 0
        for count, (atom, c) in enumerate(ordered[:-1]):
            fine = fine + Affine(self, 0, {atom: c})
            grain = divisor
            for other, k in ordered[count + 1 :]:
                grain = gcd(grain, k * other.multiple)
            with_constant = fine + x.constant % grain
            if grain > 1 and with_constant.range[0] >= 0 and with_constant.range[1] < grain:
                best, best_grain = with_constant, grain
        return best, best_grain

    def _derive(self, x: Affine, divisor: int) -> tuple[Affine, Affine]:
        """Atoms for the quotient and remainder of x; code only once a register is asked for."""
        key = (x.key, divisor)
        found = self._derived.get(key)
        if found is None:
            low, high = x.range
            lanes = x.varies_by_lane
            quotient = Atom(low // divisor, high // divisor, None, 1, lanes, (x, divisor, None))
            rest = Atom(0, divisor - 1, None, 1, lanes, (x, divisor, quotient))
            found = Affine(self, 0, {quotient: 1}), Affine(self, 0, {rest: 1})
            self._derived[key] = found
        return found

    def recombine(self, x: Affine) -> Affine:
        """c * d * (e // d) + c * (e % d) = c * e, wherever x has that form."""
        for atom, c in x.terms.items():
            if atom.source is None or atom.source[2] is None:
                continue
            numerator, divisor, quotient = atom.source
            if x.terms.get(quotient, 0) == c * divisor:
                pair = Affine(self, 0, {atom: c, quotient: c * divisor})
                return self.recombine(x - pair + numerator * c)
        return x

    def _emit_derived(self, atom: Atom) -> Reg:
        """The register of a quotient or remainder. Rounds down: a negative numerator is shifted
        up by a multiple of the divisor first."""
        assert atom.source is not None
        x, divisor, partner = atom.source
        low, high = x.range
        t = vector("i64", self.width) if atom.lanes else "i64"
        bias = -(low // divisor) if low < 0 else 0
        numerator = self.register(x + bias * divisor, atom.lanes)
        op, kind = self.builder.op, "udiv" if partner is None else "urem"
        # 32-bit division is several times faster where it suffices.
        small = high + bias * divisor < 2**31
        narrow = t.replace("i64", "i32") if small else t
        by = self.builder.splat(
            const("i32" if small else "i64", divisor), self.width if atom.lanes else 1
        )
        if small:
            numerator = op(narrow, f"trunc {t} {{0}} to {narrow}", numerator)
        reg = op(narrow, f"{kind} {narrow} {{0}}, {{1}}", numerator, by)
        if small:
            reg = op(t, f"zext {narrow} {{0}} to {t}", reg)
        if bias and partner is None:
            back = self.builder.splat(const("i64", bias), self.width if atom.lanes else 1)
            reg = op(t, f"sub {t} {{0}}, {{1}}", reg, back)
        return reg

    def atom_register(self, atom: Atom) -> Reg:
        if atom.source is None:
            assert atom.reg is not None
            return atom.reg
        if atom.reg is None or not self.builder.is_visible(atom.reg.region):
            atom.reg = self._emit_derived(atom)
        return atom.reg

    # --- Registers ------------------------------------------------------------------------------

    def register(self, x: Affine, as_vector: bool | None = None) -> Reg:
        """x in an i64 register; a vector of `width` when it varies by lane or when asked."""
        if as_vector is None:
            as_vector = x.varies_by_lane
        scalar = self._scalar_register(x)
        if not as_vector or self.width == 1:
            return scalar
        t = vector("i64", self.width)
        total = self.builder.splat(scalar, self.width)
        for atom, c in self._ordered(x):
            if not atom.lanes:
                continue
            if atom is self.lane:
                steps = ", ".join(f"i64 {i * c}" for i in range(self.width))
                part = const(t, f"<{steps}>")
            else:
                factor = self.builder.splat(const("i64", c), self.width)
                reg = self.atom_register(atom)
                part = self.builder.op(t, f"mul {t} {{0}}, {{1}}", reg, factor)
            total = self.builder.op(t, f"add {t} {{0}}, {{1}}", total, part)
        return total

    def _scalar_register(self, x: Affine) -> Reg:
        """The part of x that is the same in all lanes."""
        total: Reg | None = None
        for atom, c in self._ordered(x):
            if atom.lanes:
                continue
            part = self.atom_register(atom)
            if c != 1:
                part = self.builder.op("i64", f"mul nsw i64 {{0}}, {c}", part)
            total = (
                part
                if total is None
                else self.builder.op("i64", "add nsw i64 {0}, {1}", total, part)
            )
        if total is None:
            return const("i64", x.constant)
        if x.constant:
            total = self.builder.op("i64", f"add nsw i64 {{0}}, {x.constant}", total)
        return total

    @staticmethod
    def _ordered(x: Affine) -> list[tuple[Atom, int]]:
        """Outer variables first, so that partial sums are computed outside inner loops."""

        def depth(term: tuple[Atom, int]) -> tuple[int, int]:
            region = term[0].region
            return (region.depth if region is not None else 0, term[0].number)

        return sorted(x.terms.items(), key=depth)
