"""What fuzzing found: these programs came out wrong, two of them by faults of LLVM 22."""

from __future__ import annotations

import numpy as np
import pytest

from haloc.formats.hlo_text import parse_module
from tests.fuzz.generate import random_arguments
from tests.fuzz.judge import judge, run_native

ONE_LANE_LEFT = """
ENTRY e {{
  x = {dtype}[{size}] parameter(0)
  ROOT y = {dtype}[{size}] cosh(x)
}}
"""

OVERLAPPING_WINDOWS = """
HloModule m
select { a = f32[] parameter(0)  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GE }
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[2,3] parameter(0)
  source = f32[3,4] parameter(1)
  zero = f32[] constant(0)
  ROOT y = f32[2,3] select-and-scatter(x, source, zero), window={size=2x2 pad=1_1x1_1},
    select=select, scatter=add
}
"""

FEW_RESULTS = """
add { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = s32[] add(a, b) }
ENTRY e {
  x = s32[900000] parameter(0)
  zero = s32[] constant(0)
  ROOT r = s32[3] reduce-window(x, zero), window={size=300000 stride=300000}, to_apply=add
}
"""

COLUMN_UPDATE = """
ENTRY e {
  x = c64[4,5,2] parameter(0)
  column = c64[2,1,1] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT y = c64[4,5,2] dynamic-update-slice(x, column, i, j, j)
}
"""


def agrees(text: str) -> None:
    module = parse_module(text)
    for seed in range(3):
        judge(module, random_arguments(module, seed), seed)


@pytest.mark.parametrize("dtype", ["bf16", "f8e4m3fn", "f16"])
@pytest.mark.parametrize("size", [9, 17, 33])
def test_one_narrow_element_left_over(dtype, size):
    """A truncating masked store of one constant lane wrote behind the array."""
    agrees(ONE_LANE_LEFT.format(dtype=dtype, size=size))


def test_overlapping_windows():
    """NewGVN took a condition of the inner loop for one of the outer loop's last turn."""
    agrees(OVERLAPPING_WINDOWS)


def test_update_of_one_column():
    """haloc's own: lanes along a dimension whose neighbours in the result are not neighbours."""
    agrees(COLUMN_UPDATE)


def test_few_results_of_much_work():
    """Too few results for one vector each thread: the kernel's emitter divided by zero."""
    module = parse_module(FEW_RESULTS)
    x = np.arange(900_000, dtype=np.int32) % 7
    (got,) = run_native(module, [x])
    np.testing.assert_array_equal(got, x.reshape(3, -1).sum(1))
