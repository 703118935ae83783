"""Fingerprints: what counts and what does not."""

import subprocess
import sys

import pytest

from haloc.analysis.effects import Effects
from haloc.analysis.equality import module_fingerprint
from haloc.formats.hlo_text import parse_module
from haloc.ops.table import Effect

TEXT = """
HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[4] parameter(0)
  z = f32[] constant(0)
  n = f32[4] negate(x)
  ROOT r = f32[] reduce(n, z), dimensions={0}, to_apply=add
}
"""


def fingerprint(text):
    return module_fingerprint(parse_module(text))


def test_names_and_metadata_do_not_count():
    renamed = TEXT.replace("n = ", "other = ").replace("reduce(n", "reduce(other")
    assert fingerprint(TEXT) == fingerprint(renamed)
    noted = TEXT.replace("negate(x)", 'negate(x), metadata={op_name="f"}')
    assert fingerprint(TEXT) == fingerprint(noted)


@pytest.mark.parametrize(
    "old, new",
    [
        ("negate(x)", "abs(x)"),
        ("negate(x)", "negate(x), sharding={replicated}"),
        ("constant(0)", "constant(1)"),
        ("constant(0)", "constant(-0.0)"),
        ("ROOT c = f32[] add(a, b)", "ROOT c = f32[] add(b, a)"),
        ("ROOT c = f32[] add(a, b)", "ROOT c = f32[] multiply(a, b)"),
        ("x = f32[4]", "x = f32[4]{0:S(5)}"),
        ("z = f32[]", "unused = f32[] constant(2)\n  z = f32[]"),
    ],
)
def test_what_counts(old, new):
    assert old in TEXT
    assert fingerprint(TEXT) != fingerprint(TEXT.replace(old, new, 1))


def test_fingerprint_is_the_same_in_every_process():
    code = (
        "from haloc.analysis.equality import module_fingerprint as f\n"
        "from haloc.formats.hlo_text import parse_module as p\n"
        f"print(f(p({TEXT!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == fingerprint(TEXT)


def test_effects_of_callees_count():
    module = parse_module("""
HloModule m

quiet {
  ROOT x = f32[4] parameter(0)
}

loud {
  x = f32[4] parameter(0)
  ROOT c = f32[4] custom-call(x), custom_call_target="f", custom_call_has_side_effect=true
}

ENTRY main {
  x = f32[4] parameter(0)
  p = f32[4] custom-call(x), custom_call_target="f"
  q = f32[4] call(x), to_apply=quiet
  l = f32[4] call(x), to_apply=loud
  z = f32[] constant(0)
  u = f32[4] rng(z, z), distribution=rng_uniform
  ROOT t = (f32[4], f32[4], f32[4], f32[4]) tuple(p, q, l, u)
}
""")
    effects = Effects()
    found = {i.name: effects.of(i) for i in module.entry.instructions}
    assert found["l"] is Effect.SIDE_EFFECT
    assert found["p"] is found["q"] is found["z"] is Effect.PURE
    assert found["u"] is Effect.STATEFUL
