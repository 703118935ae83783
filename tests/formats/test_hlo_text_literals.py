"""Literals: exact values both ways, XLA's digits, every element type."""

import jaxlib._hlo
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haloc.errors import HloParseError
from haloc.formats.hlo_text import parse_module, to_text
from haloc.formats.hlo_text.cursor import Cursor
from haloc.formats.hlo_text.literals import _slow, literal_text, parse_literal
from haloc.formats.hlo_text.numbers import array_from_words
from haloc.ir.dtype import ARRAY_DTYPES, dtype_from_name
from haloc.ir.literal import Literal
from haloc.ir.shape import Shape


def module_of(constant: str) -> str:
    return f"HloModule m\n\nENTRY e {{\n  ROOT c = {constant}\n}}\n"


def literal_of(constant: str) -> Literal:
    return parse_module(module_of(constant)).entry.root.attrs["literal"]


def round_trip(literal: Literal) -> Literal:
    text = literal_text(literal)
    return parse_literal(Cursor(text, "t"), literal.shape)


def xla_literal_text(constant: str) -> str:
    options = jaxlib._hlo.HloPrintOptions()
    options.print_large_constants = True
    text = jaxlib._hlo.hlo_module_from_text(module_of(constant)).to_string(options)
    line = next(line for line in text.splitlines() if " constant(" in line)
    return line.split(" constant(", 1)[1][:-1]


FLOATS = [d for d in ARRAY_DTYPES if d.is_float]
NARROW = [d for d in FLOATS if d.bits <= 16]


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_every_value_of_a_narrow_float_survives(dtype):
    unsigned = np.uint8 if dtype.byte_size == 1 else np.uint16
    bits = np.arange(1 << dtype.bits, dtype=unsigned)
    literal = Literal.of(bits.view(dtype.numpy))
    assert round_trip(literal) == literal


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_random_bits_of_wide_floats_survive(name):
    dtype = dtype_from_name(name)
    rng = np.random.default_rng(1)
    raw = rng.integers(0, 256, 4000 * dtype.byte_size, np.uint8)
    literal = Literal.of(raw.view(dtype.numpy))
    assert round_trip(literal) == literal


@pytest.mark.parametrize("dtype", [d for d in ARRAY_DTYPES if d.is_integer], ids=str)
def test_integer_extremes_survive(dtype):
    info = ml_dtypes.iinfo(dtype.numpy)
    literal = Literal.of(np.array([info.min, info.max, 0, 1], dtype.numpy))
    assert round_trip(literal) == literal


@pytest.mark.parametrize(
    "dtype", [d for d in FLOATS if d.name not in ("f6e2m3fn", "f6e3m2fn")], ids=str
)
def test_floats_print_as_xla_prints_them(dtype):
    """Except -0, which XLA prints as "-0" and cannot read back."""
    rng = np.random.default_rng(2)
    unsigned = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.byte_size]
    bits = rng.integers(0, 1 << min(dtype.bits, 62), 300, np.uint64).astype(unsigned)
    values = bits.view(dtype.numpy)
    with np.errstate(invalid="ignore"):  # signalling NaNs among the bits
        wide = values.astype(np.float64)
    keep = (wide != 0) & ~np.isnan(wide)
    if dtype.name == "f8e8m0fnu":
        keep &= wide > 2.0**-126  # XLA reads 2^-127 as 2^-126
    text = literal_text(Literal.of(values[keep]))
    assert xla_literal_text(f"{dtype}[{keep.sum()}] constant({text})") == text


@pytest.mark.parametrize(
    ("dtype", "word", "bits"),
    [
        ("f32", "nan", 0x7FC00000),
        ("f32", "-nan", 0xFFC00000),
        ("f32", "nan(0x1)", 0x7F800001),
        ("f32", "-nan(0x3)", 0xFF800003),
        ("f32", "nan(0x400000)", 0x7FC00000),
        ("f64", "nan(0x7)", 0x7FF0000000000007),
        ("bf16", "nan(0x1)", 0x7F81),
        ("f16", "-nan", 0xFE00),
        ("f8e4m3fn", "nan", 0x7F),
        ("f8e4m3fn", "-nan", 0xFF),
        ("f8e5m2", "nan(0x1)", 0x7D),
        ("f8e4m3fnuz", "nan", 0x80),
        ("f8e8m0fnu", "nan", 0xFF),
        ("f32", "-0", 0x80000000),
        ("f32", "-0.0", 0x80000000),
        ("f32", "inf", 0x7F800000),
        ("f32", "-inf", 0xFF800000),
        ("f32", "5.", 0x40A00000),
        ("f32", "-1e-50", 0x80000000),
    ],
)
def test_special_values_have_these_bits(dtype, word, bits):
    literal = literal_of(f"{dtype}[] constant({word})")
    unsigned = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[
        literal.shape.dtype.byte_size
    ]
    assert int(literal.array.view(unsigned)) == bits
    assert round_trip(literal) == literal


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ("s32[3]", "{0, 1, 2}"),
        ("f32[2,2,1]", "{ { {0}, {1.4013e-45} }, { {2.8026e-45}, {4.2039e-45} } }"),
        ("f32[1,2]", "{ { 0, 1.4013e-45 } }"),
        ("f32[0,0]", "{  }"),
        ("f32[2,0,3]", "{ {  }, {  } }"),
        ("f32[2,1,0]", "{ { {} }, { {} } }"),
        ("s32[0]", "{}"),
        ("c64[2,1]", "{ {(0, 1.4013e-45)}, {(2.8026e-45, 4.2039e-45)} }"),
        ("pred[5]", "{0, 0, 0, 0, 0}"),
        ("s8[9]", "{0, 0, 0, 0, 1, 0, 0, 0, 2}"),
        ("s4[5]", "{0, 0, 0, 0, 1}"),
        ("bf16[4]", "{0, 0, 9.184e-41, 0}"),
    ],
)
def test_elided_constants_and_the_shape_of_braces(shape, text):
    assert literal_text(literal_of(f"{shape} constant({{...}})")) == text


def test_pred_scalars_are_words_and_arrays_are_digits():
    assert literal_text(literal_of("pred[] constant(1)")) == "true"
    assert literal_text(literal_of("pred[2] constant({true, 0})")) == "{1, 0}"


def test_tuple_literals():
    literal = literal_of("(f32[], (s32[2], pred[]), ()) constant((1, ({1, 2}, true), ()))")
    assert literal_text(literal) == "( 1, ( {1, 2}, true ), (  ) )"
    assert round_trip(literal) == literal


def test_a_layout_does_not_change_the_order_of_the_text():
    text = module_of("s32[2,3]{0,1} constant({ { 1, 2, 3 }, { 4, 5, 6 } })")
    literal = parse_module(text).entry.root.attrs["literal"]
    assert literal.array.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert "constant({ { 1, 2, 3 }, { 4, 5, 6 } })" in to_text(parse_module(text))


@settings(max_examples=60, deadline=None)
@given(
    dims=st.lists(st.integers(0, 3), min_size=1, max_size=3),
    name=st.sampled_from(["s32", "f32", "c64", "pred"]),
    seed=st.integers(0, 1000),
)
def test_the_fast_and_the_slow_reader_agree(dims, name, seed):
    dtype = dtype_from_name(name)
    rng = np.random.default_rng(seed)
    array = rng.integers(-9, 9, dims).astype(dtype.numpy)
    shape = Shape(dtype, tuple(dims))
    text = literal_text(Literal(shape, array))
    fast = parse_literal(Cursor(text, "t"), shape)
    words: list[str] = []
    _slow(Cursor(text, "t"), shape, 0, words)
    slow = Literal(shape, array_from_words(words, dtype).reshape(shape.dims))
    assert fast == slow == Literal(shape, array)


BAD = {
    "u8[300] constant(300)": "found '300', expected '{' of dimension 0 of u8[300]",
    "f32[2] constant({1,2,3})": "expected 2 elements in dimension 0 of f32[2], found more",
    "f32[3] constant({1,2})": "expected 3 elements in dimension 0 of f32[3], found only 2",
    "f32[2,2] constant({{1,2},{3}})": (
        "expected 2 elements in dimension 1 of f32[2,2], found only 1"
    ),
    "f32[2] constant({{1},{2}})": "found '{' inside the 1 dimensions of f32[2]",
    "f32[] constant({1})": "found '{' inside the 0 dimensions of f32[]",
    "s8[] constant(200)": "value 200 is out of range for s8, namely [-128, 127]",
    "u4[2] constant({1,16})": "value 16 is out of range for u4, namely [0, 15]",
    "f16[] constant(1e6)": "value 1e6 is out of range for f16, namely [-65504, 65504]",
    "f32[] constant(1e39)": (
        "value 1e39 is out of range for f32, namely [-3.40282e+38, 3.40282e+38]"
    ),
    "f64[] constant(1e400)": (
        "value 1e400 is out of range for f64, namely [-1.79769e+308, 1.79769e+308]"
    ),
    "f8e4m3fn[] constant(1000)": "value 1000 is out of range for f8e4m3fn, namely [-448, 448]",
    "f8e4m3fn[] constant(inf)": "f8e4m3fn has no inf",
    "f4e2m1fn[] constant(nan)": "f4e2m1fn has no NaN",
    "f32[] constant(nan(0x800000))": (
        "NaN payload 0x800000 is out of range for f32, namely [0x1, 0x7fffff]"
    ),
    "u8[3] constant({0x10,1,2})": "found '0x10', expected a u8 number",
    "s32[] constant(1.5)": "found '1.5', expected an integer for s32",
    "s32[] constant(true)": "found 'true', expected an integer for s32",
    "f32[] constant(true)": "found 'true', expected a number for f32",
    "f32[] constant(.5)": "found '.5', expected a f32 number",
    "pred[] constant(2)": "found '2', expected true, false, 1 or 0 for pred",
    "c64[] constant(3)": "found '3', expected a c64 number (real, imaginary)",
    "token[] constant(3)": "a constant of type token has no text",
    "f32[<=2] constant({1,2})": "a constant must have a static shape, given f32[<=2]",
}


@pytest.mark.parametrize("constant", BAD)
def test_bad_literals(constant):
    with pytest.raises(HloParseError) as caught:
        literal_of(constant)
    assert caught.value.message.splitlines()[0] == BAD[constant]
    assert caught.value.line == 4
