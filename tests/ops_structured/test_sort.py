"""sort and topk."""

import numpy as np
import pytest

from haloc import interpreter
from haloc.formats.hlo_text import parse_module
from haloc.ops.sort import merge_exchange
from haloc.verifier import verify
from tests.ops_structured.against_jaxlib import check, module


def order(dtype: str, direction: str = "LT", kind: str = "") -> str:
    kind = f", type={kind}" if kind else ""
    return f"""
order {{
  x = {dtype}[] parameter(0)
  y = {dtype}[] parameter(1)
  ROOT r = pred[] compare(x, y), direction={direction}{kind}
}}
"""


def sort(dtype: str, dims: str, dimension: int, comparator: str) -> str:
    return module(
        f"""  p = {dtype}[{dims}] parameter(0)
  ROOT s = {dtype}[{dims}] sort(p), dimensions={{{dimension}}}, to_apply=order""",
        comparator,
    )


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16", "s8", "s32", "u64", "pred"])
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_types(dtype, direction):
    check(sort(dtype, "3,17", 1, order(dtype, direction)))


@pytest.mark.parametrize(("dims", "dimension"), [("5,4,3", 0), ("5,4,3", 1), ("0,3", 0), ("1", 0)])
def test_dimensions(dims, dimension):
    check(sort("f32", dims, dimension, order("f32")))


def test_total_order_places_nan_and_zeros():
    x = np.array([np.nan, 1, -0.0, 0.0, -np.inf, np.inf, -np.nan, -1], np.float32)
    (given,) = check(sort("f32", "8", 0, order("f32", "LT", "TOTALORDER")), [x])
    assert np.signbit(given[:1]).all() and np.isnan(given[[0, 7]]).all()
    assert np.signbit(given[3]) and not np.signbit(given[4])


def test_variadic_is_stable():
    text = module(
        """  k = s32[40] parameter(0)
  v = s32[40] iota(), iota_dimension=0
  ROOT s = (s32[40], s32[40]) sort(k, v), dimensions={0}, is_stable=true, to_apply=order""",
        """
order {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT r = pred[] compare(x, y), direction=LT
}
""",
    )
    check(text, [np.random.default_rng(0).integers(0, 4, 40).astype(np.int32)])


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 13, 64, 100])
def test_the_network_sorts(count):
    x = np.random.default_rng(count).permutation(count)
    for lower, upper in merge_exchange(count):
        assert len({*lower, *upper}) == len(lower) + len(upper)
        x[lower], x[upper] = np.minimum(x[lower], x[upper]), np.maximum(x[lower], x[upper])
    assert x.tolist() == list(range(count))


@pytest.mark.parametrize("largest", ["true", "false"])
def test_topk(largest):
    text = module(
        f"""  p = f32[2,6] parameter(0)
  ROOT t = (f32[2,3], s32[2,3]) topk(p), k=3, largest={largest}"""
    )
    parsed = parse_module(text)
    verify(parsed)
    x = np.array([[1, 5, 5, np.nan, -2, 0], [-0.0, 0.0, -np.inf, np.inf, 7, 7]], np.float32)
    values, index = interpreter.run(parsed, [x])
    expected = {"true": [[3, 1, 2], [3, 4, 5]], "false": [[4, 5, 0], [2, 0, 1]]}[largest]
    assert index.tolist() == expected and index.dtype == np.int32
    np.testing.assert_array_equal(values, np.take_along_axis(x, index, 1))
