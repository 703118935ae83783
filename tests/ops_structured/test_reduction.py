"""reduce and map against jaxlib."""

import ml_dtypes
import numpy as np
import pytest

from haloc.errors import UnimplementedError
from haloc.formats.hlo_text import parse_module
from haloc.ops.table import OPS
from tests.ops_structured.against_jaxlib import check, module, region

NUMBERS = [
    "f16",
    "bf16",
    "f32",
    "f64",
    "s8",
    "s16",
    "s32",
    "s64",
    "u8",
    "u16",
    "u32",
    "u64",
    "c64",
    "c128",
]
# A tree of narrow sums against XLA's sum in f32: a few units in the last place of the result.
RTOL = {"f16": 4e-3, "bf16": 3e-2, "f32": 1e-6, "f64": 1e-14, "c64": 1e-6, "c128": 1e-14}


def reduction(opcode: str, dtype: str, init: str, dims: str = "5,7", over: str = "1") -> str:
    kept = ",".join(d for n, d in enumerate(dims.split(",")) if str(n) not in over.split(","))
    return module(
        f"""  p = {dtype}[{dims}] parameter(0)
  z = {dtype}[] constant({init})
  ROOT s = {dtype}[{kept}] reduce(p, z), dimensions={{{over}}}, to_apply=combine""",
        region(opcode, dtype),
    )


@pytest.mark.parametrize("dtype", NUMBERS)
def test_sum(dtype):
    init = "(0, 0)" if dtype.startswith("c") else "0"
    check(reduction("add", dtype, init), rtol=RTOL.get(dtype, 0.0))


@pytest.mark.parametrize("over", ["0", "1", "2", "0,1", "0,2", "1,2", "0,1,2"])
def test_dimensions(over):
    check(reduction("add", "s32", "3", "3,4,5", over))


@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
def test_extremes_with_nan_and_infinities(opcode):
    rows = [[1, np.nan, 2], [np.inf, 1, 2], [-np.inf, -1, 0.5], [-0.0, 0.0, -0.0]]
    check(
        reduction(opcode, "f32", "-inf" if opcode == "maximum" else "inf", "4,3"),
        [np.array(rows, np.float32)],
    )


@pytest.mark.parametrize(("opcode", "init"), [("and", "true"), ("or", "false")])
def test_pred(opcode, init):
    check(reduction(opcode, "pred", init))


def test_product_wraps():
    check(reduction("multiply", "s8", "1"), [np.full((5, 7), 11, np.int8)])


def test_nothing_to_reduce_gives_the_initial_value():
    (given,) = check(reduction("add", "f32", "2.5", "3,0"))
    np.testing.assert_array_equal(given, np.full(3, 2.5, np.float32))


def test_no_dimensions():
    check(reduction("add", "s32", "0", "4,2", ""))


ARGMAX = """
argmax {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  gt = pred[] compare(a, b), direction=GT
  odd = pred[] compare(a, a), direction=NE
  first = pred[] or(gt, odd)
  eq = pred[] compare(a, b), direction=EQ
  lt = pred[] compare(i, j), direction=LT
  tie = pred[] and(eq, lt)
  keep = pred[] or(first, tie)
  v = f32[] select(first, a, b)
  k = s32[] select(keep, i, j)
  ROOT t = (f32[], s32[]) tuple(v, k)
}
"""


def test_argmax_with_ties_and_nan():
    text = module(
        """  p = f32[3,6] parameter(0)
  n = s32[3,6] iota(), iota_dimension=1
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[3], s32[3]) reduce(p, n, low, zero), dimensions={1}, to_apply=argmax""",
        ARGMAX,
    )
    x = np.array([[1, 5, 2, 5, 0, 3], [1, 2, np.nan, 9, 0, 1], [-1, -2, -3, -4, -5, -1]])
    _, index = check(text, [x.astype(np.float32)])
    assert index.tolist() == [1, 2, 0]


def test_bf16_is_added_in_bf16():
    x = np.ones((1, 512), np.float32).astype(ml_dtypes.bfloat16)
    (given,) = check(reduction("add", "bf16", "0", "1,512"), [x], rtol=1e-2)
    assert given.astype(np.float32).tolist() == [512.0]


MAP = module(
    """  p = f32[3,2] parameter(0)
  q = f32[3,2] parameter(1)
  ROOT r = pred[3,2] map(p, q), dimensions={0,1}, to_apply=f""",
    """
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] constant(0.25)
  s = f32[] multiply(b, c)
  ROOT r = pred[] compare(a, s), direction=LT
}""",
)


def test_map():
    check(MAP)


def test_map_of_what_is_not_elementwise_is_refused_by_the_expansion():
    text = MAP.replace("s = f32[] multiply(b, c)", "s = f32[] reshape(b)")
    parsed = parse_module(text)
    with pytest.raises(UnimplementedError, match=r"map: to_apply f has a reshape"):
        OPS["map"].lower.fn(parsed.entry.root)


def test_cost_counts_the_region_per_element_less_the_results():
    parsed = parse_module(reduction("add", "f32", "0", "10,20"))
    assert OPS["reduce"].cost(parsed.entry.root).flops == 190
