"""Floats below 32 bits against ml_dtypes: every code, every halfway point, every overflow."""

from dataclasses import replace

import numpy as np
import pytest

from haloc.codegen.target import host_target
from haloc.ir.dtype import ARRAY_DTYPES, F16, F32, F64
from haloc.ops.reference import store
from tests.codegen.scalar.elements import apply, apply_both, assert_same

NARROW = [d for d in ARRAY_DTYPES if d.is_float and d.bits < 32]


def codes(dtype):
    unsigned = np.uint8 if dtype.bits <= 8 else np.uint16
    return np.arange(1 << dtype.bits).astype(unsigned).view(dtype.numpy)


def widened(dtype):
    with np.errstate(all="ignore"):  # NumPy warns of bf16's signalling NaNs
        return codes(dtype).astype(np.float64)


def halfway(dtype):
    """Between neighbours, a little above and a little below, and far away."""
    with np.errstate(all="ignore"):
        values = np.sort(codes(dtype).astype(np.float64))
        values = values[np.isfinite(values)]
        middle = ((values[1:] + values[:-1]) / 2).astype(np.float32)
        middle = np.concatenate([middle, np.float32(values[-1:] * 1.2), np.float32([1e38, 1e-45])])
        up, down = np.float32(np.inf), np.float32(-np.inf)
        near = [middle, np.nextafter(middle, up), np.nextafter(middle, down)]
    special = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan])
    patterns = np.random.default_rng(0).integers(0, 2**32, 20_000, dtype=np.uint32)
    both = np.concatenate(near)
    return np.concatenate([both, -both, special, patterns.view(np.float32)])


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_every_code_widens_exactly_and_comes_back(dtype):
    x = codes(dtype)
    wide = x.astype(np.float32)
    assert_same(apply_both(lambda s, v: s.convert(v, F32), [x]), wide, [x])
    with np.errstate(all="ignore"):
        assert_same(apply_both(lambda s, v: s.convert(v, dtype), [wide]), wide.astype(dtype.numpy))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_f32_rounds_to_nearest_even(dtype):
    x = halfway(dtype)
    with np.errstate(all="ignore"):
        want = store(x, dtype)
    assert_same(apply_both(lambda s, v: s.convert(v, dtype), [x]), want, [x])


def test_f16_without_hardware_is_the_same():
    host = host_target()
    plain = replace(host, features=frozenset(), cpu="x86-64", vector_bytes=16)
    x = halfway(F16)
    with np.errstate(all="ignore"):
        want = x.astype(np.float16)
    assert_same(apply(lambda s, v: s.convert(v, F16), [x], 8, plain), want, [x])
    assert_same(apply(lambda s, v: s.convert(v, F32), [want], 8, plain), want.astype(np.float32))


@pytest.mark.parametrize(
    "dtype", [d for d in NARROW if d.name in ("f16", "bf16", "f8e4m3fn")], ids=str
)
def test_f64_is_rounded_once(dtype):
    """A double just above a halfway point goes up, though f32 would take it for halfway."""
    values = widened(dtype)
    values = np.sort(values[np.isfinite(values) & (values > 0)])
    middle = (values[1:] + values[:-1]) / 2
    convert = lambda s, v: s.convert(v, dtype)  # noqa: E731
    above = apply_both(convert, [np.nextafter(middle, np.inf)]).astype(np.float64)
    below = apply_both(convert, [np.nextafter(middle, -np.inf)]).astype(np.float64)
    np.testing.assert_array_equal(above, values[1:])
    np.testing.assert_array_equal(below, values[:-1])


@pytest.mark.parametrize("dtype", [d for d in NARROW if d.bits == 8], ids=str)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_arithmetic_on_all_pairs_of_codes_rounds_the_f64_result(dtype, name):
    x, y = (a.reshape(-1) for a in np.meshgrid(codes(dtype), codes(dtype)))
    operator = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}.get(
        name, np.divide
    )
    with np.errstate(all="ignore"):
        exact = operator(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
        want = exact.astype(dtype.numpy)
    assert_same(apply(name, [x, y], 16), want, [x, y])


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_to_f64(dtype):
    x = codes(dtype)
    assert_same(apply_both(lambda s, v: s.convert(v, F64), [x]), widened(dtype))
