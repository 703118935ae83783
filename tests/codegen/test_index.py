"""Index algebra: simplified expressions equal what Python's integers give, at every point."""

from itertools import product

import numpy as np
import pytest

from haloc.codegen.builder import Builder, Reg
from haloc.codegen.index import Affine, Atom, IndexSpace


class Space:
    """Variables with ranges, and evaluation of expressions in them."""

    def __init__(self, *sizes: int, multiples: tuple[int, ...] = ()):
        self.builder = Builder()
        self.space = IndexSpace(self.builder)
        multiples = multiples or (1,) * len(sizes)
        self.variables: list[Affine] = []
        self.ranges: list[range] = []
        for k, (size, multiple) in enumerate(zip(sizes, multiples)):
            reg = Reg(f"%x{k}", "i64", self.builder.root)
            self.variables.append(self.space.atom(0, size - multiple, reg, multiple))
            self.ranges.append(range(0, size, multiple))

    def value(self, x: Affine, at: tuple[int, ...]) -> int:
        known = {a: v for e, v in zip(self.variables, at) for a in e.terms}
        return _value(x, known)

    def points(self):
        return product(*self.ranges)


def _value(x: Affine, known: dict[Atom, int]) -> int:
    total = x.constant
    for atom, c in x.terms.items():
        if atom.source is None:
            total += c * known[atom]
            continue
        numerator, divisor, partner = atom.source
        n = _value(numerator, known)
        total += c * (n // divisor if partner is None else n % divisor)
    return total


def test_a_reshape_and_its_inverse_cancel():
    s = Space(6, 8)
    i, j = s.variables
    linear = i * 8 + j
    assert (linear // 8).key == i.key
    assert (linear % 8).key == j.key


def test_vector_blocks_do_not_carry():
    s = Space(512, 16, multiples=(16, 1))
    block, lane = s.variables
    x = block + lane
    assert (x % 64 - lane).key == (block % 64).key
    assert (x // 64).key == (block // 64).key


def test_quotient_and_remainder_recombine():
    s = Space(100)
    (x,) = s.variables
    q, r = x // 7, x % 7
    assert s.space.recombine(q * 21 + r * 3).key == (x * 3).key
    assert s.space.recombine(q * 20 + r * 3).key != (x * 3).key


def test_ranges():
    s = Space(5, 4)
    i, j = s.variables
    assert (i * -3 + j + 2).range == (-10, 5)
    assert ((i * 4 + j) // 5).range == (0, 3)


@pytest.mark.parametrize("seed", range(60))
def test_random_expressions_keep_their_value(seed):
    rng = np.random.default_rng(seed)
    sizes = [int(n) for n in rng.integers(1, 7, 3)]
    s = Space(*sizes)
    xs = list(s.variables)
    checks = [lambda p, k=k: p[k] for k in range(3)]
    for _ in range(8):
        a, b = (int(k) for k in rng.integers(0, len(xs), 2))
        c, d = int(rng.integers(-4, 9)), int(rng.integers(1, 10))
        fa, fb = checks[a], checks[b]
        kind = rng.integers(4)
        if kind == 0:
            xs.append(xs[a] * c + xs[b])
            checks.append(lambda p, fa=fa, fb=fb, c=c: fa(p) * c + fb(p))
        elif kind == 1:
            xs.append(xs[a] // d)
            checks.append(lambda p, fa=fa, d=d: fa(p) // d)
        elif kind == 2:
            xs.append(xs[a] % d)
            checks.append(lambda p, fa=fa, d=d: fa(p) % d)
        else:
            xs.append(s.space.recombine(xs[a] - xs[b] + c))
            checks.append(lambda p, fa=fa, fb=fb, c=c: fa(p) - fb(p) + c)
    for point in s.points():
        for x, check in zip(xs, checks):
            value = s.value(x, point)
            assert value == check(point)
            assert x.range[0] <= value <= x.range[1]
