"""One description a LAPACK routine, in the order of its Fortran arguments.

Operands and results are those of JAX's lapack_<letter><name>_ffi custom calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
from haloc.ir.dtype import S32, DType
from haloc.ir.shape import Shape


@dataclass(frozen=True, slots=True)
class Request:
    """What a custom call asks for. symbol: of the C function. config: its attributes.

    m, n: dimensions of operand 0's matrices.
    """

    symbol: str
    config: Mapping[str, int]
    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]

    @property
    def dtype(self) -> DType:
        return self.operands[0].dtype

    @property
    def m(self) -> int:
        return self.operands[0].dims[-2]

    @property
    def n(self) -> int:
        return self.operands[0].dims[-1]

    def call(self, *arguments: Argument | tuple[Argument, ...], **more: object) -> Call:
        """The call; tuples among the arguments are spliced in."""
        flat: list[Argument] = []
        for argument in arguments:
            flat.extend(argument if isinstance(argument, tuple) else (argument,))
        return Call(self.symbol, tuple(flat), **more)  # type: ignore[arg-type]

    def char(self, name: str) -> Char:
        return Char(self.config[name])

    def matrix(self) -> Array:
        """Operand 0's m x n matrix, overwritten, and result 0."""
        return Array(self.dtype, self.m, self.n, operand=0, result=0)

    def vector(self, result: int, dtype: DType | None = None) -> Array:
        """A result of one dimension (beside the batch's)."""
        return Array(dtype or self.dtype, self.results[result].dims[-1], result=result)

    def output(self, result: int, unused: bool = False) -> Array:
        """A result matrix that LAPACK writes."""
        rows, columns = self.results[result].dims[-2:]
        return Array(self.dtype, rows, columns, result=result, unused=unused)

    def work(self) -> tuple[Argument, ...]:
        return (Work(self.dtype), WorkSize(self.dtype))

    def if_complex(self, *arguments: Argument) -> tuple[Argument, ...]:
        return arguments if self.dtype.is_complex else ()


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


def other_triangle(code: int) -> Char:
    """The other one of 'U' and 'L'."""
    return Char(ord("L") if code == ord("U") else ord("U"))


def other_side(code: int) -> Char:
    return Char(ord("L") if code == ord("R") else ord("R"))


@_routine("potrf")
def potrf(r: Request) -> Call:
    """By rows: what lies in memory is the transpose, whose factor is the transposed factor."""
    a = Array(r.dtype, r.m, r.n, 0, 0, by_rows=True)
    return r.call(other_triangle(r.config["uplo"]), Int(r.n), a, lead(r.n), Info(1))


@_routine("trsm")
def trsm(r: Request) -> Call:
    """By rows: op(A) X = B is X' op(A') = B' of the transposes."""
    rows, columns = r.operands[1].dims[-2:]
    return r.call(
        other_side(r.config["side"]),
        other_triangle(r.config["uplo"]),
        r.char("trans_x"),
        r.char("diag"),
        Int(columns),
        Int(rows),
        One(r.dtype),
        Array(r.dtype, r.m, r.n, operand=0, by_rows=True),
        lead(r.n),
        Array(r.dtype, rows, columns, operand=1, result=0, by_rows=True),
        lead(columns),
    )


@_routine("geqrf")
def geqrf(r: Request) -> Call:
    return r.call(Int(r.m), Int(r.n), r.matrix(), lead(r.m), r.vector(1), r.work(), Info())


@_routine("geqp3")
def geqp3(r: Request) -> Call:
    pivots = Array(S32, r.n, operand=1, result=1)
    rwork = r.if_complex(Work(r.dtype.real, 2 * r.n))
    return r.call(
        Int(r.m), Int(r.n), r.matrix(), lead(r.m), pivots, r.vector(2), r.work(), rwork, Info()
    )


@_routine("orgqr", "ungqr")
def orgqr(r: Request) -> Call:
    k = r.operands[1].dims[-1]
    taus = Array(r.dtype, k, operand=1)
    return r.call(Int(r.m), Int(r.n), Int(k), r.matrix(), lead(r.m), taus, r.work(), Info())


@_routine("gesdd")
def gesdd(r: Request) -> Call:
    job, low, high = r.char("mode"), min(r.m, r.n), max(r.m, r.n)
    rwork = 7 * low if job == Char(ord("N")) else low * max(5 * low + 7, 2 * (high + low) + 1)
    return r.call(
        *(job, Int(r.m), Int(r.n), r.matrix(), lead(r.m), r.vector(1, r.dtype.real)),
        *_singular_vectors(r, job),
        *(r.work(), r.if_complex(Work(r.dtype.real, rwork)), Work(S32, 8 * low), Info(4)),
        finite=0,
    )


@_routine("gesvd")
def gesvd(r: Request) -> Call:
    job = r.char("mode")
    return r.call(
        *(job, job, Int(r.m), Int(r.n), r.matrix(), lead(r.m), r.vector(1, r.dtype.real)),
        *_singular_vectors(r, job),
        *(r.work(), r.if_complex(Work(r.dtype.real, 5 * min(r.m, r.n))), Info(4)),
        finite=0,
    )


def _singular_vectors(r: Request, job: Char) -> tuple[Argument, ...]:
    unused = job == Char(ord("N"))
    u, vt = r.output(2, unused), r.output(3, unused)
    return (u, lead(u.rows), vt, lead(vt.rows))


@_routine("syevd", "heevd")
def syevd(r: Request) -> Call:
    real = r.dtype.real
    rwork = r.if_complex(Work(real), WorkSize(real))
    return r.call(
        *(r.char("mode"), r.char("uplo"), Int(r.n), r.matrix(), lead(r.n), r.vector(1, real)),
        *(r.work(), rwork, Work(S32), WorkSize(S32), Info(2)),
    )


@_routine("geev")
def geev(r: Request) -> Call:
    """Real: vectors of a conjugate pair come as real and imaginary columns, and are joined."""
    left, right = r.char("compute_left"), r.char("compute_right")
    a = Array(r.dtype, r.n, r.n, operand=0, is_destroyed=True)
    begin = (left, right, Int(r.n), a, lead(r.n))
    if r.dtype.is_complex:
        vectors = [
            (r.output(number, unused=job == Char(ord("N"))), lead(r.n))
            for number, job in ((1, left), (2, right))
        ]
        rwork = Work(r.dtype.real, 2 * r.n)
        return r.call(*begin, r.vector(0), *vectors, r.work(), rwork, Info(3), finite=0)
    columns = Array(r.dtype, r.n, r.n)  # scratch
    return r.call(
        *(*begin, r.vector(0), r.vector(1)),
        *(columns, lead(r.n), columns, lead(r.n), r.work(), Info(4)),
        finish=join_conjugate_pairs(r.dtype, r.n, left.code, right.code),
        finite=0,
    )


@_routine("getrf")
def getrf(r: Request) -> Call:
    pivots = r.vector(1, S32)
    return r.call(Int(r.m), Int(r.n), r.matrix(), lead(r.m), pivots, Info(2))


@_routine("gees")
def gees(r: Request) -> Call:
    """Only unsorted: JAX asks for no other, and a sort would need a function to choose by."""
    job = r.char("mode")
    vectors = r.output(1, unused=job == Char(ord("N")))
    values = (r.vector(2),) if r.dtype.is_complex else (r.vector(2), r.vector(3))
    sdim, info = len(r.results) - 2, len(r.results) - 1
    rwork = r.if_complex(Work(r.dtype.real, r.n))
    return r.call(
        *(job, Char(ord("N")), Null(), Int(r.n), r.matrix(), lead(r.n), Info(sdim)),
        *(values, vectors, lead(r.n), r.work(), rwork, Work(S32, r.n), Info(info)),
    )


@_routine("gehrd")
def gehrd(r: Request) -> Call:
    return r.call(
        *(Int(r.n), Int(r.config["low"]), Int(r.config["high"])),
        *(r.matrix(), lead(r.n), r.vector(1), r.work(), Info(2)),
    )


@_routine("sytrd", "hetrd")
def sytrd(r: Request) -> Call:
    real = r.dtype.real
    return r.call(
        *(r.char("uplo"), Int(r.n), r.matrix(), lead(r.n)),
        *(r.vector(1, real), r.vector(2, real), r.vector(3), r.work(), Info(4)),
    )


@_routine("gtsv")
def gtsv(r: Request) -> Call:
    """JAX's lower diagonal has n elements too, the first of them unused."""
    n, right = r.operands[1].dims[-1], r.operands[3].dims[-1]
    diagonals = [Array(r.dtype, n, operand=i, result=i, skip=int(i == 0)) for i in range(3)]
    b = Array(r.dtype, n, right, operand=3, result=3)
    return r.call(Int(n), Int(right), *diagonals, b, lead(n), Info(4))
