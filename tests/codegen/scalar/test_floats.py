"""Float arithmetic, order, rounding and conversion against NumPy and Python."""

import math

import numpy as np
import pytest

from haloc.ir.dtype import (
    ARRAY_DTYPES,
    BF16,
    C64,
    F8E4M3FN,
    F8E5M2,
    F16,
    F32,
    F64,
    PRED,
    S4,
    S8,
    S16,
    S32,
    S64,
    U4,
    U8,
    U32,
    U64,
    dtype_from_numpy,
)
from tests.codegen.scalar.elements import apply_both, assert_same
from tests.codegen.scalar.references import edge_values

BOTH = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def pairs(dtype):
    edges = edge_values(dtype)
    x, y = np.meshgrid(edges, edges)
    rng = np.random.default_rng(0)
    more = (rng.standard_normal((2, 2000)) * 100).astype(dtype)
    return np.concatenate([x.reshape(-1), more[0]]), np.concatenate([y.reshape(-1), more[1]])


@BOTH
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "remainder"])
def test_arithmetic_is_ieee(name, dtype):
    x, y = pairs(dtype)
    function = {"remainder": np.fmod}.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        assert_same(apply_both(name, [x, y]), function(x, y), [x, y])


@BOTH
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes_keep_nan_and_order_zeros(name, dtype):
    x, y = pairs(dtype)
    want = getattr(np, name)(x, y)
    zeros = (x == 0) & (y == 0)
    sign = np.signbit(x) & np.signbit(y) if name == "maximum" else np.signbit(x) | np.signbit(y)
    want[zeros] = np.where(sign, -0.0, 0.0)[zeros]
    assert_same(apply_both(name, [x, y]), want, [x, y])


@BOTH
def test_clamp(dtype):
    x = edge_values(dtype)
    low, high = np.full_like(x, -2), np.full_like(x, 3)
    want = np.minimum(np.maximum(x, low), high)
    assert_same(apply_both("clamp", [low, x, high]), want)


@BOTH
def test_signs(dtype):
    x = edge_values(dtype)
    assert_same(apply_both("negate", [x]), -x)
    assert_same(apply_both("abs", [x]), abs(x))
    assert_same(apply_both("sign", [x]), np.where(x == 0, x, np.sign(x)))
    assert_same(apply_both("is_finite", [x]), np.isfinite(x))


@BOTH
def test_rounding(dtype):
    rng = np.random.default_rng(0)
    halves = rng.integers(-9, 10, 100) / 2
    x = np.concatenate([edge_values(dtype), halves, rng.standard_normal(500) * 9]).astype(dtype)
    assert_same(apply_both("floor", [x]), np.floor(x))
    assert_same(apply_both("ceil", [x]), np.ceil(x))
    assert_same(apply_both("round_nearest_even", [x]), np.rint(x))
    whole = np.trunc(x)
    with np.errstate(invalid="ignore"):
        away = np.copysign(whole + (abs(x - whole) >= 0.5) * np.sign(x), x)
    away = np.where(np.isfinite(x), away, x)
    assert_same(apply_both("round_nearest_afz", [x]), away)


@BOTH
@pytest.mark.parametrize("direction", ["EQ", "NE", "GE", "GT", "LE", "LT"])
def test_compare(direction, dtype):
    x, y = pairs(dtype)
    operator = {
        "EQ": np.equal, "NE": np.not_equal, "GE": np.greater_equal, "GT": np.greater,
        "LE": np.less_equal, "LT": np.less,
    }[direction]  # fmt: skip
    got = apply_both(lambda s, a, b: s.compare(a, b, direction), [x, y])
    assert_same(got, operator(x, y))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, BF16.numpy, F8E5M2.numpy])
def test_total_order(dtype):
    """-NaN < -inf < -1 < -0 < +0 < 1 < inf < NaN"""
    ordered = np.array([-np.nan, -np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan])
    ordered = np.copysign(ordered, [-1, -1, -1, -1, 1, 1, 1, 1]).astype(np.float32).astype(dtype)
    x, y = (a.reshape(-1) for a in np.meshgrid(ordered, ordered))
    i, j = (a.reshape(-1) for a in np.meshgrid(np.arange(8), np.arange(8)))
    for direction, operator in (("LT", np.less), ("GE", np.greater_equal), ("EQ", np.equal)):
        got = apply_both(lambda s, a, b, d=direction: s.compare(a, b, d, total_order=True), [x, y])
        assert_same(got, operator(i, j))


@BOTH
def test_select(dtype):
    x, y = pairs(dtype)
    assert_same(apply_both("select", [x > 0, x, y]), np.where(x > 0, x, y))


@BOTH
@pytest.mark.parametrize("to", [S4, S8, S16, S32, S64, U4, U8, U32, U64], ids=str)
def test_to_integer_saturates_and_truncates(to, dtype):
    x = np.concatenate([edge_values(dtype), np.linspace(-300, 300, 999).astype(dtype)])
    low = -(1 << (to.bits - 1)) if to.is_signed else 0
    high = low + (1 << to.bits) - 1

    def number(v):
        if math.isnan(v):
            return 0
        v = float(v)
        return min(max(v if math.isinf(v) else math.trunc(v), low), high)

    want = [number(v) for v in x]
    container = np.int64 if to.bits < 64 else to.numpy
    got = apply_both(lambda s, v: s.convert(v, to), [x])
    assert_same(got, np.array([int(w) for w in want], container).astype(to.numpy), [x])


def test_other_conversions():
    x = edge_values(np.float64)
    with np.errstate(all="ignore"):
        assert_same(apply_both(lambda s, v: s.convert(v, F32), [x]), x.astype(np.float32))
        want = x.astype(np.float32).astype(np.complex64)
    assert_same(apply_both(lambda s, v: s.convert(v, C64), [x]), want)
    assert_same(apply_both(lambda s, v: s.convert(v, PRED), [x]), x != 0)
    z = (np.arange(6) - 2 + 1j).astype(np.complex64)
    assert_same(apply_both(lambda s, v: s.convert(v, F64), [z]), z.real.astype(np.float64))
    bits = np.array([True, False])
    assert_same(apply_both(lambda s, v: s.convert(v, BF16), [bits]), bits.astype(BF16.numpy))


REAL = [d for d in ARRAY_DTYPES if not d.is_complex]
SAME_WIDTH = [(a, b) for a in REAL for b in REAL if a.bits == b.bits and a is not b]


@pytest.mark.parametrize(("source", "to"), SAME_WIDTH, ids=str)
def test_bitcast_keeps_the_bits(source, to):
    container = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[max(8, source.bits)]
    high = (1 << source.bits) - 1
    raw = np.random.default_rng(0).integers(0, high, 512, container, endpoint=True)
    with np.errstate(all="ignore"):
        for end in (source, to):  # NaN payloads are not kept: leave NaN out
            if end.is_float:
                raw = raw[~np.isnan(raw.view(end.numpy).astype(np.float64))]
    got = apply_both(lambda s, v: s.bitcast(v, to), [raw.view(source.numpy)])
    np.testing.assert_array_equal(got.view(container), raw)


def reduced(value, exponent_bits, mantissa_bits):
    """The nearest number with so many bits, in Python: no subnormals, overflow to infinity."""
    if math.isnan(value) or math.isinf(value) or value == 0:
        return value
    fraction, exponent = math.frexp(value)  # 0.5 <= |fraction| < 1
    scaled = round(fraction * 2 ** (mantissa_bits + 1))  # Python rounds ties to even
    result = math.ldexp(scaled, exponent - mantissa_bits - 1)
    bias = 2 ** (exponent_bits - 1) - 1
    if abs(result) >= 2.0 ** (bias + 1):
        return math.copysign(math.inf, value)
    return result if abs(result) >= 2.0 ** (1 - bias) else math.copysign(0.0, value)


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64, F8E4M3FN], ids=str)
@pytest.mark.parametrize("bits", [(4, 3), (5, 2), (3, 1), (2, 5), (4, 1)])
def test_reduce_precision(bits, dtype):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(2000) * 10.0 ** rng.integers(-2, 3, 2000)).astype(np.float32)
    x = np.concatenate([x, [0.0, -0.0, np.inf, -np.inf, np.nan, 448.0, 1e4]]).astype(np.float32)
    if dtype is F16:  # with its own 5 exponent bits its subnormals stay
        x = x[~(abs(x) < 2.0**-14) | (x == 0)]
    x = x.astype(dtype.numpy)
    got = apply_both(lambda s, v: s.reduce_precision(v, *bits), [x])
    want = np.array([reduced(float(v), *bits) for v in x], np.float64)
    with np.errstate(all="ignore"):
        assert_same(got, want.astype(np.float32).astype(dtype.numpy), [x])


def test_reduce_precision_to_no_mantissa_makes_the_exponent_even_in_a_tie():
    x = np.array([1.5, 3.0, 6.0, np.nan], np.float32)
    got = apply_both(lambda s, v: s.reduce_precision(v, 8, 0), [x])
    assert_same(got, np.array([2, 2, 8, np.nan], np.float32))


@pytest.mark.parametrize("dtype", [np.float16, BF16.numpy, np.float32, np.float64])
def test_constants(dtype):
    target = dtype_from_numpy(dtype)
    for number in (0.1, -0.0, math.inf, 1e-7, 3e4):
        got = apply_both(lambda s, v, n=number: s.constant(target, n), [np.zeros(8, dtype)])
        with np.errstate(all="ignore"):
            assert_same(got, np.full(8, number).astype(dtype))
