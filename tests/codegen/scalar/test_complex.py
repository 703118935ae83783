"""Complex arithmetic and functions, against NumPy in long double, and C99's special values."""

import numpy as np
import pytest

from haloc.codegen.builder import Builder
from haloc.codegen.scalar import LlvmScalar
from haloc.codegen.target import host_target
from haloc.errors import UnimplementedError
from haloc.ir.dtype import C64
from tests.codegen.scalar.elements import apply_both, assert_same
from tests.codegen.scalar.references import (
    COMPLEX,
    HAS_WIDE_LONG_DOUBLE,
    complex_error,
    complex_numbers,
)

BOUND_EPS = 2.6
"""|got - want| / |want| in units of the type's epsilon: two real functions and a product."""


@pytest.mark.skipif(not HAS_WIDE_LONG_DOUBLE, reason="long double is no wider than double")
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", COMPLEX)
def test_close_to_long_double(name, dtype):
    count = 2 if name in ("multiply", "divide") else 1
    operands = [complex_numbers(dtype, seed) for seed in range(count)]
    got = apply_both(name, operands)
    error = complex_error(name, operands, got)
    i = int(np.argmax(error))
    assert error[i] < BOUND_EPS, ([z[i] for z in operands], got[i])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_log_plus_one_and_logistic_and_power(dtype):
    z = complex_numbers(dtype, count=500)
    z = z[abs(z) > 1e-2]  # NumPy's log1p loses digits for small z
    eps = np.finfo(dtype).eps
    want = np.log1p(z.astype(np.clongdouble)).astype(dtype)
    np.testing.assert_allclose(apply_both("log_plus_one", [z]), want, rtol=20 * eps)
    small = dtype(1e-6 + 2e-6j)
    got = apply_both("log_plus_one", [np.array([small])])[0]
    np.testing.assert_allclose(got, small - small * small / 2 + small**3 / 3, rtol=4 * eps)
    tame = z[abs(z.imag) < 2]  # away from the poles at odd multiples of pi i
    want = 1 / (1 + np.exp(-tame.astype(np.clongdouble)))
    np.testing.assert_allclose(apply_both("logistic", [tame]), want.astype(dtype), rtol=20 * eps)
    exponent = np.full_like(tame, 1.5 - 0.5j)
    want = (tame.astype(np.clongdouble) ** exponent).astype(dtype)
    np.testing.assert_allclose(apply_both("power", [tame, exponent]), want, rtol=60 * eps)


def test_atan2():
    y, x = complex_numbers(np.complex128, 1, 500), complex_numbers(np.complex128, 2, 500)
    got = apply_both("atan2", [y, x])
    np.testing.assert_allclose(np.tan(got) * x, y, rtol=1e-6)
    real_y, real_x = y.real.astype(y.dtype), x.real.astype(x.dtype)
    want = np.arctan2(y.real, x.real)
    np.testing.assert_allclose(apply_both("atan2", [real_y, real_x]).real, want, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_nothing_overflows_on_the_way(dtype):
    top = float(np.finfo(dtype).max)
    huge = np.array([top / 2 + 1j * top / 2, top / 2 - 1j * top / 3], dtype)
    for name in ("abs", "sqrt", "log", "sign", "asinh"):
        assert np.isfinite(apply_both(name, [huge])).all(), name
    np.testing.assert_allclose(apply_both("divide", [huge, huge]), [1, 1], rtol=1e-6)
    tiny = huge.real.dtype.type(np.finfo(dtype).tiny) * np.array([1 + 1j, 1 - 1j], dtype)
    np.testing.assert_allclose(apply_both("divide", [tiny, tiny]), [1, 1], rtol=1e-6)
    np.testing.assert_allclose(abs(apply_both("sign", [tiny])), [1, 1], rtol=1e-6)


def test_special_values():
    inf, nan = np.inf, np.nan
    cases = [
        ("exponential", complex(-inf, nan), 0),
        ("exponential", complex(inf, 0), complex(inf, 0)),
        ("exponential", complex(0, 0), 1),
        ("log", complex(0, 0), complex(-inf, 0)),
        ("log", complex(-0.0, -0.0), complex(-inf, -np.pi)),
        ("log", complex(-1, -0.0), complex(0, -np.pi)),
        ("sqrt", complex(-4, 0.0), 2j),
        ("sqrt", complex(-4, -0.0), complex(0, -2)),
        ("sqrt", complex(1, inf), complex(inf, inf)),
        ("sqrt", complex(nan, -inf), complex(inf, -inf)),
        ("sqrt", complex(-inf, 1), complex(0, inf)),
        ("abs", complex(nan, inf), inf),
        ("tanh", complex(inf, 1), complex(1, 0)),
        ("sign", complex(0, 0), 0),
    ]
    for name, z, want in cases:
        got = apply_both(name, [np.array([z], np.complex128)])
        assert_same(got, np.array([want], got.dtype), [np.array([z])])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_infinity_by_zero(dtype):
    """An infinity of the sign of the divisor's real part times the numerator (C99, Annex G)."""
    inf = np.inf
    x = np.array([complex(1, inf), complex(inf, -2), complex(3, -inf)], dtype)
    y = np.array([0, complex(-0.0, -0.0), complex(-0.0, 0)], dtype)
    want = np.array([complex(inf, inf), complex(-inf, inf), complex(-inf, inf)], dtype)
    assert_same(apply_both("divide", [x, y]), want, [x, y])


def test_equality_maximum_and_parts():
    z = np.array([1 + 2j, 1 + 3j, 2 + 0j, 1 + 2j], np.complex64)
    w = np.array([1 + 2j, 1 + 2j, 1 + 9j, 2 + 0j], np.complex64)
    assert_same(apply_both(lambda s, a, b: s.compare(a, b, "EQ"), [z, w]), z == w)
    assert_same(apply_both(lambda s, a, b: s.compare(a, b, "NE"), [z, w]), z != w)
    assert_same(apply_both("maximum", [z, w]), np.array([1 + 2j, 1 + 3j, 2, 2], np.complex64))
    assert_same(apply_both("minimum", [z, w]), np.array([1 + 2j, 1 + 2j, 1 + 9j, 1 + 2j], z.dtype))
    assert_same(apply_both("real", [z]), z.real.copy())
    assert_same(apply_both("imag", [z]), z.imag.copy())
    assert_same(apply_both("complex", [z.real.copy(), z.imag.copy()]), z)


def test_complex_numbers_have_no_order():
    s = LlvmScalar(Builder(), host_target())
    x = s.constant(C64, 1 + 2j)
    with pytest.raises(UnimplementedError, match="compare: direction LT of c64"):
        s.compare(x, x, "LT")
