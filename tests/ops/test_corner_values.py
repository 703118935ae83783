"""Literal facts: what elementwise ops give at the corners of their types."""

from __future__ import annotations

import numpy as np
import pytest

from haloc.ir import dtype as dt
from haloc.ir.dtype import DType
from haloc.ir.shape import Shape
from tests.ops.run_op import array, run_op

BF16, F16, F32, F64, F8E4M3FN, F4E2M1FN = (
    dt.BF16, dt.F16, dt.F32, dt.F64, dt.F8E4M3FN, dt.F4E2M1FN,
)  # fmt: skip
S4, S8, S16, S32, S64 = dt.S4, dt.S8, dt.S16, dt.S32, dt.S64
U4, U8, U32, U64 = dt.U4, dt.U8, dt.U32, dt.U64
PRED, C64, C128 = dt.PRED, dt.C64, dt.C128

INF, NAN = float("inf"), float("nan")
TINY32 = float(np.finfo(np.float32).smallest_subnormal)


def check(got: np.ndarray, wanted: list[object], dtype: DType) -> None:
    """Bitwise, but for NaN: any NaN will do."""
    expected = array(wanted, dtype)
    assert got.shape == expected.shape
    if got.dtype.kind in "biu" or dtype.is_integer:
        assert (got == expected).all(), (got, expected)
        return
    parts = [(got.real, expected.real), (got.imag, expected.imag)] if dtype.is_complex else None
    for a, b in parts or [(got, expected)]:
        a, b = a.astype(np.float64), b.astype(np.float64)
        both_nan = np.isnan(a) & np.isnan(b)
        assert (both_nan | ((a == b) & (np.signbit(a) == np.signbit(b)))).all(), (got, expected)


LOW32, HIGH32 = -(2**31), 2**31 - 1
LOW64, HIGH64 = -(2**63), 2**63 - 1

BINARY = [
    # opcode, type, left, right, result
    ("add", PRED, [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 1]),
    ("multiply", PRED, [0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 1]),
    ("maximum", PRED, [0, 0, 1], [0, 1, 1], [0, 1, 1]),
    ("minimum", PRED, [0, 0, 1], [0, 1, 1], [0, 0, 1]),
    ("add", S8, [127, -128], [1, -1], [-128, 127]),
    ("add", S4, [7, -8], [1, -1], [-8, 7]),
    ("add", U4, [15], [1], [0]),
    ("subtract", U32, [0], [1], [2**32 - 1]),
    ("multiply", S4, [7, -8], [7, -1], [1, -8]),
    ("multiply", S64, [LOW64], [-1], [LOW64]),
    # x/0 has all bits set, the quotient of the least number by -1 is that number.
    ("divide", S32, [7, 0, -7, LOW32, -7, 7], [0, 0, 0, -1, 2, -2], [-1, -1, -1, LOW32, -3, -3]),
    ("divide", U8, [7, 0, 255], [0, 0, 16], [255, 255, 15]),
    ("divide", S4, [7, -8, -7], [0, -1, 2], [-1, -8, -3]),
    ("divide", S64, [LOW64, HIGH64], [-1, 0], [LOW64, -1]),
    ("remainder", S32, [7, -7, 7, -7, LOW32], [0, 0, -3, 3, -1], [7, -7, 1, -1, 0]),
    ("remainder", U64, [2**64 - 1], [0], [2**64 - 1]),
    ("divide", F32, [1, -1, 0, 1, INF], [0, 0, 0, -0.0, INF], [INF, -INF, NAN, -INF, NAN]),
    ("divide", F32, [TINY32], [2.0], [0.0]),
    ("add", F32, [TINY32], [TINY32], [2 * TINY32]),
    ("remainder", F32, [5.5, -5.5, 5.5, INF, 1, -0.0], [2, 2, -2, 2, 0, 1],
     [1.5, -1.5, 1.5, NAN, NAN, -0.0]),
    ("remainder", F32, [1, -1], [INF, -INF], [1, -1]),
    ("power", S32, [2, 2, -2, 0, 0, 1, -1, -1, 3], [10, 31, 31, 0, -1, -5, -5, -4, -1],
     [1024, LOW32, LOW32, 1, 0, 1, -1, 1, 0]),
    ("power", U64, [0, 2, 3], [64, 64, 65], [0, 0, pow(3, 65, 2**64)]),
    ("power", F32, [NAN, 1, 1, -1, -8], [0, NAN, INF, INF, 1 / 3], [1, 1, 1, 1, NAN]),
    ("power", F32, [0, -0.0, -0.0, -0.0], [-1, -1, -2, 3], [INF, -INF, INF, -0.0]),
    ("power", F32, [INF, -INF, -INF, 2, 0.5], [-1, 3, 2, -INF, -INF], [0, -INF, INF, 0, INF]),
    ("maximum", F32, [NAN, 1, -0.0, 0.0], [1, NAN, 0.0, -0.0], [NAN, NAN, 0.0, 0.0]),
    ("minimum", F32, [NAN, 1, -0.0, 0.0], [1, NAN, 0.0, -0.0], [NAN, NAN, -0.0, -0.0]),
    ("maximum", BF16, [NAN, -0.0], [1, 0.0], [NAN, 0.0]),
    ("atan2", F64, [0.0, -0.0, 0.0, INF], [-0.0, -0.0, 1, INF], [np.pi, -np.pi, 0, np.pi / 4]),
    ("shift-left", S32, [1, 1, 1, -1, 1], [31, 32, 33, 1, -1], [LOW32, 0, 0, -2, 0]),
    ("shift-right-arithmetic", S32, [-8, -8, 8, -8, 8], [1, 32, 32, -1, -1], [-4, -1, 0, -1, 0]),
    ("shift-right-logical", S32, [-1, -1, -1], [1, 31, 32], [HIGH32, 1, 0]),
    ("shift-right-arithmetic", U8, [128, 127], [1, 1], [192, 63]),
    ("shift-left", S4, [1, 1, 1], [3, 4, -1], [-8, 0, 0]),
    ("shift-right-logical", S4, [-1, -1], [1, 3], [7, 1]),
    ("shift-right-arithmetic", S64, [LOW64], [63], [-1]),
    ("mulhi", S32, [LOW32, -1, HIGH32], [LOW32, 1, 2], [2**30, -1, 0]),
    ("mulhi", U64, [2**64 - 1, 2**63], [2**64 - 1, 2], [2**64 - 2, 1]),
    ("mulhi", S64, [LOW64, -1, LOW64], [LOW64, 1, -1], [2**62, -1, 0]),
    ("mulhi", S4, [-8, 7], [-8, 7], [4, 3]),
    ("xor", PRED, [0, 1, 1], [1, 1, 0], [1, 0, 1]),
    ("add", F8E4M3FN, [448], [448], [NAN]),
    ("add", F4E2M1FN, [6, -6], [6, -6], [6, -6]),
    ("add", BF16, [256], [1], [256]),
    ("multiply", C64, [complex(INF, INF)], [complex(1, 1)], [complex(NAN, INF)]),
    ("divide", C64, [1, 1], [0, complex(INF, INF)], [complex(INF, NAN), complex(0, -0.0)]),
    ("divide", C64, [complex(1, INF), complex(INF, -2)], [0, complex(-0.0, -0.0)],
     [complex(INF, INF), complex(-INF, INF)]),
    ("maximum", C64, [1 + 2j, 2 + 0j, 1j], [1 + 3j, 1 + 9j, complex(NAN, 0)],
     [1 + 3j, 2 + 0j, complex(NAN, 0)]),
    ("power", C64, [0, 0, 2], [0, 2, 0], [1, 0, 1]),
]  # fmt: skip


@pytest.mark.parametrize(("opcode", "dtype", "x", "y", "wanted"), BINARY)
def test_binary(opcode, dtype, x, y, wanted):
    check(run_op(opcode, x, y, dtype=dtype), wanted, dtype)


UNARY = [
    ("abs", S32, [LOW32, -1], [LOW32, 1]),
    ("abs", F32, [-0.0, -INF, NAN], [0.0, INF, NAN]),
    ("negate", U8, [1, 0], [255, 0]),
    ("negate", S8, [-128], [-128]),
    ("negate", F32, [0.0, -0.0], [-0.0, 0.0]),
    ("sign", F32, [NAN, -0.0, 0.0, -INF, TINY32], [NAN, -0.0, 0.0, -1, 1]),
    ("sign", S32, [LOW32, 0, 5], [-1, 0, 1]),
    ("sign", C128, [0, 3 + 4j, -2], [0, 0.6 + 0.8j, -1]),
    ("sign", C128, [complex(15 * 2.0**1020, 8 * 2.0**1020)], [complex(15 / 17, 8 / 17)]),
    ("ceil", F32, [-0.5, 0.5, TINY32, INF, NAN], [-0.0, 1, 1, INF, NAN]),
    ("floor", F32, [-TINY32, 0.5, -0.0], [-1, 0, -0.0]),
    ("round-nearest-even", F32, [0.5, 1.5, 2.5, -0.5, -1.5], [0, 2, 2, -0.0, -2]),
    ("round-nearest-afz", F32, [0.5, 1.5, 2.5, -0.5, 0.49999997, -0.25], [1, 2, 3, -1, 0, -0.0]),
    ("round-nearest-afz", F32, [8388609.0, INF, NAN], [8388609.0, INF, NAN]),
    ("not", PRED, [0, 1], [1, 0]),
    ("not", S8, [0, 127], [-1, -128]),
    ("popcnt", S4, [-1, 7, -8], [4, 3, 1]),
    ("popcnt", U64, [2**64 - 1, 0], [64, 0]),
    ("count-leading-zeros", S32, [0, 1, -1], [32, 31, 0]),
    ("count-leading-zeros", U4, [0, 1, 8], [4, 3, 0]),
    ("exponential", F32, [-INF, INF, NAN, 0, -104, 89], [0, INF, NAN, 1, 0, INF]),
    ("exponential-minus-one", F32, [-0.0, 1e-10, -INF], [-0.0, 1e-10, -1]),
    ("log", F32, [0, -0.0, -1, INF, 1], [-INF, -INF, NAN, INF, 0]),
    ("log-plus-one", F32, [-1, -0.0, 1e-10, -2], [-INF, -0.0, 1e-10, NAN]),
    ("logistic", F32, [INF, -INF, 0, NAN, 100], [1, 0, 0.5, NAN, 1]),
    ("logistic", F64, [-745.0], [5e-324]),
    ("sqrt", F32, [-0.0, -1, 2 * TINY32, INF], [-0.0, NAN, np.sqrt(np.float32(2 * TINY32)), INF]),
    ("rsqrt", F32, [0, -0.0, INF, 4, -1], [INF, -INF, 0, 0.5, NAN]),
    ("cbrt", F32, [-8, 27, -0.0, INF], [-2, 3, -0.0, INF]),
    ("tanh", F32, [-0.0, 100, -INF], [-0.0, 1, -1]),
    ("acosh", F32, [1, 0.5, INF], [0, NAN, INF]),
    ("atanh", F32, [1, -1, 2, -0.0], [INF, -INF, NAN, -0.0]),
    ("erf", F32, [0, INF, -INF, NAN], [0, 1, -1, NAN]),
    ("sqrt", C64, [complex(-1, 0.0), complex(-1, -0.0), 0], [1j, complex(0, -1), 0]),
    ("exponential", C64, [complex(-INF, NAN), complex(0, -0.0)], [0, complex(1, -0.0)]),
    ("log", C64, [0, complex(-INF, INF)], [complex(-INF, 0), complex(INF, 3 * np.pi / 4)]),
    ("sqrt", F16, [65504], [255.875]),
    ("exponential", BF16, [1], [2.71875]),
]  # fmt: skip


@pytest.mark.parametrize(("opcode", "dtype", "x", "wanted"), UNARY)
def test_unary(opcode, dtype, x, wanted):
    check(run_op(opcode, x, dtype=dtype), wanted, dtype)


def test_is_finite():
    assert list(run_op("is-finite", [1, INF, -INF, NAN, TINY32], dtype=F32)) == [1, 0, 0, 0, 1]


def test_magnitude_of_a_complex_number_does_not_overflow():
    big = complex(3e30, 4e30)
    check(run_op("abs", [big, complex(INF, NAN)], dtype=C64), [5e30, INF], F32)


CLAMP = [
    (F32, [0, 0, 0, NAN, 5], [NAN, -1, 2, 0, 9], [1, 1, 1, 1, 1], [NAN, 0, 1, NAN, 1]),
    (S8, [0, 0, 5], [-128, 127, 0], [10, 10, 3], [0, 10, 3]),
    (PRED, [1, 0], [0, 1], [1, 0], [1, 0]),
]


@pytest.mark.parametrize(("dtype", "low", "x", "high", "wanted"), CLAMP)
def test_clamp_gives_high_where_the_bounds_cross(dtype, low, x, high, wanted):
    check(run_op("clamp", low, x, high, dtype=dtype), wanted, dtype)


def test_clamp_takes_scalar_bounds():
    check(run_op("clamp", 0, [-5, 3, 50], 9, dtype=S32), [0, 3, 9], S32)


def test_select_takes_a_scalar_pred():
    result = run_op("select", np.array(True), [1, 2], [3, 4], dtype=S32)
    check(result, [1, 2], S32)


# --- conversions -------------------------------------------------------------------------------

CONVERT = [
    # Floats saturate, NaN gives 0.
    (F32, [NAN, INF, -INF, 1e10, -1e10, -1.9, 1.9], S32, [0, HIGH32, LOW32, HIGH32, LOW32, -1, 1]),
    (F32, [NAN, INF, -1.5, 300, 255.9], U8, [0, 255, 0, 255, 255]),
    (F64, [2.0**63, -(2.0**63), 1e300], S64, [HIGH64, LOW64, HIGH64]),
    (F64, [2.0**64, 2.0**63, -1], U64, [2**64 - 1, 2**63, 0]),
    (F32, [NAN, 100, -100, 7.9], S4, [0, 7, -8, 7]),
    (BF16, [300, -1], U8, [255, 0]),
    # Integers wrap.
    (S32, [300, -1, LOW32], S8, [44, -1, 0]),
    (S32, [-1, 17], U4, [15, 1]),
    (U8, [255], S8, [-1]),
    (S64, [-1], U64, [2**64 - 1]),
    # To pred: anything but 0.
    (F32, [0, -0.0, NAN, TINY32, 0.5], PRED, [0, 0, 1, 1, 1]),
    (S32, [256, 0], PRED, [1, 0]),
    (PRED, [0, 1], F32, [0, 1]),
    (PRED, [0, 1], C64, [0, 1]),
    # Complex to real: the real part.
    (C64, [1.5 + 2j, complex(NAN, 1)], F32, [1.5, NAN]),
    (C64, [-2.5 + 1j], S32, [-2]),
    # Rounding once, to nearest even.
    (F64, [1 + 2.0**-8 + 2.0**-30], BF16, [1 + 2.0**-7]),
    (F64, [1 + 2.0**-24 + 2.0**-52], F32, [1 + 2.0**-23]),
    (F64, [1 + 2.0**-11 + 2.0**-50], F16, [1 + 2.0**-10]),
    (F32, [65519, 65520], F16, [65504, INF]),
    (F32, [464, 480, INF], F8E4M3FN, [448, NAN, NAN]),
    (F32, [100, -100, NAN], F4E2M1FN, [6, -6, -0.0]),
    (S64, [2**53 + 1, 2**24 + 1], F32, [2.0**53, 2.0**24]),
    (S64, [2**62 + 2**54 + 1], BF16, [2.0**62 + 2.0**55]),
    (S16, [-32768], F16, [-32768]),
]


@pytest.mark.parametrize(("source", "x", "target", "wanted"), CONVERT)
def test_convert(source, x, target, wanted):
    result = run_op("convert", x, dtype=source, result=Shape(target, (len(x),)))
    check(result, wanted, target)


def test_reduce_precision():
    def reduce(values: list[float], exponent_bits: int, mantissa_bits: int) -> np.ndarray:
        widths = {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits}
        return run_op("reduce-precision", values, dtype=F32, **widths)

    check(reduce([1e5, 65519, 65520, 6e-8, -6e-8, NAN, INF], 5, 10),
          [INF, 65504, INF, 0, -0.0, NAN, INF], F32)  # fmt: skip
    check(reduce([1 + 2.0**-8, 1 + 3 * 2.0**-8], 8, 7), [1, 1 + 2.0**-6], F32)
    check(reduce([TINY32, 0.1], 8, 23), [TINY32, 0.1], F32)


def test_total_order():
    values = array([NAN, INF, 1, 0.0, -0.0, -1, -INF, NAN], F32)
    values[-1] = -values[-1]
    falling = {"direction": "GT", "type": "TOTALORDER"}
    assert run_op("compare", values[:-1], values[1:], dtype=F32, **falling).all()
    same = {"direction": "EQ", "type": "TOTALORDER"}
    assert run_op("compare", values, values, dtype=F32, **same).all()


def test_partial_order():
    x, y = [NAN, 0.0, 1], [NAN, -0.0, NAN]
    for direction, wanted in {"EQ": [0, 1, 0], "NE": [1, 0, 1], "GE": [0, 1, 0]}.items():
        assert list(run_op("compare", x, y, dtype=F32, direction=direction)) == wanted


def test_stochastic_convert():
    x = array([0.25, 0.25, -0.25, 3.0, NAN, 1e10, -1e10, 127.5], F32)
    random = array([2**30 - 1, 2**30, 0, 0, 0, 0, 0, 0], U32)
    result = run_op("stochastic-convert", x, random, dtype=F32, result=Shape(S8, (8,)))
    check(result, [1, 0, -1, 3, 0, 127, -128, 127], S8)


def test_bitcast_convert_between_widths():
    bytes_of = run_op("bitcast-convert", [0x01020304], dtype=U32, result=Shape(U8, (1, 4)))
    assert bytes_of.tolist() == [[4, 3, 2, 1]]
    assert run_op("bitcast-convert", bytes_of, dtype=U8, result=Shape(U32, (1,))) == [0x01020304]
    nibbles = run_op("bitcast-convert", [0x21], dtype=U8, result=Shape(U4, (1, 2)))
    assert nibbles.astype(int).tolist() == [[1, 2]]
    assert run_op("bitcast-convert", [1.0], dtype=F32, result=Shape(S32, (1,))) == [0x3F800000]
    signed = run_op("bitcast-convert", array([[15, 7]], U4), dtype=U4, result=Shape(S8, (1,)))
    assert signed == [0x7F]
