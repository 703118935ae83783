"""The custom calls JAX makes for linear algebra on CPUs: LAPACK routines on batches of matrices.

Outputs stand in the order of the custom call's result tuple; `info` is LAPACK's, last. Attributes
of backend_config are LAPACK's character arguments as numbers (76 is "L").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from haloc.errors import UnimplementedError
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ops.custom_call import CUSTOM_CALLS

Matrices = list[np.ndarray]
Routine = Callable[[Any, Matrices, dict[str, Any]], tuple[Any, ...]]
"""(lapack, operand matrices, attributes) -> outputs for one batch element"""

REAL, COMPLEX = "sd", "cz"


class _Lapack:
    """LAPACK routines of one element type, by name without type letter: `lapack("potrf", a)`."""

    def __init__(self, letter: str):
        self.letter = letter

    def __call__(self, name: str, *arguments: Any, **options: Any) -> Any:
        return getattr(_scipy_lapack(), self.letter + name)(*arguments, **options)

    @property
    def is_complex(self) -> bool:
        return self.letter in COMPLEX


def _scipy_lapack() -> Any:
    # Imported on first use: scipy is optional, and importing it costs more than all of haloc.
    try:
        from scipy.linalg import lapack  # noqa: PLC0415
    except ImportError:
        raise UnimplementedError(
            "custom-call: LAPACK routines need scipy; install haloc[linalg]"
        ) from None
    return lapack


def _register(names: dict[str, str], core_ranks: tuple[int, ...]) -> Callable[[Routine], Routine]:
    """Register a routine; names maps type letters to LAPACK names ("sd" -> "orgqr").

    core_ranks: the rank of each operand in one batch element.
    """

    def add(routine: Routine) -> Routine:
        for letters, name in names.items():
            for letter in letters:
                target = f"lapack_{letter}{name}_ffi"
                assert target not in CUSTOM_CALLS, target
                CUSTOM_CALLS[target] = _batched(routine, _Lapack(letter), core_ranks)
        return routine

    return add


def _batched(
    routine: Routine, lapack: _Lapack, core_ranks: tuple[int, ...]
) -> Callable[[HloInstruction, list[Value], dict[str, Any]], Value]:
    def run(
        instruction: HloInstruction, operands: list[Value], attributes: dict[str, Any]
    ) -> Value:
        arrays = [np.asarray(o) for o in operands]
        batch = arrays[0].shape[: arrays[0].ndim - core_ranks[0]]
        shapes = instruction.shape.leaves()
        outputs = [np.zeros(s.dims, s.dtype.numpy) for s in shapes]
        for index in np.ndindex(*batch):
            matrices = [a[index] for a in arrays]
            for output, part in zip(outputs, routine(lapack, matrices, attributes)):
                output[index] = part
        return tuple(outputs) if instruction.shape.is_tuple else outputs[0]

    return run


def _is(attributes: dict[str, Any], name: str, letter: str) -> bool:
    return int(attributes[name]) == ord(letter)


def _nothing(a: np.ndarray) -> bool:
    """LAPACK is not called on empty matrices."""
    return a.size == 0


@_register({REAL + COMPLEX: "potrf"}, (2,))
def _potrf(lapack: _Lapack, matrices: Matrices, attributes: dict[str, Any]) -> tuple[Any, ...]:
    """Cholesky: (factor in one triangle, the other as given; info)."""
    (a,) = matrices
    if _nothing(a):
        return a, 0
    return lapack("potrf", a, lower=_is(attributes, "uplo", "L"), clean=False)


@_register({REAL + COMPLEX: "geqrf"}, (2,))
def _geqrf(lapack: _Lapack, matrices: Matrices, attributes: dict[str, Any]) -> tuple[Any, ...]:
    """QR: (R above the diagonal, reflectors below; tau)."""
    (a,) = matrices
    if _nothing(a):
        return (a,)
    qr, tau, _, _ = lapack("geqrf", a)
    return qr, tau


@_register({REAL + COMPLEX: "geqp3"}, (2, 1))
def _geqp3(lapack: _Lapack, matrices: Matrices, attributes: dict[str, Any]) -> tuple[Any, ...]:
    """QR with column pivoting: (R and reflectors; pivots from 1; tau)."""
    a, pivots = matrices
    if _nothing(a):
        return a, np.arange(1, pivots.size + 1)
    if pivots.any():
        raise UnimplementedError("custom-call: lapack geqp3 with columns fixed in advance")
    qr, found, tau, _, _ = lapack("geqp3", a)
    return qr, found, tau


@_register({REAL: "orgqr", COMPLEX: "ungqr"}, (2, 1))
def _orgqr(lapack: _Lapack, matrices: Matrices, attributes: dict[str, Any]) -> tuple[Any, ...]:
    """The leading columns of the product of Householder reflectors I - tau v v^H."""
    a, tau = matrices
    if _nothing(a):
        return (a,)
    return (lapack("ungqr" if lapack.is_complex else "orgqr", a, tau)[0],)


@_register({REAL + COMPLEX: "gesdd"}, (2,))
def _gesdd(lapack: _Lapack, matrices: Matrices, attributes: dict[str, Any]) -> tuple[Any, ...]:
    """SVD by divide and conquer: (a, overwritten; s; u; v^H; info). mode: A all, S thin, N none."""
    (a,) = matrices
    if not np.isfinite(a).all():
        return a, np.nan, np.nan, np.nan, -4
    if _is(attributes, "mode", "N"):
        return (a, *([lapack("gesdd", a, compute_uv=0)[1]] if a.size else [0]), 0, 0, 0)
    m, n = a.shape
    if _nothing(a):
        full = _is(attributes, "mode", "A")
        return a, 0, np.eye(m, m if full else min(m, n)), np.eye(n if full else min(m, n), n), 0
    u, s, vh, info = lapack(
        "gesdd", a, compute_uv=1, full_matrices=int(_is(attributes, "mode", "A"))
    )
    return a, s, u, vh, info


@_register({REAL: "syevd", COMPLEX: "heevd"}, (2,))
def _syevd(lapack: _Lapack, matrices: Matrices, attributes: dict[str, Any]) -> tuple[Any, ...]:
    """Eigenvalues of a symmetric matrix, ascending: (vectors; values; info)."""
    (a,) = matrices
    if _nothing(a):
        return a, 0, 0
    values, vectors, info = lapack(
        "heevd" if lapack.is_complex else "syevd",
        a,
        compute_v=int(_is(attributes, "mode", "V")),
        lower=int(_is(attributes, "uplo", "L")),
    )
    return vectors, values, info


@_register({REAL + COMPLEX: "geev"}, (2,))
def _geev(lapack: _Lapack, matrices: Matrices, attributes: dict[str, Any]) -> tuple[Any, ...]:
    """Eigenvalues of any square matrix: (values: real and imaginary apart for real types; left
    vectors; right vectors, complex; info)."""
    (a,) = matrices
    left, right = _is(attributes, "compute_left", "V"), _is(attributes, "compute_right", "V")
    parts = 1 if lapack.is_complex else 2
    if _nothing(a):
        return (0,) * (parts + 3)
    if not np.isfinite(a).all():
        return (*(np.nan,) * parts, np.nan, np.nan, -4)
    *values, vl, vr, info = lapack("geev", a, compute_vl=int(left), compute_vr=int(right))
    if not lapack.is_complex:
        vl, vr = (_unpack_pairs(v, values[1]) for v in (vl, vr))
    return (*values, vl if left else 0, vr if right else 0, info)


def _unpack_pairs(vectors: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    """Real LAPACK stores a conjugate pair of vectors as their real and imaginary columns."""
    result = vectors.astype(np.complex128)
    for j in range(vectors.shape[1]):
        if imaginary[j] > 0 and j + 1 < vectors.shape[1]:
            result[:, j] = vectors[:, j] + 1j * vectors[:, j + 1]
            result[:, j + 1] = result[:, j].conj()
    return result


@_register({REAL + COMPLEX: "getrf"}, (2,))
def _getrf(lapack: _Lapack, matrices: Matrices, attributes: dict[str, Any]) -> tuple[Any, ...]:
    """LU with partial pivoting: (L and U; pivots from 1; info)."""
    (a,) = matrices
    if _nothing(a):
        return a, 0, 0
    lu, pivots, info = lapack("getrf", a)
    return lu, pivots + 1, info


@_register({REAL + COMPLEX: "trsm"}, (2, 2))
def _trsm(lapack: _Lapack, matrices: Matrices, attributes: dict[str, Any]) -> tuple[Any, ...]:
    """x with op(a) x = b (side L) or x op(a) = b (side R)."""
    a, b = matrices
    if _nothing(b):
        return (b,)
    lower, unit = _is(attributes, "uplo", "L"), _is(attributes, "diag", "U")
    transpose = "NTC".index(chr(int(attributes["trans_x"])))
    if _is(attributes, "side", "L"):
        return (_trtrs(lapack, a, b, lower, transpose, unit),)
    # x op(a) = b is op(a)^T x^T = b^T.
    if transpose == 2:
        a, transpose = a.conj(), 1
    return (_trtrs(lapack, a, b.T, lower, 1 - transpose, unit).T,)


def _trtrs(
    lapack: _Lapack, a: np.ndarray, b: np.ndarray, lower: bool, transpose: int, unit: bool
) -> np.ndarray:
    x, info = lapack("trtrs", a, b, lower=int(lower), trans=transpose, unitdiag=int(unit))
    if info > 0:  # singular: BLAS divides, LAPACK refuses
        with np.errstate(all="ignore"):
            op = (a, a.T, a.conj().T)[transpose]
            return _substitute(np.tril(op) if lower ^ (transpose > 0) else np.triu(op), b)
    return x


def _substitute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    x = np.array(b)
    n = len(a)
    is_lower = not np.triu(a, 1).any()
    for row in range(n) if is_lower else reversed(range(n)):
        done = slice(0, row) if is_lower else slice(row + 1, n)
        x[row] = (x[row] - a[row, done] @ x[done]) / a[row, row]
    return x


@_register({REAL + COMPLEX: "gees"}, (2,))
def _gees(lapack: _Lapack, matrices: Matrices, attributes: dict[str, Any]) -> tuple[Any, ...]:
    """Schur form: (T; vectors; values: real and imaginary apart for real types; sdim; info)."""
    (a,) = matrices
    vectors = _is(attributes, "mode", "V")
    if not _is(attributes, "sort", "N"):
        raise UnimplementedError("custom-call: lapack gees with sorted eigenvalues")
    parts = 1 if lapack.is_complex else 2
    if _nothing(a):
        return (a, *(0,) * (parts + 3))
    result = lapack("gees", lambda *_: 0, a, compute_v=int(vectors), sort_t=0)
    t, sdim, *values = result[: 2 + parts]
    v, _, info = result[2 + parts :]
    return (t, v if vectors else 0, *values, sdim, info)


@_register({REAL + COMPLEX: "gehrd"}, (2,))
def _gehrd(lapack: _Lapack, matrices: Matrices, attributes: dict[str, Any]) -> tuple[Any, ...]:
    """Hessenberg form: (H, reflectors below the first subdiagonal; tau; info)."""
    (a,) = matrices
    if _nothing(a):
        return a, 0, 0
    return lapack("gehrd", a, lo=int(attributes["low"]) - 1, hi=int(attributes["high"]) - 1)


@_register({REAL + COMPLEX: "gtsv"}, (1, 1, 1, 2))
def _gtsv(lapack: _Lapack, matrices: Matrices, attributes: dict[str, Any]) -> tuple[Any, ...]:
    """Tridiagonal solve: (lower, main, upper diagonals, overwritten; x; info).

    dl[0] and du[-1] are padding: all three diagonals have n elements.
    """
    dl, d, du, b = matrices
    if _nothing(b):
        return dl, d, du, b, 0
    below, main, above, x, info = lapack("gtsv", dl[1:], d, du[:-1], b)
    return np.append(below, 0), main, np.append(above, 0), x, info


@_register({REAL: "sytrd", COMPLEX: "hetrd"}, (2,))
def _sytrd(lapack: _Lapack, matrices: Matrices, attributes: dict[str, Any]) -> tuple[Any, ...]:
    """Tridiagonal form: (T and reflectors; diagonal; off-diagonal; tau; info)."""
    (a,) = matrices
    if _nothing(a):
        return a, 0, 0, 0, 0
    name = "hetrd" if lapack.is_complex else "sytrd"
    return lapack(name, a, lower=int(_is(attributes, "uplo", "L")))
