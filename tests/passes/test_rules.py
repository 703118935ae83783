"""Each rule fires on its own example, and what it makes computes the same."""

import numpy as np
import pytest

from haloc.formats.hlo_text import parse_module
from haloc.interpreter import run
from haloc.ir.module import HloModule
from haloc.passes.algebraic_simplifier import ALGEBRA
from haloc.passes.fuel import Fuel
from haloc.passes.rules.folding import DOTS
from haloc.passes.rules.reshape_mover import RESHAPE_MOVES
from haloc.passes.rules.structure import CONTROL
from haloc.passes.simplify import Rule, RuleSet, simplify
from haloc.verifier import verify

RULES = {r.name: r for r in (ALGEBRA + DOTS + RESHAPE_MOVES + CONTROL).rules}

REGIONS = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }
double { a = f32[] parameter(0)  ROOT c = f32[] add(a, a) }
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }
same { ROOT a = f32[] parameter(0) }
never { a = f32[] parameter(0)  ROOT f = pred[] constant(false) }
"""


def example_module(rule: Rule) -> HloModule:
    return parse_module(f"HloModule m\n{REGIONS}\nENTRY main {{{rule.example}\n}}")


def random_arguments(module: HloModule, seed: int = 0) -> list:
    rng = np.random.default_rng(seed)

    def value(shape):
        if shape.is_tuple:
            return tuple(value(s) for s in shape.elements)
        if shape.dtype.is_pred:
            return rng.random(shape.dims) < 0.5
        numbers = rng.integers(0, 5, shape.dims) - (0 if shape.dtype.is_unsigned else 2)
        if shape.dtype.is_float:
            # Infinities, NaN and both zeros: what a careless rule gets wrong.
            special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5], shape.dims)
            numbers = np.where(rng.random(shape.dims) < 0.4, special, numbers)
        if shape.dtype.is_complex:
            numbers = numbers + 1j * rng.integers(-2, 3, shape.dims)
        return np.asarray(numbers).astype(shape.dtype.numpy)

    return [value(p.shape) for p in module.entry.parameters]


def assert_same_bits(x, y):
    if isinstance(x, tuple):
        assert len(x) == len(y)
        for a, b in zip(x, y):
            assert_same_bits(a, b)
        return
    assert x.dtype == y.dtype and x.shape == y.shape
    np.testing.assert_array_equal(x, y)  # NaN equals NaN
    if x.dtype.kind == "f":
        keep = ~np.isnan(x)
        np.testing.assert_array_equal(np.signbit(x)[keep], np.signbit(y)[keep])


@pytest.mark.parametrize("name", RULES)
def test_rule_fires_on_its_example_and_keeps_the_value(name):
    rule = RULES[name]
    alone = RuleSet()
    alone.add(rule)
    before, after = example_module(rule), example_module(rule)
    verify(after)
    fuel = Fuel()
    assert simplify(after, alone, fuel), f"{name} does not fire on its example"
    assert fuel.hits[name] >= 1
    after.sort()
    verify(after)
    for seed in range(10):
        arguments = random_arguments(before, seed)
        assert_same_bits(run(before, arguments), run(after, arguments))


@pytest.mark.parametrize("name", RULES)
def test_rule_does_not_fire_without_fuel_or_when_disabled(name):
    for fuel in (Fuel(limit=0), Fuel(disabled=name)):
        alone = RuleSet()
        alone.add(RULES[name])
        assert not simplify(example_module(RULES[name]), alone, fuel)
        assert fuel.hits == {}


# What must not be simplified: the value would change.
REFUSED = {
    "x + 0 for x = -0": """
  x = f32[4] parameter(0)
  c = f32[] constant(0)
  z = f32[4] broadcast(c), dimensions={}
  ROOT r = f32[4] add(x, z)""",
    "x * 0 for floats": """
  x = f32[4] parameter(0)
  c = f32[] constant(0)
  z = f32[4] broadcast(c), dimensions={}
  ROOT r = f32[4] multiply(x, z)""",
    "x - x for floats": """
  x = f32[4] parameter(0)
  ROOT r = f32[4] subtract(x, x)""",
    "x == x for floats": """
  x = f32[4] parameter(0)
  ROOT r = pred[4] compare(x, x), direction=EQ""",
    "x / 3": """
  x = f32[4] parameter(0)
  c = f32[] constant(3)
  z = f32[4] broadcast(c), dimensions={}
  ROOT r = f32[4] divide(x, z)""",
    "not(x < y) for floats": """
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  c = pred[4] compare(x, y), direction=LT
  ROOT r = pred[4] not(c)""",
    "f32 -> bf16 -> f32": """
  x = f32[4] parameter(0)
  c = bf16[4] convert(x)
  ROOT r = f32[4] convert(c)""",
    "sums with initial values": """
  x = f32[2,3] parameter(0)
  o = f32[] constant(1)
  z = f32[] constant(0)
  y = f32[2] reduce(x, o), dimensions={1}, to_apply=add
  ROOT r = f32[] reduce(y, z), dimensions={0}, to_apply=add""",
    "u8 -> f32 -> s8 saturates": """
  x = u8[4] parameter(0)
  c = f32[4] convert(x)
  ROOT r = s8[4] convert(c)""",
}


@pytest.mark.parametrize("case", REFUSED)
def test_no_rule_fires_where_the_value_would_change(case):
    module = parse_module(f"HloModule m\n{REGIONS}\nENTRY main {{{REFUSED[case]}\n}}")
    fuel = Fuel()
    assert not simplify(module, ALGEBRA + DOTS + RESHAPE_MOVES, fuel), fuel.hits


def test_dynamic_sizes_are_left_alone():
    text = """
HloModule m
ENTRY main {
  c = f32[] parameter(0)
  n = s32[] parameter(1)
  b = f32[4] broadcast(c), dimensions={}
  x = f32[<=4] set-dimension-size(b, n), dimensions={0}
  s = f32[<=4] negate(x)
  ROOT r = f32[<=4] negate(s)
}"""
    assert not simplify(parse_module(text), ALGEBRA + DOTS + RESHAPE_MOVES, Fuel())
