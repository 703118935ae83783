"""The arguments of a LAPACK call, as a routine's description lists them. All go by address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from haloc.ir.dtype import S32, DType


@dataclass(frozen=True, slots=True)
class Char:
    """A letter: 'U', 'L', 'N', ... as its code."""

    code: int


@dataclass(frozen=True, slots=True)
class Int:
    value: int


@dataclass(frozen=True, slots=True)
class One:
    """The number 1 of the routine's element type (BLAS's alpha)."""

    dtype: DType


@dataclass(frozen=True, slots=True)
class Null:
    """A function that is never called."""


@dataclass(frozen=True, slots=True)
class Array:
    """A rows x columns matrix (a vector: one column) of each batch element.

    It starts as `operand` (a leaf number) when given, and ends in `result`. LAPACK sees it by
    columns; haloc's arrays are by rows. by_rows: pass it as it lies, for routines described in
    terms of the transposed matrix; vectors always are. skip: elements before the first one passed.
    unused: LAPACK does not touch it; the result is zero. is_destroyed: LAPACK overwrites what is no
    result, so an operand must be copied.
    """

    dtype: DType
    rows: int
    columns: int = 1
    operand: int | None = None
    result: int | None = None
    by_rows: bool = False
    skip: int = 0
    unused: bool = False
    is_destroyed: bool = False

    @property
    def size(self) -> int:
        return self.rows * self.columns

    @property
    def size_bytes(self) -> int:
        return self.size * self.dtype.byte_size

    @property
    def is_in_place(self) -> bool:
        """Whether the buffers' memory itself is passed."""
        return self.by_rows or self.columns == 1 or self.rows == 1


@dataclass(frozen=True, slots=True)
class Work:
    """Memory the routine needs. count: elements, or None to ask the routine itself."""

    dtype: DType
    count: int | None = None


@dataclass(frozen=True, slots=True)
class WorkSize:
    """The number of elements of the latest `Work` of this type before it."""

    dtype: DType


@dataclass(frozen=True, slots=True)
class Info:
    """The status LAPACK returns; result: the leaf it goes to."""

    result: int | None = None
    dtype: DType = S32


Argument = Char | Int | One | Null | Array | Work | WorkSize | Info


@dataclass(frozen=True, slots=True)
class Call:
    """A routine's call, repeated over a batch.

    symbol: the C function ("dpotrf"). finish: emits what follows each call, given the function and
    an `emit.Frame`; finished: the results it writes. finite: leaf number of an operand that must
    hold finite numbers only; else no call is made (it might not return), results are NaN and info
    is -4.
    """

    symbol: str
    arguments: tuple[Argument, ...]
    finish: Callable[..., None] | None = None
    finished: tuple[Array, ...] = ()
    finite: int | None = None
