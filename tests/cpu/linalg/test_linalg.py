"""LAPACK kernels against the op rows' NumPy/SciPy meaning, and the algebra they stand for."""

from __future__ import annotations

import sys
from math import prod

import numpy as np
import pytest

import haloc.ops  # noqa: F401  (fills the table)
from haloc.codegen.kernel import KERNELS
from haloc.codegen.target import host_target
from haloc.cpu.custom_call import kernel as _custom_call  # noqa: F401
from haloc.cpu.linalg import lapack
from haloc.cpu.linalg.kernels import FFI_TARGETS
from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.ir.dtype import BF16, dtype_from_numpy
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.table import OPS
from tests.cpu.kernel_runner import run_kernel

TYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
RNG = np.random.default_rng(0)
# LAPACK on the same numbers by the same routine: differences come from blocking by thread only.
TOLERANCE = {np.float32: 2e-5, np.complex64: 2e-5, np.float64: 1e-12, np.complex128: 1e-12}


def shape_of(array):
    return Shape(dtype_from_numpy(array.dtype), array.shape)


def run(opcode, arrays, result, backend_config="", **attrs):
    """(kernel's result leaves, evaluated result leaves)."""
    operands = [HloInstruction("parameter", shape_of(a)) for a in arrays]
    instruction = HloInstruction(opcode, result, operands, attrs)
    instruction.backend_config = backend_config
    kernel = KERNELS[opcode](instruction, host_target())
    native = run_kernel(kernel, arrays, result.leaves(), pieces=2)
    # The interpreter has no gesvd: its results are compared with gesdd's.
    target = attrs.get("custom_call_target", "").replace("gesvd", "gesdd")
    instruction.attrs["custom_call_target"] = target
    expected = OPS[opcode].evaluate(instruction, arrays, None)
    return native, expected if isinstance(expected, tuple) else (expected,)


def ffi(target, arrays, results, config=""):
    leaves = [Shape(dtype_from_numpy(d), dims) for d, dims in results]
    result = leaves[0] if len(leaves) == 1 else tuple_shape(*leaves)
    return run("custom-call", arrays, result, config, custom_call_target=f"lapack_{target}_ffi")


def assert_close(native, expected, dtype, only=None):
    for number, (x, y) in enumerate(zip(native, expected, strict=True)):
        if only is None or number in only:
            scale = max(1.0, float(np.abs(y).max(initial=0)))
            np.testing.assert_allclose(x, y, atol=scale * TOLERANCE[dtype], err_msg=str(number))


def random(dtype, *dims):
    x = RNG.standard_normal(dims)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.standard_normal(dims)
    return x.astype(dtype)


def positive(dtype, *dims):
    a = random(dtype, *dims)
    return a @ np.conj(a.swapaxes(-1, -2)) + dims[-1] * np.eye(dims[-1], dtype=dtype)


def real(dtype):
    return np.empty(0, dtype).real.dtype.type


def name(letter, for_real, for_complex):
    return letter + (for_real if letter in "sd" else for_complex)


S32 = np.int32
LETTERS = pytest.mark.parametrize("letter", "sdcz")


@LETTERS
@pytest.mark.parametrize("uplo", "LU")
def test_potrf(letter, uplo):
    t = TYPES[letter]
    a = positive(t, 3, 5, 5)
    a[1] = -a[1]
    native, expected = ffi(
        f"{letter}potrf", [a], [(t, a.shape), (S32, (3,))], f"{{uplo = {ord(uplo)} : ui8}}"
    )
    assert_close([x[::2] for x in native], [x[::2] for x in expected], t)
    assert native[1][1] == expected[1][1] == 1
    part = np.tril if uplo == "L" else np.triu
    f = part(native[0][0])
    product = f @ f.conj().T if uplo == "L" else f.conj().T @ f
    np.testing.assert_allclose(product, a[0], rtol=1e-4)


@LETTERS
@pytest.mark.parametrize("m,n", [(4, 3), (3, 4), (1, 1), (40, 40)])
def test_geqrf_and_geqp3(letter, m, n):
    t, k = TYPES[letter], min(m, n)
    a = random(t, 2, m, n)
    native, expected = ffi(f"{letter}geqrf", [a], [(t, a.shape), (t, (2, k))])
    assert_close(native, expected, t)
    pivots = np.zeros((2, n), S32)
    results = [(t, a.shape), (S32, (2, n)), (t, (2, k))]
    native, expected = ffi(f"{letter}geqp3", [a, pivots], results)
    assert_close(native, expected, t)


@LETTERS
def test_orgqr_makes_orthonormal_columns(letter):
    t = TYPES[letter]
    a = random(t, 2, 6, 4)
    (qr, tau), _ = ffi(f"{letter}geqrf", [a], [(t, a.shape), (t, (2, 4))])
    (q,), expected = ffi(name(letter, "orgqr", "ungqr"), [qr, tau], [(t, a.shape)])
    assert_close([q], expected, t)
    np.testing.assert_allclose(q @ np.triu(qr[:, :4]), a, atol=1e-5)


@LETTERS
@pytest.mark.parametrize("m,n", [(4, 3), (3, 4), (5, 5), (1, 3)])
@pytest.mark.parametrize("mode,thin", [("A", False), ("S", True), ("N", False), ("N", True)])
@pytest.mark.parametrize("routine", ["gesdd", "gesvd"])
def test_singular_values(letter, m, n, mode, thin, routine):
    t, k = TYPES[letter], min(m, n)
    u, v = (k, k) if thin else (m, n)
    a = random(t, 2, m, n)
    dims = [(t, (2, m, n)), (real(t), (2, k)), (t, (2, m, u)), (t, (2, v, n)), (S32, (2,))]
    config = f"{{mode = {ord(mode)} : ui8}}"
    (_, s, left, right, info), expected = ffi(letter + routine, [a], dims, config)
    assert not info.any()
    assert_close([s], [expected[1]], t)
    if mode == "N":
        assert not left.any() and not right.any()
    else:
        product = left[..., :k] * s[:, None, :] @ right[:, :k]
        np.testing.assert_allclose(product, a, atol=1e-5)


def test_singular_values_of_nan():
    a = random(np.float32, 2, 3, 3)
    a[1, 0, 2] = np.nan
    t = np.float32
    dims = [(t, (2, 3, 3)), (t, (2, 3)), (t, (2, 3, 3)), (t, (2, 3, 3)), (S32, (2,))]
    (_, s, _, _, info), _ = ffi("sgesdd", [a], dims, "{mode = 65 : ui8}")
    np.testing.assert_array_equal(info, [0, -4])
    assert np.isfinite(s[0]).all() and np.isnan(s[1]).all()


@LETTERS
@pytest.mark.parametrize("mode", "VN")
@pytest.mark.parametrize("uplo", "LU")
def test_syevd(letter, mode, uplo):
    t = TYPES[letter]
    a = positive(t, 2, 6, 6)
    dims = [(t, a.shape), (real(t), (2, 6)), (S32, (2,))]
    config = f"{{mode = {ord(mode)} : ui8, uplo = {ord(uplo)} : ui8}}"
    (v, w, info), expected = ffi(name(letter, "syevd", "heevd"), [a], dims, config)
    assert_close([w, info], expected[1:], t)
    if mode == "V":
        np.testing.assert_allclose(a @ v, v * w[:, None], atol=1e-3)


@LETTERS
@pytest.mark.parametrize("left", "VN")
@pytest.mark.parametrize("right", "VN")
def test_geev(letter, left, right):
    t = TYPES[letter]
    c = np.result_type(t, np.complex64).type
    a = random(t, 3, 5, 5)
    a[1, 2, 2] = np.inf
    values = [(t, (3, 5))] * (1 if letter in "cz" else 2)
    dims = [*values, (c, a.shape), (c, a.shape), (S32, (3,))]
    config = f"{{compute_left = {ord(left)} : ui8, compute_right = {ord(right)} : ui8}}"
    native, expected = ffi(f"{letter}geev", [a], dims, config)
    # SciPy's LAPACK evaluates the same; the non-finite matrix gives NaN and info -4.
    assert native[-1].tolist() == [0, -4, 0]
    assert np.isnan(native[0][1]).all()
    assert_close([x[::2] for x in native], [x[::2] for x in expected], t)
    if right == "V":
        w = native[0] if letter in "cz" else native[0] + 1j * native[1]
        v = native[-2]
        np.testing.assert_allclose(a[0] @ v[0], v[0] * w[0], atol=1e-4)


def test_geev_of_one_by_one_leaves_its_operand():
    a = np.array([[3.0]])
    dims = [(np.float64, (1,))] * 2 + [(np.complex128, (1, 1))] * 2 + [(S32, ())]
    native, expected = ffi("dgeev", [a], dims, "{compute_left = 78, compute_right = 86}")
    assert_close(native, expected, np.float64)


@LETTERS
@pytest.mark.parametrize("m,n", [(4, 3), (3, 4), (30, 30)])
def test_getrf(letter, m, n):
    t, k = TYPES[letter], min(m, n)
    a = random(t, 2, m, n)
    native, expected = ffi(f"{letter}getrf", [a], [(t, a.shape), (S32, (2, k)), (S32, (2,))])
    assert_close(native, expected, t)


@LETTERS
@pytest.mark.parametrize("mode", "VN")
def test_gees(letter, mode):
    t = TYPES[letter]
    a = random(t, 2, 4, 4)
    values = [(t, (2, 4))] * (1 if letter in "cz" else 2)
    dims = [(t, a.shape), (t, a.shape), *values, (S32, (2,)), (S32, (2,))]
    config = f"{{mode = {ord(mode)} : ui8, sort = 78 : ui8}}"
    native, expected = ffi(f"{letter}gees", [a], dims, config)
    assert_close(native, expected, t)


@LETTERS
def test_gehrd(letter):
    t = TYPES[letter]
    a = random(t, 2, 5, 5)
    dims = [(t, a.shape), (t, (2, 4)), (S32, (2,))]
    native, expected = ffi(f"{letter}gehrd", [a], dims, "{high = 5 : i32, low = 1 : i32}")
    assert_close(native, expected, t)


@LETTERS
@pytest.mark.parametrize("uplo", "LU")
def test_sytrd(letter, uplo):
    t = TYPES[letter]
    a = positive(t, 2, 5, 5)
    dims = [(t, a.shape), (real(t), (2, 5)), (real(t), (2, 4)), (t, (2, 4)), (S32, (2,))]
    config = f"{{uplo = {ord(uplo)} : ui8}}"
    native, expected = ffi(name(letter, "sytrd", "hetrd"), [a], dims, config)
    assert_close(native, expected, t, only={1, 2, 3, 4})


@LETTERS
def test_gtsv(letter):
    t = TYPES[letter]
    dl, d, du = random(t, 2, 6), random(t, 2, 6) + 5, random(t, 2, 6)
    b = random(t, 2, 6, 3)
    dims = [(t, (2, 6))] * 3 + [(t, b.shape), (S32, (2,))]
    native, expected = ffi(f"{letter}gtsv", [dl, d, du, b], dims)
    assert_close(native, expected, t, only={3, 4})


TRIANGULAR = [
    (left, lower, unit, trans) for left in (0, 1) for lower in (0, 1) for unit in (0, 1)
    for trans in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
]  # fmt: skip


@LETTERS
@pytest.mark.parametrize("left,lower,unit,trans", TRIANGULAR)
def test_triangular_solve_and_trsm(letter, left, lower, unit, trans):
    t = TYPES[letter]
    a = random(t, 2, 4, 4) * t(0.3) + 2 * np.eye(4, dtype=t)
    b = random(t, 2, *((4, 3) if left else (3, 4)))
    attrs = {"left_side": bool(left), "lower": bool(lower), "unit_diagonal": bool(unit)}
    native, expected = run("triangular-solve", [a, b], shape_of(b), transpose_a=trans, **attrs)
    assert_close(native, expected, t)
    config = (
        f"{{diag = {ord('NU'[unit])} : ui8, side = {ord('RL'[left])} : ui8, "
        f"trans_x = {ord({'N': 'N', 'T': 'T', 'A': 'C'}[trans[0]])} : ui8, "
        f"uplo = {ord('UL'[lower])} : ui8}}"
    )
    native, expected = ffi(f"{letter}trsm", [a, b], [(t, b.shape)], config)
    assert_close(native, expected, t)


@LETTERS
@pytest.mark.parametrize("lower", [False, True])
def test_cholesky(letter, lower):
    t = TYPES[letter]
    a = positive(t, 3, 2, 4, 4)
    a[0, 1] = -a[0, 1]
    native, expected = run("cholesky", [a], shape_of(a), lower=lower)
    assert_close(native, expected, t)


@pytest.mark.parametrize("dims", [(0, 3, 3), (2, 0, 0), (0, 0)])
def test_nothing_to_do(dims):
    a = np.ones(dims, np.float32)
    (factor,), _ = run("cholesky", [a], shape_of(a), lower=True)
    assert factor.shape == dims
    results = [(np.float32, dims), (S32, dims[:-2])]
    (_, info), _ = ffi("spotrf", [a], results, "{uplo = 76 : ui8}")
    assert info.size == prod(dims[:-2]) and not info.any()


def test_empty_vectors_beside_matrices_with_elements():
    t, a = np.float64, np.array([[[3.0]], [[4.0]]])
    dims = [(t, (2, 1, 1)), (t, (2, 0)), (S32, (2,))]
    (h, *_), _ = ffi("dgehrd", [a], dims, "{high = 1, low = 1}")
    np.testing.assert_array_equal(h, a)
    dims = [(t, (2, 1, 1)), (t, (2, 1)), (t, (2, 0)), (t, (2, 0)), (S32, (2,))]
    (_, d, *_), _ = ffi("dsytrd", [a], dims, "{uplo = 76}")
    np.testing.assert_array_equal(d, a[..., 0])
    (q,), _ = ffi("dorgqr", [np.ones((3, 2)), np.ones(0)], [(t, (3, 2))])
    np.testing.assert_array_equal(q, np.eye(3, 2))


def test_every_registered_routine_exists():
    for letter, routine in FFI_TARGETS.values():
        assert lapack.address(letter + routine)


F4 = np.float32
WRONG = [
    ("spotrf", [(F4, (4, 4))], [(F4, (4, 4)), (S32, ())], "", "attribute uplo is None, wanted the"),
    ("spotrf", [(F4, (4, 3))], [(F4, (4, 3)), (S32, ())], "{uplo = 76}", "are not square"),
    ("spotrf", [(F4, (4, 4))], [(F4, (2, 2)), (S32, ())], "{uplo = 76}", "result 0 must be"),
    ("spotrf", [(F4, (4, 4))], [(F4, (4, 4))], "{uplo = 76}", r"result 1 must be s32\[\]"),
    ("dpotrf", [(F4, (4, 4))], [(F4, (4, 4)), (S32, ())], "{uplo = 76}", "element type f32"),
    ("spotrf", [(F4, (4,))], [(F4, (4,)), (S32, ())], "{uplo = 76}", "fewer than 2 dimensions"),
    ("spotrf", [], [(F4, (4, 4)), (S32, ())], "{uplo = 76}", "no operands"),
    ("spotrf", [(F4, (2, 3, 3))], [(F4, (2, 3, 3)), (S32, (3,))], "{uplo = 76}", "result 1 must"),
    ("sgeqrf", [(F4, (4, 3))], [(F4, (4, 3)), (F4, (2,))], "", r"result 1 must be f32\[3\]"),
    ("sorgqr", [(F4, (3, 4)), (F4, (3,))], [(F4, (3, 4))], "", "4 columns <= 3 rows"),
    ("sorgqr", [(F4, (4, 3))], [(F4, (4, 3))], "", "operand 1 must have 1 dimensions"),
    ("sgehrd", [(F4, (3, 3))], [(F4, (3, 3)), (F4, (2,)), (S32, ())], "{low=0, high=9}", "low=0"),
    (
        *("strsm", [(F4, (3, 3)), (F4, (4, 2))], [(F4, (4, 2))]),
        *("{side = 76, uplo = 76, diag = 78, trans_x = 78}", "do not match side L"),
    ),
    (
        *("sgesdd", [(F4, (4, 3))]),
        [(F4, (4, 3)), (F4, (3,)), (F4, (4, 3)), (F4, (3, 3)), (S32, ())],
        *("{mode = 65}", r"result 2 must be f32\[4,4\]"),
    ),
    (
        *("sgeev", [(F4, (3, 3))]),
        [(F4, (3,)), (F4, (3,)), (np.complex64, (3, 3)), (np.complex64, (3, 2)), (S32, ())],
        *("{compute_left = 78, compute_right = 86}", r"result 3 must be c64\[3,3\]"),
    ),
]  # fmt: skip


@pytest.mark.parametrize("target,operands,results,config,message", WRONG)
def test_wrong_calls_are_refused(target, operands, results, config, message):
    shapes = [Shape(dtype_from_numpy(d), dims) for d, dims in operands]
    result = tuple_shape(*(Shape(dtype_from_numpy(d), dims) for d, dims in results))
    instruction = HloInstruction(
        "custom-call",
        result,
        [HloInstruction("parameter", s) for s in shapes],
        {"custom_call_target": f"lapack_{target}_ffi"},
    )
    instruction.backend_config = config
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        KERNELS["custom-call"](instruction, host_target())
    assert f"custom-call to lapack_{target}_ffi from (" in str(caught.value)


def test_other_element_types_are_refused():
    shape = Shape(BF16, (2, 2))
    instruction = HloInstruction("cholesky", shape, [HloInstruction("parameter", shape)], {})
    with pytest.raises(
        UnimplementedError,
        match="cholesky: element type bf16 on cpu; supported: f32, f64, c64, c128",
    ):
        KERNELS["cholesky"](instruction, host_target())


def test_without_scipy_the_error_says_what_to_install(monkeypatch):
    lapack._capsules.cache_clear()
    lapack.address.cache_clear()
    monkeypatch.setitem(sys.modules, "scipy.linalg.cython_lapack", None)
    with pytest.raises(UnimplementedError, match=r"pip install haloc\[linalg\]"):
        lapack.address("dpotrf")
