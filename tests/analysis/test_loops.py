"""Trip counts and invariant state of while loops."""

import numpy as np
import pytest

from haloc.analysis.loops import invariant_elements, trip_count
from haloc.formats.hlo_text import parse_module
from haloc.interpreter import run


def loop_module(start, limit, step, direction, *, dtype="s32", update="add"):
    return parse_module(f"""
HloModule m

body {{
  s = ({dtype}[], s32[], f32[2]) parameter(0)
  i = {dtype}[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  x = f32[2] get-tuple-element(s), index=2
  by = {dtype}[] constant({step})
  one = s32[] constant(1)
  j = {dtype}[] {update}(i, by)
  n2 = s32[] add(n, one)
  ROOT t = ({dtype}[], s32[], f32[2]) tuple(j, n2, x)
}}

condition {{
  s = ({dtype}[], s32[], f32[2]) parameter(0)
  i = {dtype}[] get-tuple-element(s), index=0
  end = {dtype}[] constant({limit})
  ROOT p = pred[] compare(i, end), direction={direction}
}}

ENTRY main {{
  x = f32[2] parameter(0)
  a = {dtype}[] constant({start})
  z = s32[] constant(0)
  init = ({dtype}[], s32[], f32[2]) tuple(a, z, x)
  w = ({dtype}[], s32[], f32[2]) while(init), condition=condition, body=body
  ROOT n = s32[] get-tuple-element(w), index=1
}}
""")


@pytest.mark.parametrize(
    "start, limit, step, direction",
    [
        (0, 10, 1, "LT"),
        (0, 10, 3, "LT"),
        (0, 10, 3, "LE"),
        (0, 9, 3, "LE"),
        (10, 0, -1, "GT"),
        (10, 0, -3, "GE"),
        (5, 5, 1, "LT"),
        (5, 5, 1, "LE"),
        (7, 5, 1, "LT"),
        (0, 12, 4, "NE"),
        (3, 3, 4, "NE"),
        (-4, 4, 2, "NE"),
    ],
)
def test_trip_count_is_what_the_interpreter_counts(start, limit, step, direction):
    module = loop_module(start, limit, step, direction)
    (loop,) = module.instructions("while")
    assert trip_count(loop) == int(run(module, [np.ones(2, np.float32)]))


@pytest.mark.parametrize(
    "numbers, direction, dtype, update",
    [
        ((0, 10, -1), "LT", "s32", "add"),  # runs until the counter wraps
        ((0, 10, 0), "LT", "s32", "add"),  # runs for ever
        ((0, 10, 3), "NE", "s32", "add"),  # misses the limit
        ((0, 250, 100), "LT", "u8", "add"),  # wraps
        ((1, 100, 2), "LT", "s32", "multiply"),  # no constant step
        ((0, 10, 1), "EQ", "s32", "add"),
    ],
)
def test_trip_count_is_unknown(numbers, direction, dtype, update):
    module = loop_module(*numbers, direction, dtype=dtype, update=update)
    (loop,) = module.instructions("while")
    assert trip_count(loop) is None


def test_trip_count_of_a_counter_that_goes_down_by_subtraction():
    (loop,) = loop_module(10, 0, 2, "GT", update="subtract").instructions("while")
    assert trip_count(loop) == 5


def test_invariant_elements():
    (loop,) = loop_module(0, 10, 1, "LT").instructions("while")
    assert invariant_elements(loop) == {2}
