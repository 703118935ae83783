"""tree-reduction-rewriter: what it splits, what it leaves, and that values stay."""

import numpy as np
import pytest

from haloc import interpreter
from haloc.formats.hlo_text import parse_module
from haloc.passes.tree_reduction_rewriter import tree_reduction_rewriter
from haloc.verifier import verify


def module(dims, reduced, init="0", op="add"):
    wide = ",".join(map(str, dims))
    kept = ",".join(str(n) for d, n in enumerate(dims) if d not in reduced)
    return parse_module(f"""
    HloModule m
    r {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] {op}(a, b) }}
    ENTRY e {{
      x = f32[{wide}] parameter(0)
      z = f32[] constant({init})
      ROOT s = f32[{kept}] reduce(x, z), dimensions={{{",".join(map(str, reduced))}}}, to_apply=r
    }}""")


@pytest.mark.parametrize(
    ("dims", "reduced"),
    [
        ((96,), (0,)),
        ((6, 10), (0, 1)),
        ((40, 3), (0,)),
        ((3, 40), (1,)),
        ((2, 40, 3), (1,)),
        ((4, 2, 30), (0, 2)),
    ],
)
def test_values_stay(dims, reduced):
    m = module(dims, reduced)
    x = np.random.default_rng(0).integers(-5, 6, dims).astype(np.float32)
    before = interpreter.run(m, [x])
    assert tree_reduction_rewriter(m, min_elements=1, parts=8)
    verify(m)
    assert sum(1 for _ in m.instructions("reduce")) == 2
    np.testing.assert_array_equal(interpreter.run(m, [x]), before)


def test_pairs_are_split_together():
    m = parse_module("""
    HloModule m
    r {
      a = f32[] parameter(0)
      i = s32[] parameter(1)
      b = f32[] parameter(2)
      j = s32[] parameter(3)
      more = pred[] compare(b, a), direction=GT
      v = f32[] select(more, b, a)
      k = s32[] select(more, j, i)
      ROOT t = (f32[], s32[]) tuple(v, k)
    }
    ENTRY e {
      x = f32[64] parameter(0)
      i = s32[64] iota(), iota_dimension=0
      low = f32[] constant(-inf)
      zero = s32[] constant(0)
      ROOT s = (f32[], s32[]) reduce(x, i, low, zero), dimensions={0}, to_apply=r
    }""")
    x = np.random.default_rng(0).permutation(64).astype(np.float32)
    assert tree_reduction_rewriter(m, min_elements=1)
    verify(m)
    value, place = interpreter.run(m, [x])
    assert (value, place) == (63, x.argmax())


@pytest.mark.parametrize(
    ("dims", "reduced", "init"),
    [
        ((97,), (0,), "0"),  # prime: no divisor
        ((96,), (0,), "5"),  # 5 may be added in once only
        ((96, 100), (0,), "0"),  # enough results to share
        ((0,), (0,), "0"),
    ],
)
def test_what_is_left_alone(dims, reduced, init):
    assert not tree_reduction_rewriter(module(dims, reduced, init), min_elements=0)


def test_small_reductions_are_left_alone():
    assert not tree_reduction_rewriter(module((96,), (0,)))
