"""Shapes: text, equality, sizes, layouts, tuples, dynamic dimensions."""

import pickle

import pytest

from haloc.formats.hlo_text import parse_shape
from haloc.ir.dtype import ALL_DTYPES, BF16, C64, F32, S4, TUPLE, dtype_from_name, dtype_from_numpy
from haloc.ir.shape import UNBOUNDED, Layout, Shape, tuple_shape

TEXTS = [
    "f32[]",
    "f32[4,8]{1,0}",
    "f32[4,8]{0,1}",
    "bf16[4,8]{1,0:T(8,128)(2,1)S(5)}",
    "s4[4,8]{1,0:E(4)}",
    "f32[4,8]{1,0:SC(0:2,3)}",
    "f32[4,8]{1,0:D(D,C)}",
    "f32[4,8]{1,0:T(*,8)L(16)}",
    "f32[4,8]{1,0:P((f32[3]{0}))M(5)}",
    "f32[4,8]{1,0:T(8)#(u32)*(u8)SC(0:2,3)(1:4)}",
    "f32[]{:T(128)}",
    "f32[<=4,8]{1,0}",
    "f32[?,<=9]{1,0}",
    "token[]",
    "opaque[]",
    "b(f32[4]{0})",
    "()",
    "(f32[], (s32[2]{0}, token[]))",
    "(f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[])",
    "f32[0]{0}",
]


@pytest.mark.parametrize("text", TEXTS)
def test_text_round_trips(text):
    shape = parse_shape(text)
    assert str(shape) == text
    assert parse_shape(str(shape)) == shape
    assert hash(parse_shape(text)) == hash(shape)


def test_a_missing_layout_is_row_major():
    assert parse_shape("f32[2,3,4]") == parse_shape("f32[2,3,4]{2,1,0}")
    assert parse_shape("f32[2,3,4]") == Shape(F32, (2, 3, 4))
    assert Shape(F32, (2, 3)) != Shape(F32, (2, 3), Layout((0, 1)))
    assert Shape(F32, (2, 3)).compatible(Shape(F32, (2, 3), Layout((0, 1))))


def test_dynamic_dimensions():
    shape = parse_shape("f32[?,<=9,3]")
    assert shape.dims == (UNBOUNDED, 9, 3)
    assert shape.dynamic == (True, True, False)
    assert not shape.is_static
    assert not shape.compatible(parse_shape("f32[?,9,3]"))


def test_sizes():
    assert parse_shape("f32[2,3]").byte_size == 24
    assert parse_shape("s4[3]").byte_size == 3
    assert parse_shape("(f32[], c64[2], token[])").byte_size == 20
    assert parse_shape("f32[0,5]").element_count == 0
    assert Shape(F32).element_count == 1


def test_leaves_and_layouts_of_tuples():
    shape = parse_shape("(f32[2,2]{0,1}, (s4[], ()))")
    assert [s.dtype for s in shape.leaves()] == [F32, S4]
    assert str(shape.with_default_layout()) == "(f32[2,2]{1,0}, (s4[], ()))"
    assert shape.to_string(include_layout=False) == "(f32[2,2], (s4[], ()))"
    assert tuple_shape().dtype is TUPLE


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_types_by_name_number_and_pickle(dtype):
    assert dtype_from_name(dtype.name) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    if dtype.is_array:
        assert dtype_from_numpy(dtype.numpy) is dtype


def test_shapes_print_in_messages():
    assert repr(Shape(BF16, (2,))) == "Shape('bf16[2]{0}')"
    assert Shape(C64).dtype.real is F32
