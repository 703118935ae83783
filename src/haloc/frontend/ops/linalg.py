"""Decompositions of matrices. Leading dimensions are a batch."""

from __future__ import annotations

from enum import Enum

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.frontend.builder import XlaBuilder, XlaOp
from haloc.frontend.ops.arguments import add, add_to, constant, value
from haloc.frontend.ops.elementwise import full_like, stretch
from haloc.frontend.ops.loops import repeat
from haloc.frontend.ops.structured import elements, scalar_computation
from haloc.ir.dtype import S32
from haloc.ir.shape import Shape, tuple_shape

_LETTERS = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}
_COMPLEX_NAMES = {"orgqr": "ungqr", "syevd": "heevd"}


class TriangularSolveOptions_Transpose(Enum):
    TRANSPOSE_INVALID = 0
    NO_TRANSPOSE = 1
    TRANSPOSE = 2
    ADJOINT = 3


def Cholesky(a: XlaOp, lower: bool = True) -> XlaOp:
    return add("cholesky", [a], **({"lower": True} if lower else {}))


def TriangularSolve(
    a: XlaOp,
    b: XlaOp,
    left_side: bool,
    lower: bool,
    unit_diagonal: bool,
    transpose_a: TriangularSolveOptions_Transpose,
) -> XlaOp:
    """x with op(a) x = b, or x op(a) = b where not left_side."""
    flags = {"left_side": left_side, "lower": lower, "unit_diagonal": unit_diagonal}
    attrs = {name: True for name, flag in flags.items() if flag}
    return add("triangular-solve", [a, b], **attrs, transpose_a=transpose_a.name)


def _lapack(
    name: str, operands: list[XlaOp], results: list[Shape], **characters: str
) -> list[XlaOp]:
    """A LAPACK routine of the operands' type; its results, with `info` where there is one."""
    dtype = value(operands[0]).shape.dtype
    if dtype.name not in _LETTERS:
        raise UnimplementedError(f"{name} of {dtype.name}: {', '.join(_LETTERS)} only")
    if dtype.is_complex:
        name = _COMPLEX_NAMES.get(name, name)
    whole = add(
        "custom-call",
        operands,
        tuple_shape(*results),
        custom_call_target=f"lapack_{_LETTERS[dtype.name]}{name}_ffi",
        api_version="API_VERSION_TYPED_FFI",
    )
    entries = (f"{key} = {ord(letter)} : ui8" for key, letter in characters.items())
    whole.instruction.backend_config = "{" + ", ".join(entries) + "}"
    return elements(whole)


def _matrices(a: XlaOp, name: str) -> tuple[tuple[int, ...], int, int]:
    dims = value(a).shape.dims
    if len(dims) < 2:
        raise InvalidArgumentError(f"{name}: wanted matrices, given {a.shape.to_string(False)}")
    return dims[:-2], dims[-2], dims[-1]


def _cut(x: XlaOp, rows: int, columns: int) -> XlaOp:
    """The first rows and columns of matrices."""
    batch, m, n = _matrices(x, "slice")
    if (m, n) == (rows, columns):
        return x
    return add("slice", [x], slice=(*((0, b, 1) for b in batch), (0, rows, 1), (0, columns, 1)))


def LU(operand: XlaOp) -> tuple[XlaOp, XlaOp, XlaOp]:
    """(L and U in one matrix; pivots from 0; the permutation of the rows they make)."""
    batch, m, n = _matrices(operand, "LU")
    shapes = [operand.shape, Shape(S32, (*batch, min(m, n))), Shape(S32, batch)]
    lu, pivots, _ = _lapack("getrf", [operand], shapes)
    pivots = add("subtract", [pivots, full_like(pivots, 1)])
    return lu, pivots, _permutation(pivots, m)


def _permutation(pivots: XlaOp, rows: int) -> XlaOp:
    """Rows after the swaps of row i with row pivots[i]."""
    batch, count = pivots.shape.dims[:-1], pivots.shape.dims[-1]
    places = Shape(S32, (*batch, rows))
    last = len(batch)
    identity = add_to(pivots.builder, "iota", (), places, iota_dimension=last)

    def step(body: XlaBuilder, i: XlaOp, state: list[XlaOp]) -> list[XlaOp]:
        order, swaps = state
        place = add_to(body, "iota", (), places, iota_dimension=last)
        here = add("compare", [place, stretch(i, places.dims, ())], direction="EQ")
        zero = constant(i, 0)
        index = [*(zero for _ in batch), i]
        pivot = add("dynamic-slice", [swaps, *index], dynamic_slice_sizes=(*batch, 1))
        spread = stretch(pivot, places.dims, tuple(range(last + 1)))
        there = add("compare", [place, spread], direction="EQ")
        moved_here, moved_there = (
            stretch(_picked(order, mask), places.dims, tuple(range(last))) for mask in (there, here)
        )
        swapped = add("select", [there, moved_there, order])
        return [add("select", [here, moved_here, swapped]), swaps]

    return repeat(count, [identity, pivots], step)[0]


def _picked(x: XlaOp, mask: XlaOp) -> XlaOp:
    """The one element of each row where the mask is true."""
    kept = add("select", [mask, x, full_like(x, 0)])
    region = x.builder.embed(scalar_computation("add", x.shape))
    attrs = {"dimensions": (x.shape.rank - 1,), "to_apply": region}
    return add("reduce", [kept, constant(x, 0)], **attrs)


def QrDecomposition(operand: XlaOp) -> tuple[XlaOp, XlaOp]:
    """(R above the diagonal and Householder vectors below; their factors)."""
    batch, m, n = _matrices(operand, "QrDecomposition")
    taus = Shape(operand.shape.dtype, (*batch, min(m, n)))
    a, tau = _lapack("geqrf", [operand], [operand.shape, taus])
    return a, tau


def ProductOfElementaryHouseholderReflectors(a: XlaOp, taus: XlaOp) -> XlaOp:
    """The first columns of Q, as many as `a` has."""
    return _lapack("orgqr", [a, taus], [value(a).shape])[0]


def QR(operand: XlaOp, full_matrices: bool) -> tuple[XlaOp, XlaOp]:
    """(Q, R): of m rows Q has m columns, or min(m, n) where not full_matrices."""
    _, m, n = _matrices(operand, "QR")
    r, taus = QrDecomposition(operand)
    columns = m if full_matrices else min(m, n)
    vectors = r
    if columns > n:
        zero = constant(r, 0)
        ranges = (*((0, 0, 0) for _ in r.shape.dims[:-1]), (0, columns - n, 0))
        vectors = add("pad", [r, zero], padding=ranges)
    q = ProductOfElementaryHouseholderReflectors(_cut(vectors, m, columns), taus)
    return q, _upper(_cut(r, columns, n))


def _upper(x: XlaOp) -> XlaOp:
    """Zeros below the diagonal."""
    rank, places = x.shape.rank, Shape(S32, x.shape.dims)
    row, column = (
        add_to(x.builder, "iota", (), places, iota_dimension=d) for d in (rank - 2, rank - 1)
    )
    above = add("compare", [row, column], direction="LE")
    return add("select", [above, x, full_like(x, 0)])


def Eigh(
    a: XlaOp,
    lower: bool = True,
    max_iter: int = 15,
    epsilon: float = 1e-5,
    sort_eigenvalues: bool = True,
) -> tuple[XlaOp, XlaOp]:
    """(eigenvectors in columns, eigenvalues rising) of symmetric or Hermitian matrices.

    LAPACK's divide and conquer converges by itself and always sorts; max_iter and epsilon, limits
    of an iteration, hold with it.
    """
    batch, m, n = _matrices(a, "Eigh")
    if m != n:
        raise InvalidArgumentError(f"Eigh: {a.shape.to_string(False)} is not square")
    values = Shape(a.shape.dtype.real, (*batch, n))
    letters = {"mode": "V", "uplo": "L" if lower else "U"}
    vectors, found, _ = _lapack("syevd", [a], [a.shape, values, Shape(S32, batch)], **letters)
    return vectors, found


def SVD(a: XlaOp, max_iter: int = 100, epsilon: float = 1e-6) -> tuple[XlaOp, XlaOp, XlaOp]:
    """(U, singular values falling, V), thin: a = U diag(s) V^H. As `Eigh` about the limits."""
    batch, m, n = _matrices(a, "SVD")
    rank, dtype = min(m, n), a.shape.dtype
    shapes = [
        a.shape,
        Shape(dtype.real, (*batch, rank)),
        Shape(dtype, (*batch, m, rank)),
        Shape(dtype, (*batch, rank, n)),
        Shape(S32, batch),
    ]
    _, s, u, vh, _ = _lapack("gesdd", [a], shapes, mode="S")
    order = (*range(len(batch)), len(batch) + 1, len(batch))
    v = add("transpose", [vh], dimensions=order)
    if dtype.is_complex:
        imaginary = add("negate", [add("imag", [v])])
        v = add("complex", [add("real", [v]), imaginary])
    return u, s, v
