"""dot and convolution against jaxlib."""

import numpy as np
import pytest

from haloc import interpreter
from haloc.formats.hlo_text import parse_module
from haloc.ops.table import OPS
from tests.ops_structured.against_jaxlib import check, module

# The oracle sums in double and rounds once; XLA sums in the type itself.
RTOL = {"f16": 3e-3, "bf16": 2e-2, "f32": 1e-6, "f64": 1e-13, "c64": 1e-6, "c128": 1e-13}


def product(lhs: str, rhs: str, result: str, dims: str = "4,3;3,5;4,5", attrs: str = "") -> str:
    a, b, c = dims.split(";")
    attrs = attrs or "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    return module(
        f"""  a = {lhs}[{a}] parameter(0)
  b = {rhs}[{b}] parameter(1)
  ROOT c = {result}[{c}] dot(a, b), {attrs}"""
    )


@pytest.mark.parametrize(
    "types",
    [
        "f32,f32,f32",
        "f64,f64,f64",
        "f16,f16,f16",
        "bf16,bf16,bf16",
        "bf16,bf16,f32",
        "f16,f16,f32",
        "f32,f32,f64",
        "c64,c64,c64",
        "c128,c128,c128",
        "s8,s8,s8",
        "s8,s8,s32",
        "u8,u8,u8",
        "u8,s8,s32",
        "s16,s16,s16",
        "s32,s32,s32",
        "u32,u32,u32",
        "s64,s64,s64",
        "u64,u64,u64",
        "s4,s4,s4",
        "pred,pred,pred",
        "f8e4m3fn,f8e5m2,f32",
        "f8e5m2,f8e5m2,bf16",
        "bf16,f32,f32",
    ],
)
def test_types(types):
    lhs, rhs, result = types.split(",")
    check(product(lhs, rhs, result), rtol=RTOL.get(result, 0.0))


@pytest.mark.parametrize(
    ("dims", "attrs"),
    [
        ("3;3;", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        ("3,4;4,2;3,4,4,2", "lhs_contracting_dims={}, rhs_contracting_dims={}"),
        (
            "5,2,3;5,3,4;5,2,4",
            "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, "
            "rhs_contracting_dims={1}",
        ),
        (
            "2,3,4;4,3,2,6;3,6",
            "lhs_batch_dims={1}, lhs_contracting_dims={2,0}, rhs_batch_dims={1}, "
            "rhs_contracting_dims={0,2}",
        ),
        ("4,0;0,5;4,5", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
        ("0,3;3,5;0,5", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ],
)
def test_dimensions(dims, attrs):
    check(product("f32", "f32", "f32", dims, attrs), rtol=1e-6)


def test_infinities_and_nan():
    a = np.array([[np.inf, 1], [np.nan, 1], [1e38, 1e38]], np.float32)
    b = np.array([[0, 1], [1, 10]], np.float32)
    check(product("f32", "f32", "f32", "3,2;2,2;3,2"), [a, b])


def test_complex_infinities():
    a = np.array([[complex(np.inf, 1), 1], [1, complex(2, np.inf)]], np.complex64)
    b = np.array([[complex(1, 2), 0], [0, complex(3, 1)]], np.complex64)
    # XLA:CPU gives NaN everywhere. By the formula (ac - bd) + (ad + bc)i:
    given = interpreter.run(parse_module(product("c64", "c64", "c64", "2,2;2,2;2,2")), [a, b])
    assert given[0, 0] == complex(np.inf, np.inf) and given[1, 1] == complex(-np.inf, np.inf)
    assert np.isnan(given[[0, 1], [1, 0]]).all()


def test_dot_cost_is_two_flops_a_product():
    parsed = parse_module(product("f32", "f32", "f32", "64,128;128,32;64,32"))
    assert OPS["dot"].cost(parsed.entry.root).flops == 524288


def convolution(lhs: str, rhs: str, result: str, attrs: str, dtype: str = "f32") -> str:
    return module(
        f"""  l = {dtype}[{lhs}] parameter(0)
  k = {dtype}[{rhs}] parameter(1)
  ROOT c = {dtype}[{result}] convolution(l, k), {attrs}"""
    )


LABELS = "dim_labels=b01f_01io->b01f"


@pytest.mark.parametrize(
    ("dims", "attrs"),
    [
        ("2,9,9,3;3,3,3,4;2,4,4,4", "window={size=3x3 stride=2x2}, " + LABELS),
        ("1,8,8,3;3,3,3,4;1,8,8,4", "window={size=3x3 pad=1_1x1_1}, " + LABELS),
        (
            "2,5,5,4;3,3,2,6;2,9,5,6",
            "window={size=3x3 pad=1_1x1_1 lhs_dilate=2x1 rhs_reversal=1x0}, "
            + LABELS
            + ", feature_group_count=2",
        ),
        ("1,9,9,2;3,3,2,2;1,5,3,2", "window={size=3x3 rhs_dilate=2x3}, " + LABELS),
        ("1,9,9,2;3,3,2,2;1,6,7,2", "window={size=3x3 pad=-1_0x0_0}, " + LABELS),
        ("4,5,5,3;3,3,3,4;2,3,3,4", "window={size=3x3}, " + LABELS + ", batch_group_count=2"),
        ("2,4,6;5,4,3;2,5,4", "window={size=3}, dim_labels=bf0_oi0->bf0"),
        ("6,2,4;3,5,4;4,2,5", "window={size=3}, dim_labels=0bf_0oi->0bf"),
        ("2,3;3,4;2,4", "dim_labels=bf_io->bf"),
        ("1,4,4,4,2;2,2,2,2,3;1,3,3,3,3", "window={size=2x2x2}, dim_labels=b012f_012io->b012f"),
        ("1,6,6,4;3,3,1,8;1,4,4,8", "window={size=3x3}, " + LABELS + ", feature_group_count=4"),
    ],
)
def test_convolutions(dims, attrs):
    check(convolution(*dims.split(";"), attrs), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["f64", "bf16", "f16", "s32", "s8", "c64", "c128"])
def test_convolution_types(dtype):
    attrs = "window={size=3x3}, " + LABELS
    text = convolution("2,6,6,3", "3,3,3,4", "2,4,4,4", attrs, dtype)
    check(text, rtol=RTOL.get(dtype, 0.0) * 10)


def test_convolution_cost_leaves_padding_out():
    parsed = parse_module(
        convolution("1,8,8,3", "3,3,3,4", "1,8,8,4", "window={size=3x3 pad=1_1x1_1}, " + LABELS)
    )
    assert OPS["convolution"].cost(parsed.entry.root).flops == 11616
