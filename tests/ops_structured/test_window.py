"""reduce-window and select-and-scatter against jaxlib."""

import numpy as np
import pytest

from tests.ops_structured.against_jaxlib import check, module, region


def pooling(dims: str, result: str, window: str, opcode: str = "add", init: str = "0") -> str:
    return module(
        f"""  p = f32[{dims}] parameter(0)
  z = f32[] constant({init})
  ROOT r = f32[{result}] reduce-window(p, z), window={{{window}}}, to_apply=combine""",
        region(opcode, "f32"),
    )


@pytest.mark.parametrize(
    ("dims", "result", "window"),
    [
        ("4,8", "2,8", "size=3x1 stride=2x1 pad=1_0x0_0"),
        ("5,6", "5,8", "size=3x3 pad=1_1x2_2"),
        ("5,6", "3,5", "size=3x2 stride=2x1 pad=1_1x-1_1"),
        ("5,6", "9,11", "size=1x1 lhs_dilate=2x2"),
        ("5,6", "8,2", "size=2x3 stride=1x2 lhs_dilate=2x1"),
        ("7", "3", "size=3 rhs_dilate=2"),
        ("2,3,4,5", "2,2,3,5", "size=1x2x2x1"),
        ("3", "0", "size=5"),
        ("0", "2", "size=1 pad=1_1"),
    ],
)
def test_windows(dims, result, window):
    check(pooling(dims, result, window), rtol=1e-6)


def test_padding_takes_no_part_even_when_the_initial_value_is_no_identity():
    check(pooling("5,6", "5,8", "size=3x3 pad=1_1x2_2", init="1"), rtol=1e-6)


def test_maximum_with_nan():
    x = np.array([1, np.nan, 3, 4, -np.inf, -0.0], np.float32)
    check(pooling("6", "5", "size=2", "maximum", "-inf"), [x])


def test_variadic():
    both = """
both {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  s = f32[] add(a, b)
  m = s32[] maximum(i, j)
  ROOT t = (f32[], s32[]) tuple(s, m)
}"""
    text = module(
        """  p = f32[6] parameter(0)
  q = s32[6] parameter(1)
  z = f32[] constant(0)
  y = s32[] constant(-100)
  ROOT r = (f32[3], s32[3]) reduce-window(p, q, z, y), window={size=2 stride=2}, to_apply=both""",
        both,
    )
    check(text, rtol=1e-6)


def selecting(dims: str, source: str, window: str, dtype: str = "f32") -> str:
    choose = f"""
choose {{
  x = {dtype}[] parameter(0)
  y = {dtype}[] parameter(1)
  ROOT r = pred[] compare(x, y), direction=GE
}}
"""
    return module(
        f"""  p = {dtype}[{dims}] parameter(0)
  s = {dtype}[{source}] parameter(1)
  z = {dtype}[] constant(0)
  ROOT r = {dtype}[{dims}] select-and-scatter(p, s, z), window={{{window}}}, select=choose, \
scatter=combine""",
        choose,
        region("add", dtype),
    )


@pytest.mark.parametrize(
    ("dims", "source", "window"),
    [
        ("4,6", "2,3", "size=2x2 stride=2x2"),
        ("5,7", "3,4", "size=3x3 stride=2x2 pad=1_1x1_1"),
        ("7", "5", "size=3"),
        ("2,6,6,3", "2,3,3,3", "size=1x2x2x1 stride=1x2x2x1"),
    ],
)
def test_select_and_scatter(dims, source, window):
    check(selecting(dims, source, window), rtol=1e-6)


def test_select_and_scatter_takes_the_first_of_equals():
    x = np.array([1, 1, 1, 0, 2, 2, 0], np.int32)
    source = np.array([1, 10, 100, 1000, 10000], np.int32)
    check(selecting("7", "5", "size=3", "s32"), [x, source])
