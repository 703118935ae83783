"""cholesky, triangular-solve, fft against jaxlib."""

import numpy as np
import pytest

from tests.ops_structured.against_jaxlib import check, module

RTOL = {"f32": 1e-5, "f64": 1e-12, "c64": 1e-5, "c128": 1e-12}
NUMPY = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}


def normal(dtype: str, *dims: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(dims)
    if dtype.startswith("c"):
        x = x + 1j * rng.standard_normal(dims)
    return x.astype(NUMPY[dtype])


@pytest.mark.parametrize("dtype", RTOL)
@pytest.mark.parametrize("lower", ["true", "false"])
def test_cholesky(dtype, lower):
    text = module(
        f"""  a = {dtype}[2,4,4] parameter(0)
  ROOT c = {dtype}[2,4,4] cholesky(a), lower={lower}"""
    )
    x = normal(dtype, 2, 4, 4)
    a = x @ x.swapaxes(-1, -2).conj() + np.eye(4, dtype=NUMPY[dtype])
    junk = np.triu(np.full((4, 4), 9), 1) if lower == "true" else np.tril(np.full((4, 4), 9), -1)
    check(text, [(a + junk).astype(NUMPY[dtype])], rtol=RTOL[dtype])


@pytest.mark.parametrize("lower", ["true", "false"])
def test_cholesky_of_what_is_not_positive_definite_is_nan(lower):
    text = module(
        f"""  a = f32[2,3,3] parameter(0)
  ROOT c = f32[2,3,3] cholesky(a), lower={lower}"""
    )
    a = np.stack([np.eye(3), -np.eye(3)]).astype(np.float32)
    (given,) = check(text, [a])
    assert np.isnan(given[1]).all() and not np.isnan(given[0]).any()


@pytest.mark.parametrize("dtype", RTOL)
@pytest.mark.parametrize("left", ["true", "false"])
@pytest.mark.parametrize("lower", ["true", "false"])
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
def test_triangular_solve(dtype, left, lower, transpose):
    b = "2,3,2" if left == "true" else "2,2,3"
    text = module(
        f"""  a = {dtype}[2,3,3] parameter(0)
  b = {dtype}[{b}] parameter(1)
  ROOT x = {dtype}[{b}] triangular-solve(a, b), left_side={left}, lower={lower}, \
transpose_a={transpose}"""
    )
    a = normal(dtype, 2, 3, 3) + 3 * np.eye(3, dtype=NUMPY[dtype])
    check(text, [a, normal(dtype, *map(int, b.split(",")), seed=1)], rtol=RTOL[dtype])


def test_triangular_solve_with_a_unit_diagonal_reads_no_diagonal():
    text = module(
        """  a = f32[3,3] parameter(0)
  b = f32[3,2] parameter(1)
  ROOT x = f32[3,2] triangular-solve(a, b), left_side=true, lower=true, unit_diagonal=true, \
transpose_a=NO_TRANSPOSE"""
    )
    a = normal("f32", 3, 3)
    a[np.arange(3), np.arange(3)] = np.nan
    check(text, [a, normal("f32", 3, 2)], rtol=1e-5)


@pytest.mark.parametrize("dims", ["8", "3,7", "2,4,6", "2,3,4,5", "1", "2,9"])
@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
@pytest.mark.parametrize("real", ["f32", "f64"])
def test_fft(dims, kind, real):
    sizes = [int(d) for d in dims.split(",")]
    length = sizes[-3:] if len(sizes) > 2 else sizes[-1:]
    half = ",".join(map(str, [*sizes[:-1], sizes[-1] // 2 + 1]))
    complex_ = {"f32": "c64", "f64": "c128"}[real]
    given = {"RFFT": f"{real}[{dims}]", "IRFFT": f"{complex_}[{half}]"}
    result = {"RFFT": f"{complex_}[{half}]", "IRFFT": f"{real}[{dims}]"}
    text = module(
        f"""  p = {given.get(kind, f"{complex_}[{dims}]")} parameter(0)
  ROOT r = {result.get(kind, f"{complex_}[{dims}]")} fft(p), fft_type={kind}, \
fft_length={{{",".join(map(str, length))}}}"""
    )
    check(text, rtol={"f32": 1e-5, "f64": 1e-13}[real])
