"""ragged-dot, scaled-dot and scan against what JAX and jaxlib make of them."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

from haloc import interpreter
from haloc.errors import VerificationError
from haloc.formats.hlo_text import parse_module
from haloc.passes.pipelines import run_pipeline
from haloc.verifier import verify
from tests.ops_structured.against_jaxlib import check, module


def run(text: str, arguments: list[np.ndarray]) -> list[np.ndarray]:
    """The interpreter's result before and after the CPU passes."""
    parsed = parse_module(text)
    verify(parsed)
    before = interpreter.run(parsed, arguments)
    run_pipeline(parsed)
    return [before, interpreter.run(parsed, arguments)]


RAGGED = {
    "free": (
        "f32[7,4], f32[3,4,5], s32[3], f32[7,5]",
        "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
        "rhs_group_dims={0}",
        (((1,), (1,)), ((), ())),
        (0, [0]),
    ),
    "free, group dimension in the middle, batch": (
        "f32[2,7,4], f32[4,3,2,5], s64[2,3], f32[2,7,5]",
        "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={2}, "
        "rhs_contracting_dims={0}, lhs_ragged_dims={1}, rhs_group_dims={1}",
        (((2,), (0,)), ((0,), (2,))),
        (1, [1]),
    ),
    "free, second of two": (
        "f32[2,7,4], f32[3,4,5], s32[2,3], f32[2,7,5]",
        "lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={1}, "
        "rhs_group_dims={0}",
        (((2,), (1,)), ((), ())),
        (1, [0]),
    ),
    "contracting": (
        "f32[4,7], f32[7,5], s32[3], f32[3,4,5]",
        "lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}",
        (((1,), (0,)), ((), ())),
        (1, []),
    ),
    "contracting, second of two, batch": (
        "f32[7,2,4,3], f32[2,3,7,5], u8[2,3,3], f32[3,2,4,5]",
        "lhs_batch_dims={1}, lhs_contracting_dims={3,0}, rhs_batch_dims={0}, "
        "rhs_contracting_dims={1,2}, lhs_ragged_dims={0}",
        (((3, 0), (1, 2)), ((1,), (0,))),
        (0, []),
    ),
    "batch": (
        "f32[7,4,2], f32[7,2,5], s32[3], f32[7,4,5]",
        "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, "
        "rhs_contracting_dims={1}, lhs_ragged_dims={0}",
        (((2,), (1,)), ((0,), (0,))),
        (0, []),
    ),
}


def ragged(shapes: str, attrs: str) -> str:
    lhs, rhs, sizes, result = shapes.split(", ")
    return module(
        f"""  a = {lhs} parameter(0)
  b = {rhs} parameter(1)
  g = {sizes} parameter(2)
  ROOT d = {result} ragged-dot(a, b, g), {attrs}"""
    )


@pytest.mark.parametrize("case", RAGGED)
def test_ragged_dot_is_what_jax_computes(case):
    shapes, attrs, dims, (dim, groups) = RAGGED[case]
    text = ragged(shapes, attrs)
    parameters = [p.shape for p in parse_module(text).entry.parameters]
    rng = np.random.default_rng(0)
    lhs, rhs = (rng.standard_normal(s.dims).astype(np.float32) for s in parameters[:2])
    # Groups of 2, 0 and 3 or 4 of 7 rows: one is empty, and some rows are in none.
    sizes = np.broadcast_to([2, 0, 3], parameters[2].dims).astype(parameters[2].dtype.numpy)
    sizes = sizes + (np.arange(sizes.size).reshape(sizes.shape) == 5).astype(sizes.dtype)
    numbers = lax.RaggedDotDimensionNumbers(dims, [dim], groups)
    wanted = lax.ragged_dot_general(lhs, rhs, jnp.asarray(sizes), numbers)
    for given in run(text, [lhs, rhs, sizes]):
        np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-5)


def test_infinities_stay_in_their_group():
    shapes, attrs, *_ = RAGGED["free"]
    lhs, rhs = np.ones((7, 4), np.float32), np.ones((3, 4, 5), np.float32)
    rhs[1] = np.inf
    lhs[0] = 0
    wanted = np.full((7, 5), 4, np.float32)
    wanted[0], wanted[2:4], wanted[6] = 0, np.inf, 0
    for given in run(ragged(shapes, attrs), [lhs, rhs, np.array([2, 2, 2], np.int32)]):
        np.testing.assert_array_equal(given, wanted)


@pytest.mark.parametrize(
    ("shapes", "attrs", "fault"),
    [
        ("f32[7,4], f32[2,4,5], s32[3], f32[7,5]", RAGGED["free"][1], "other groups"),
        ("f32[7,4], f32[3,4,5], f32[3], f32[7,5]", RAGGED["free"][1], "array of integers"),
        ("f32[7,4], f32[3,4,5], s32[2,3], f32[7,5]", RAGGED["free"][1], "wanted [groups] or"),
        (
            "f32[4,7], f32[7,5], s32[3], f32[3,4,5]",
            RAGGED["contracting"][1] + ", rhs_group_dims={1}",
            "must name no dimension",
        ),
        (
            "f32[7,4], f32[4,5], s32[3], f32[7,5]",
            "lhs_contracting_dims={1}, rhs_contracting_dims={0}, rhs_group_dims={1}",
            "lhs_ragged_dims={} must name one dimension",
        ),
    ],
)
def test_ragged_dot_that_is_wrong(shapes, attrs, fault):
    with pytest.raises(VerificationError) as error:
        verify(parse_module(ragged(shapes, attrs)))
    assert fault in str(error.value)


@pytest.mark.parametrize("dtype", ["f8e4m3fn", "bf16"])
def test_scaled_dot_is_what_jax_computes(dtype):
    types = {"f8e4m3fn": (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, "f8e8m0fnu"),
             "bf16": (ml_dtypes.bfloat16, ml_dtypes.bfloat16, "bf16")}  # fmt: skip
    element, scale, name = types[dtype]
    rng = np.random.default_rng(1)
    lhs = rng.standard_normal((2, 4, 64)).astype(element)
    rhs = rng.standard_normal((2, 64, 6)).astype(element)
    lhs_scale = (2.0 ** rng.integers(-3, 4, (2, 4, 2))).astype(scale)
    rhs_scale = (2.0 ** rng.integers(-3, 4, (2, 4, 6))).astype(scale)
    text = module(
        f"""  a = {dtype}[2,4,64] parameter(0)
  b = {dtype}[2,64,6] parameter(1)
  s = {name}[2,4,2] parameter(2)
  t = {name}[2,4,6] parameter(3)
  ROOT d = f32[2,4,6] scaled-dot(a, b, s, t), lhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, """
        "rhs_batch_dims={0}, rhs_contracting_dims={1}"
    )
    wanted = jax.lax.scaled_dot(
        lhs, rhs, lhs_scale=lhs_scale, rhs_scale=rhs_scale,
        dimension_numbers=(((2,), (1,)), ((0,), (0,))), preferred_element_type=jnp.float32,
    )  # fmt: skip
    for given in run(text, [lhs, rhs, lhs_scale, rhs_scale]):
        np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-4)


STEP = """
step {
  x = f32[2] parameter(0)
  y = f32[] parameter(1)
  c = f32[2] parameter(2)
  s = f32[2] add(x, c)
  p = f32[2] multiply(s, c)
  ROOT t = (f32[2], f32[], f32[2]) tuple(p, y, s)
}
"""


@pytest.mark.parametrize("reverse", ["false", "true"])
def test_scan(reverse):
    text = module(
        f"""  a = f32[2,5] parameter(0)
  b = f32[5] parameter(1)
  i = f32[2] parameter(2)
  w = (f32[2,5], f32[5], f32[2]) scan(a, b, i), dimensions={{DIM}}, num_carries=1, """
        f"is_reverse={reverse}, to_apply=step\n  ROOT r = f32[2,5] get-tuple-element(w), index=0",
        STEP,
    )
    with pytest.raises(VerificationError, match="wanted arrays with one size of dimension 1"):
        verify(parse_module(text.replace("{DIM}", "{1}")))
    text = text.replace("[2,5]", "[5,2]").replace("{DIM}", "{0}")
    check(text, rtol=1e-6)


@pytest.mark.parametrize(
    ("entry", "result"),
    [
        (
            """  a = f32[0,2] parameter(0)
  i = f32[2] parameter(1)
  w = (f32[0,2], f32[2]) scan(a, i), dimensions={0}, num_carries=1, to_apply=sum
  ROOT r = f32[2] get-tuple-element(w), index=1""",
            np.ones(2, np.float32),
        ),
        (
            """  a = f32[3,2] parameter(0)
  b = f32[0,2,5] parameter(1)
  g = s32[0] constant({})
  ROOT d = f32[3,5] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1},
    lhs_ragged_dims={0}, rhs_group_dims={0}""",
            np.zeros((3, 5), np.float32),
        ),
    ],
)
def test_no_steps(entry, result):
    step = """
sum {
  x = f32[2] parameter(0)
  c = f32[2] parameter(1)
  s = f32[2] add(x, c)
  ROOT t = (f32[2], f32[2]) tuple(s, s)
}
"""
    text = module(entry, step)
    parameters = parse_module(text).entry.parameters
    for given in run(text, [np.ones(p.shape.dims, np.float32) for p in parameters]):
        np.testing.assert_array_equal(given, result)
