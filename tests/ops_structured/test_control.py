"""while, conditional, call, fusion."""

import numpy as np
import pytest

from haloc import interpreter
from haloc.formats.hlo_text import parse_module
from haloc.ops.table import OPS
from tests.ops_structured.against_jaxlib import check, module

BRANCHES = """
b0 {
  ROOT x = f32[2] parameter(0)
}
b1 {
  x = f32[2] parameter(0)
  ROOT n = f32[2] negate(x)
}
b2 {
  x = f32[2] parameter(0)
  ROOT n = f32[2] add(x, x)
}
"""


@pytest.mark.parametrize("index", [-7, -1, 0, 1, 2, 3, 100])
def test_conditional_out_of_range_takes_the_last_branch(index):
    text = module(
        """  i = s32[] parameter(0)
  a = f32[2] parameter(1)
  b = f32[2] parameter(2)
  ROOT c = f32[2] conditional(i, a, b, a), branch_computations={b0, b1, b2}""",
        BRANCHES,
    )
    x, y = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    check(text, [np.array(index, np.int32), x, y])


@pytest.mark.parametrize("pred", [True, False])
def test_conditional_on_a_pred(pred):
    text = module(
        """  i = pred[] parameter(0)
  a = f32[2] parameter(1)
  b = f32[2] parameter(2)
  ROOT c = f32[2] conditional(i, a, b), true_computation=b0, false_computation=b1""",
        BRANCHES,
    )
    x, y = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    check(text, [np.array(pred), x, y])


LOOP = module(
    """  n = s32[] parameter(0)
  zero = s32[] constant(0)
  x = f32[] constant(1)
  init = (s32[], s32[], f32[]) tuple(zero, n, x)
  ROOT w = (s32[], s32[], f32[]) while(init), condition=cond, body=body""",
    """
cond {
  s = (s32[], s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT r = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  x = f32[] get-tuple-element(s), index=2
  one = s32[] constant(1)
  half = f32[] constant(0.5)
  j = s32[] add(i, one)
  y = f32[] multiply(x, half)
  z = f32[] add(y, half)
  ROOT t = (s32[], s32[], f32[]) tuple(j, n, z)
}
""",
)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_while(count):
    check(LOOP, [np.array(count, np.int32)])


def test_a_long_while_finishes():
    i, _, x = interpreter.run(parse_module(LOOP), [np.array(20_000, np.int32)])
    assert i == 20_000 and x == 1


def test_while_costs_one_trip():
    parsed = parse_module(LOOP)
    assert OPS["while"].cost(parsed.entry.root).flops == 4


def test_call_and_fusion():
    text = module(
        """  a = f32[2] parameter(0)
  c = f32[2] call(a), to_apply=b1
  ROOT f = f32[2] fusion(c), kind=kLoop, calls=b2""",
        BRANCHES,
    )
    given = interpreter.run(parse_module(text), [np.array([1, 2], np.float32)])
    assert given.tolist() == [-2, -4]
