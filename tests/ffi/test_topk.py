"""XLA's custom-call TopK."""

import numpy as np
import pytest

from haloc.errors import HloError
from haloc.ffi.registration import custom_call, unregister_custom_call_target


def topk(direction="GT", shape="f32[2,5]", result="(f32[2,3], s32[2,3])", called=True):
    calls = ", called_computations={order}" if called else ""
    return f"""
    order {{
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = pred[] compare(a, b), direction={direction}
    }}
    ENTRY e {{
      x = {shape} parameter(0)
      ROOT t = {result} custom-call(x), custom_call_target="TopK"{calls}
    }}"""


X = np.float32([[3, 1, 5, 5, 2], [-1, 0, np.inf, -3, np.nan]])


@pytest.mark.parametrize("called", [True, False])
def test_the_largest(compiled, called):
    text = topk(called=called)
    if not called:
        text = text[text.index("ENTRY") :]
    values, indices = compiled(text)(X)
    np.testing.assert_array_equal(values, [[5, 5, 3], [np.nan, np.inf, 0]])
    np.testing.assert_array_equal(indices, [[2, 3, 0], [4, 2, 1]])


def test_the_smallest(compiled):
    values, indices = compiled(topk("LT"))(X)
    np.testing.assert_array_equal(values, [[1, 2, 3], [-3, -1, 0]])
    np.testing.assert_array_equal(indices, [[1, 4, 0], [3, 0, 1]])


@pytest.mark.parametrize("result", ["(f32[2,6], s32[2,6])", "(f32[2,3], s64[2,3])", "f32[2,3]"])
def test_what_cannot_be(compiled, result):
    with pytest.raises(HloError, match=r"TopK"):
        compiled(topk(result=result))(X)


def test_a_registered_target_comes_first(compiled):
    custom_call("TopK")(lambda x: (x[:, :3], np.zeros((2, 3), np.int32)))
    try:
        values, _ = compiled(topk())(X)
    finally:
        unregister_custom_call_target("TopK")
    np.testing.assert_array_equal(values, X[:, :3])
