"""fft against NumPy in double precision."""

from __future__ import annotations

import numpy as np
import pytest

import haloc.ops  # noqa: F401  (fills the table)
from haloc.codegen.kernel import KERNELS
from haloc.codegen.target import host_target
from haloc.cpu.fft import kernel as _kernel  # noqa: F401
from haloc.cpu.fft.plan import factor, roots, smooth_above, stages
from haloc.ir.dtype import dtype_from_numpy
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from tests.cpu.kernel_runner import run_kernel

KINDS = ["FFT", "IFFT", "RFFT", "IRFFT"]


def fft(kind, x, length, pieces=2):
    """(the kernel's result, NumPy's in double precision)."""
    axes = tuple(range(x.ndim - len(length), x.ndim))
    if kind == "IRFFT":
        expected = np.fft.irfftn(x.astype(np.complex128), length, axes)
    else:
        function = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn}[kind]
        expected = function(x.astype(np.float64 if kind == "RFFT" else np.complex128), axes=axes)
    real = dtype_from_numpy(x.real.dtype)
    complex_dtype = {"f32": np.complex64, "f64": np.complex128}[real.name]
    dtype = real if kind == "IRFFT" else dtype_from_numpy(complex_dtype)
    shape = Shape(dtype, expected.shape)
    operand = HloInstruction("parameter", Shape(dtype_from_numpy(x.dtype), x.shape))
    attrs = {"fft_type": kind, "fft_length": tuple(length)}
    kernel = KERNELS["fft"](HloInstruction("fft", shape, [operand], attrs), host_target())
    (result,) = run_kernel(kernel, [x], [shape], pieces=pieces)
    return result, expected


def data(kind, bits, batch, length):
    rng = np.random.default_rng(len(batch) + sum(length))
    dims = (*batch, *length[:-1], length[-1] // 2 + 1 if kind == "IRFFT" else length[-1])
    x = rng.standard_normal(dims)
    if kind != "RFFT":
        x = x + 1j * rng.standard_normal(dims)
    return x.astype(
        {(0, 32): "f4", (0, 64): "f8", (1, 32): "c8", (1, 64): "c16"}[(int(kind != "RFFT"), bits)]
    )


def assert_accurate(result, expected, bits, ulps=4.0):
    """Root mean square error at most `ulps` units in the last place of the root mean square."""
    eps = {32: 2.0**-23, 64: 2.0**-52}[bits]
    assert result.shape == expected.shape
    if not expected.size:
        return
    scale = np.sqrt(np.mean(np.abs(expected) ** 2))
    error = np.abs(result - expected)
    assert np.sqrt(np.mean(error**2)) <= ulps * eps * scale
    assert error.max() <= 12 * ulps * eps * scale


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "n", [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 30, 31, 37, 60, 64, 97, 100, 128, 338, 1000]
)
def test_lengths(kind, n, bits):
    result, expected = fft(kind, data(kind, bits, (3,), (n,)), (n,))
    # Bluestein's convolution costs some accuracy.
    assert_accurate(result, expected, bits, 4.0 if factor(n) else 16.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lines", [1, 2, 7, 16, 37])
@pytest.mark.parametrize("n", [12, 96])
def test_numbers_of_lines(kind, lines, n):
    for bits in (32, 64):
        result, expected = fft(kind, data(kind, bits, (lines,), (n,)), (n,), pieces=4)
        assert_accurate(result, expected, bits)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "batch,length",
    [((), (8,)), ((2, 3), (4, 5)), ((), (6, 7, 8)), ((3,), (1, 1)), ((2,), (17, 1)), ((), (64, 80)),
     ((2,), (3, 1, 4))],
)  # fmt: skip
def test_several_dimensions(kind, batch, length, bits):
    result, expected = fft(kind, data(kind, bits, batch, length), length)
    assert_accurate(result, expected, bits)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [4096, 10000, 1 << 16, 3 * 5 * 7 * 11 * 13, 4099])
def test_long_lines(kind, n):
    for bits in (32, 64):
        result, expected = fft(kind, data(kind, bits, (), (n,)), (n,), pieces=3)
        assert_accurate(result, expected, bits, 5.0 if factor(n) else 16.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch,length", [((0,), (4,)), ((3,), (0,)), ((0,), (3, 4))])
def test_nothing(kind, batch, length):
    x = data(kind, 32, batch, length)
    if kind == "IRFFT" and length == (0,):
        x = x[..., :0]
    operand = HloInstruction("parameter", Shape(dtype_from_numpy(x.dtype), x.shape))
    dims = (
        *batch,
        *length[:-1],
        length[-1] // 2 + 1 if kind == "RFFT" and length[-1] else length[-1],
    )
    dtype = dtype_from_numpy(np.float32 if kind == "IRFFT" else np.complex64)
    shape = Shape(dtype, dims)
    attrs = {"fft_type": kind, "fft_length": length}
    kernel = KERNELS["fft"](HloInstruction("fft", shape, [operand], attrs), host_target())
    (result,) = run_kernel(kernel, [x], [shape])
    assert result.size == 0


def test_nan_stays_in_its_line():
    x = data("FFT", 32, (5,), (12,))
    x[2, 3] = np.nan
    result, expected = fft("FFT", x, (12,))
    assert np.isnan(result[2]).all()
    assert_accurate(np.delete(result, 2, 0), np.delete(expected, 2, 0), 32)


def test_the_order_of_work_does_not_change_the_result():
    x = data("FFT", 32, (), (1 << 14,))
    one, _ = fft("FFT", x, (1 << 14,), pieces=1)
    many, _ = fft("FFT", x, (1 << 14,), pieces=9)
    assert one.tobytes() == many.tobytes()


@pytest.mark.parametrize("n", [1, 8, 360, 2 * 3 * 31])
def test_stages_multiply_to_the_length(n):
    product = 1
    for stage in stages(n):
        assert stage.outer == product
        product *= stage.radix
        assert stage.inner * product == n
    assert product == n


def test_smooth_lengths():
    assert factor(37) is None
    assert [smooth_above(n) for n in (1, 2, 7, 11, 31, 73, 121, 1021)] == [
        *(1, 2, 8, 12, 32, 75, 125, 1024)
    ]


def test_roots_are_exact_at_quarter_turns():
    np.testing.assert_array_equal(roots(-1, np.arange(4), 4), [1, -1j, -1, 1j])
    np.testing.assert_array_equal(roots(1, np.arange(0, 1000, 250), 1000), [1, 1j, -1, -1j])
