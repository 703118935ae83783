"""Elementary functions: within their ULP bounds of long double references, at both widths."""

import numpy as np
import pytest

from haloc.codegen.builder import Builder
from haloc.codegen.scalar import LlvmScalar
from haloc.codegen.target import host_target
from haloc.errors import UnimplementedError
from haloc.ir.dtype import BF16, F16, F32, S32
from tests.codegen.scalar.elements import apply, apply_both, assert_same
from tests.codegen.scalar.references import (
    BINARY,
    HAS_WIDE_LONG_DOUBLE,
    UNARY,
    edge_values,
    max_ulp,
    reference,
    samples,
    ulp_error,
)

NAMES = [*UNARY, *BINARY]
wide = pytest.mark.skipif(not HAS_WIDE_LONG_DOUBLE, reason="long double is no wider than double")


def worst(name, operands, got, want):
    errors = ulp_error(got, want)
    i = int(np.argmax(errors))
    return errors[i], f"{name}({[a[i] for a in operands]}) = {got[i]!r}, want {want[i]}"


@pytest.mark.parametrize("name", NAMES)
def test_f32_is_within_its_bound(name):
    operands = samples(name, np.float32, 40_000)
    got = apply(name, operands, 16)
    error, where = worst(name, operands, got, reference(name, operands))
    assert error <= max_ulp(name, 32), where


@wide
@pytest.mark.parametrize("name", NAMES)
def test_f64_is_within_its_bound(name):
    operands = samples(name, np.float64, 8_000)
    got = apply(name, operands, 8)
    error, where = worst(name, operands, got, reference(name, operands))
    assert error <= max_ulp(name, 64), where


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_scalar_and_vector_give_the_same_bits(name, dtype):
    edges = edge_values(dtype)
    operands = [edges] if name in UNARY else [a.reshape(-1) for a in np.meshgrid(edges, edges)]
    apply_both(name, operands)
    apply_both(name, [a[:500] for a in samples(name, dtype, 400)])


@pytest.mark.parametrize("dtype", [F16, BF16])
@pytest.mark.parametrize("name", UNARY)
def test_every_16_bit_float_rounds_the_function(name, dtype):
    """All 65536 numbers. The f32 result has an error of its own: a last bit may differ, rarely."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    got = apply(name, [x], 16).astype(np.float64)
    with np.errstate(all="ignore"):
        want = reference(name, [x.astype(np.float64)]).astype(np.float64)
        want_rounded = want.astype(dtype.numpy).astype(np.float64)
    differs = ~((got == want_rounded) | (np.isnan(got) & np.isnan(want_rounded)))
    assert differs.mean() < 1e-3
    with np.errstate(all="ignore"):
        close = abs(got[differs] - want_rounded[differs]) <= abs(want_rounded[differs]) * 2.0**-7
    tiny = abs(want_rounded[differs]) < 2.0**-13
    assert (close | tiny).all()


def test_subnormals_are_not_flushed():
    x = np.array([1e-40, -1e-40], np.float32)
    assert_same(apply_both("sine", [x]), x)
    np.testing.assert_allclose(apply_both("log", [x[:1]]), np.log(1e-40), rtol=1e-6)
    assert apply_both("exponential", [np.array([-100.0], np.float32)])[0] > 0


def test_a_function_of_an_integer_is_refused_by_name():
    s = LlvmScalar(Builder(), host_target())
    with pytest.raises(UnimplementedError, match="tanh: not of s32"):
        s.tanh(s.constant(S32, 1))


def test_a_long_function_is_written_once_and_called():
    s = LlvmScalar(Builder(), host_target())
    x, y = s.constant(F32, 2, 8), s.constant(F32, 3, 8)
    s.power(x, y)
    s.power(y, x)
    assert [k for k in s.builder.library if "power" in k] == ["@haloc.power.v8f32"]


@pytest.mark.parametrize("x", [1e5, 1e10, 1e22, 1e30, 3.4e38])
def test_sine_of_a_large_argument(x):
    value = np.array([x], np.float32)
    want = np.sin(value.astype(np.float64))
    np.testing.assert_allclose(apply_both("sine", [value]), want, rtol=2.0**-23)  # one place
