"""Integer and pred arithmetic against Python's integers."""

import numpy as np
import pytest

from haloc.ir.dtype import ARRAY_DTYPES, PRED, dtype_from_numpy
from tests.codegen.scalar.elements import apply_both, assert_same

INTEGERS = [d for d in ARRAY_DTYPES if d.is_integer]


def bounds(dtype):
    low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    return low, low + (1 << dtype.bits) - 1


def wrap(value, dtype):
    low, _ = bounds(dtype)
    return (value - low) % (1 << dtype.bits) + low


def towards_zero(x, y):
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def power(x, y, dtype):
    if y < 0:
        return {1: 1, -1: 1 if y % 2 == 0 else -1}.get(x, 0)
    return pow(x, y, 1 << dtype.bits)


def unsigned(x, dtype):
    return x % (1 << dtype.bits)


BINARY = {
    "add": lambda x, y, d: x + y,
    "subtract": lambda x, y, d: x - y,
    "multiply": lambda x, y, d: x * y,
    "mulhi": lambda x, y, d: (x * y) >> d.bits,
    "divide": lambda x, y, d: -1 if y == 0 else towards_zero(x, y),
    "remainder": lambda x, y, d: x if y == 0 else x - y * towards_zero(x, y),
    "maximum": lambda x, y, d: max(x, y),
    "minimum": lambda x, y, d: min(x, y),
    "power": power,
    "and_": lambda x, y, d: x & y,
    "or_": lambda x, y, d: x | y,
    "xor": lambda x, y, d: x ^ y,
    "shift_left": lambda x, y, d: x << n if (n := unsigned(y, d)) < d.bits else 0,
    "shift_right_logical": lambda x, y, d: (
        unsigned(x, d) >> n if (n := unsigned(y, d)) < d.bits else 0
    ),
    "shift_right_arithmetic": lambda x, y, d: (
        wrap(x, d) >> min(unsigned(y, d), d.bits - 1)
        if d.is_signed
        else unsigned(signed(x, d) >> min(unsigned(y, d), d.bits - 1), d)
    ),
}


def signed(x, dtype):
    half = 1 << (dtype.bits - 1)
    return (x + half) % (2 * half) - half


UNARY = {
    "negate": lambda x, d: -x,
    "abs": lambda x, d: abs(x),
    "sign": lambda x, d: (x > 0) - (x < 0),
    "not_": lambda x, d: ~x,
    "popcnt": lambda x, d: unsigned(x, d).bit_count(),
    "count_leading_zeros": lambda x, d: d.bits - unsigned(x, d).bit_length(),
}


def pairs(dtype):
    """All pairs of 2- and 4-bit numbers; else extremes, small numbers and random ones."""
    low, high = bounds(dtype)
    if dtype.bits <= 4:
        values = list(range(low, high + 1))
    else:
        rng = np.random.default_rng(0)
        small = [v for v in (-7, -2, -1, 0, 1, 2, 3, 7, dtype.bits - 1, dtype.bits) if v >= low]
        spread = [wrap(int(rng.integers(0, 2**63)) * 3, dtype) for _ in range(20)]
        values = [low, low + 1, high - 1, high, *small, *spread]
    return [x for x in values for _ in values], [y for _ in values for y in values]


def array(values, dtype):
    return np.array(values, dtype=np.int64 if dtype.bits < 64 else dtype.numpy).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, dtype):
    x, y = pairs(dtype)
    want = array([wrap(BINARY[name](a, b, dtype), dtype) for a, b in zip(x, y, strict=True)], dtype)
    assert_same(apply_both(name, [array(x, dtype), array(y, dtype)]), want, [x_y(x), x_y(y)])


def x_y(values):
    return np.array(values, object)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, dtype):
    x, _ = pairs(dtype)
    want = array([wrap(UNARY[name](a, dtype), dtype) for a in x], dtype)
    assert_same(apply_both(name, [array(x, dtype)]), want, [x_y(x)])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("direction", ["EQ", "NE", "GE", "GT", "LE", "LT"])
def test_compare(direction, dtype):
    x, y = pairs(dtype)
    want = [getattr(a, f"__{direction.lower()}__")(b) for a, b in zip(x, y, strict=True)]
    emit = lambda s, a, b: s.compare(a, b, direction)  # noqa: E731
    assert_same(apply_both(emit, [array(x, dtype), array(y, dtype)]), np.array(want))


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "and_", "or_", "xor"])
def test_pred(name):
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    want = x ^ y if name == "xor" else x | y if name in ("add", "maximum", "or_") else x & y
    assert_same(apply_both(name, [x, y]), want)
    assert_same(apply_both("not_", [x]), ~x)


@pytest.mark.parametrize("source", [*INTEGERS, PRED], ids=str)
def test_convert_between_integers_keeps_the_low_bits(source):
    values = [0, 1] if source.is_pred else pairs(source)[0]
    x = array(values, source)
    for to in INTEGERS:
        got = apply_both(lambda s, v, to=to: s.convert(v, to), [x])
        assert_same(got, array([wrap(v, to) for v in values], to), [x_y(values)])
    got = apply_both(lambda s, v: s.convert(v, PRED), [x])
    assert_same(got, np.array(values) != 0)


@pytest.mark.parametrize("source", INTEGERS, ids=str)
def test_to_float_rounds_once(source):
    values, _ = pairs(source)
    x = array(values, source)
    for to in (np.float32, np.float64):
        want = np.array([rounded(v, to) for v in values], to)
        dtype = dtype_from_numpy(to)
        assert_same(apply_both(lambda s, v, d=dtype: s.convert(v, d), [x]), want)


def rounded(value, to):
    """Nearest, ties to even, of a Python integer."""
    keep = np.finfo(to).nmant + 1
    drop = max(0, abs(value).bit_length() - keep)
    head, rest = divmod(abs(value), 1 << drop)
    half = (1 << drop) >> 1
    head += drop > 0 and (rest > half or (rest == half and head % 2 == 1))
    return to(head * 2.0**drop * (-1 if value < 0 else 1))
