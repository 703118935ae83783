"""One description a LAPACK routine, in the order of its Fortran arguments.

Operands and results are those of JAX's lapack_<letter><name>_ffi custom calls.
"""

from __future__ import annotations

from collections.abc import Callable

from haloc.cpu.linalg.arguments import (
    Argument,
    Array,
    Call,
    Char,
    Info,
    Int,
    Null,
    One,
    Work,
    WorkSize,
)
from haloc.cpu.linalg.complex_vectors import join_conjugate_pairs
from haloc.cpu.linalg.request import Request
from haloc.ir.dtype import C64, C128, F32, S32

Describe = Callable[[Request], Call]
ROUTINES: dict[str, Describe] = {}
"""By LAPACK's name without the type's letter."""


def _routine(*names: str) -> Callable[[Describe], Describe]:
    def add(describe: Describe) -> Describe:
        for name in names:
            ROUTINES[name] = describe
        return describe

    return add


def lead(rows: int) -> Int:
    """A leading dimension: LAPACK wants at least 1."""
    return Int(max(1, rows))


NO = Char(ord("N"))
"""The job letter for what is not wanted."""


def other_triangle(code: int) -> Char:
    """The other one of 'U' and 'L'."""
    return Char(ord("L") if code == ord("U") else ord("U"))


def other_side(code: int) -> Char:
    return Char(ord("L") if code == ord("R") else ord("R"))


@_routine("potrf")
def potrf(r: Request) -> Call:
    """By rows: what lies in memory is the transpose, whose factor is the transposed factor."""
    n = r.order()
    a = Array(r.dtype, n, n, operand=0, result=0, by_rows=True)
    return r.call(other_triangle(r.option("uplo", "UL")), Int(n), a, lead(n), Info(1))


@_routine("trsm")
def trsm(r: Request) -> Call:
    """By rows: op(A) X = B is X' op(A') = B' of the transposes."""
    n = r.order()
    rows, columns = r.operand_dims(1, 2)
    side = r.option("side", "LR")
    if n != (rows if side == ord("L") else columns):
        r.fail(f"operand 1's matrices do not match side {chr(side)}")
    return r.call(
        other_side(side),
        other_triangle(r.option("uplo", "UL")),
        r.char("trans_x", "NTC"),
        r.char("diag", "NU"),
        *(Int(columns), Int(rows), One(r.dtype)),
        *(Array(r.dtype, n, n, operand=0, by_rows=True), lead(n)),
        *(Array(r.dtype, rows, columns, operand=1, result=0, by_rows=True), lead(columns)),
    )


@_routine("geqrf")
def geqrf(r: Request) -> Call:
    tau = r.vector(1, min(r.m, r.n))
    return r.call(Int(r.m), Int(r.n), r.matrix(), lead(r.m), tau, r.work(), Info())


@_routine("geqp3")
def geqp3(r: Request) -> Call:
    pivots = Array(S32, r.n, operand=1, result=1)
    return r.call(
        *(Int(r.m), Int(r.n), r.matrix(), lead(r.m), pivots, r.vector(2, min(r.m, r.n))),
        *(r.work(), r.if_complex(Work(r.dtype.real, 2 * r.n)), Info()),
    )


@_routine("orgqr", "ungqr")
def orgqr(r: Request) -> Call:
    (k,) = r.operand_dims(1, 1)
    if not k <= r.n <= r.m:
        r.fail(f"wanted {k} reflectors <= {r.n} columns <= {r.m} rows")
    taus = Array(r.dtype, k, operand=1)
    return r.call(Int(r.m), Int(r.n), Int(k), r.matrix(), lead(r.m), taus, r.work(), Info())


@_routine("gesdd")
def gesdd(r: Request) -> Call:
    job, low, high = r.char("mode", "ASN"), min(r.m, r.n), max(r.m, r.n)
    rwork = 7 * low if job == NO else low * max(5 * low + 7, 2 * (high + low) + 1)
    return r.call(
        *(job, Int(r.m), Int(r.n), r.matrix(), lead(r.m), r.vector(1, low, r.dtype.real)),
        *_singular_vectors(r, job),
        *(r.work(), r.if_complex(Work(r.dtype.real, rwork)), Work(S32, 8 * low), Info(4)),
        finite=0,
    )


@_routine("gesvd")
def gesvd(r: Request) -> Call:
    job, low = r.char("mode", "ASN"), min(r.m, r.n)
    return r.call(
        *(job, job, Int(r.m), Int(r.n), r.matrix(), lead(r.m), r.vector(1, low, r.dtype.real)),
        *_singular_vectors(r, job),
        *(r.work(), r.if_complex(Work(r.dtype.real, 5 * low)), Info(4)),
        finite=0,
    )


def _singular_vectors(r: Request, job: Char) -> tuple[Argument, ...]:
    """Where it asks for none, JAX gives space for all vectors or for the first min(m, n)."""
    low = min(r.m, r.n)
    is_thin = job == Char(ord("S")) or (job == NO and _is_thin(r, low))
    rows, columns = (low, low) if is_thin else (r.m, r.n)
    u, vt = r.output(2, r.m, rows, job == NO), r.output(3, columns, r.n, job == NO)
    return (u, lead(r.m), vt, lead(columns))


def _is_thin(r: Request, low: int) -> bool:
    return [s.dims[-2:] for s in r.results[2:4]] == [(r.m, low), (low, r.n)]


@_routine("syevd", "heevd")
def syevd(r: Request) -> Call:
    n, real = r.order(), r.dtype.real
    rwork = r.if_complex(Work(real), WorkSize(real))
    return r.call(
        *(r.char("mode", "NV"), r.char("uplo", "UL")),
        *(Int(n), r.matrix(), lead(n), r.vector(1, n, real)),
        *(r.work(), rwork, Work(S32), WorkSize(S32), Info(2)),
    )


@_routine("geev")
def geev(r: Request) -> Call:
    """Real: vectors of a conjugate pair come as real and imaginary columns, and are joined."""
    n = r.order()
    left, right = r.char("compute_left", "NV"), r.char("compute_right", "NV")
    a = Array(r.dtype, n, n, operand=0, is_destroyed=True)
    begin = (left, right, Int(n), a, lead(n))
    if r.dtype.is_complex:
        vectors = (
            *(r.output(1, n, n, left == NO), lead(n)),
            *(r.output(2, n, n, right == NO), lead(n)),
        )
        rwork = Work(r.dtype.real, 2 * n)
        return r.call(*begin, r.vector(0, n), vectors, r.work(), rwork, Info(3), finite=0)
    columns = Array(r.dtype, n, n)  # scratch
    joined = C64 if r.dtype is F32 else C128
    return r.call(
        *(*begin, r.vector(0, n), r.vector(1, n)),
        *(columns, lead(n), columns, lead(n), r.work(), Info(4)),
        finish=join_conjugate_pairs(r.dtype, n, left.code, right.code),
        finished=(Array(joined, n, n, result=2), Array(joined, n, n, result=3)),
        finite=0,
    )


@_routine("getrf")
def getrf(r: Request) -> Call:
    pivots = r.vector(1, min(r.m, r.n), S32)
    return r.call(Int(r.m), Int(r.n), r.matrix(), lead(r.m), pivots, Info(2))


@_routine("gees")
def gees(r: Request) -> Call:
    """Only unsorted: JAX asks for no other, and a sort would need a function to choose by."""
    n = r.order()
    job, sort = r.char("mode", "NV"), r.char("sort", "N")
    vectors = r.output(1, n, n, job == NO)
    is_complex = r.dtype.is_complex
    values = (r.vector(2, n),) if is_complex else (r.vector(2, n), r.vector(3, n))
    sdim = 2 + len(values)
    rwork = r.if_complex(Work(r.dtype.real, n))
    return r.call(
        *(job, sort, Null(), Int(n), r.matrix(), lead(n), Info(sdim)),
        *(values, vectors, lead(n), r.work(), rwork, Work(S32, n), Info(sdim + 1)),
    )


@_routine("gehrd")
def gehrd(r: Request) -> Call:
    n = r.order()
    low, high = (r.config.get(name) for name in ("low", "high"))
    if low is None or high is None or not 1 <= low <= max(1, high) or high > n:
        r.fail(f"attributes low={low} and high={high}, wanted 1 <= low <= high <= {n}")
    tau = r.vector(1, max(0, n - 1))
    return r.call(Int(n), Int(low), Int(high), r.matrix(), lead(n), tau, r.work(), Info(2))


@_routine("sytrd", "hetrd")
def sytrd(r: Request) -> Call:
    n, real = r.order(), r.dtype.real
    less = max(0, n - 1)
    return r.call(
        *(r.char("uplo", "UL"), Int(n), r.matrix(), lead(n)),
        *(r.vector(1, n, real), r.vector(2, less, real), r.vector(3, less)),
        *(r.work(), Info(4)),
    )


@_routine("gtsv")
def gtsv(r: Request) -> Call:
    """JAX's lower diagonal has n elements too, the first of them unused."""
    (n,) = r.operand_dims(0, 1)
    _, right = r.operand_dims(3, 2)
    diagonals = [Array(r.dtype, n, operand=i, result=i, skip=int(i == 0)) for i in range(3)]
    b = Array(r.dtype, n, right, operand=3, result=3)
    return r.call(Int(n), Int(right), *diagonals, b, lead(n), Info(4))


CORE_RANKS = {"gtsv": 1}
"""Rank of operand 0 in one batch element, where it is not 2."""
