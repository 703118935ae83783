"""What a LAPACK custom call asks for, and the checks that keep it inside its arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from haloc.cpu.linalg.arguments import Argument, Array, Call, Char, Info, Work, WorkSize
from haloc.cpu.linalg.lapack import PREFIXES
from haloc.errors import InvalidArgumentError
from haloc.ir.dtype import S32, DType
from haloc.ir.shape import Shape

MAX_DIMENSION = (1 << 31) - 1
"""LAPACK's integers have 32 bits."""


@dataclass(frozen=True, slots=True)
class Request:
    """symbol: of the C function. config: the call's attributes. operands, results: leaf shapes.

    core_rank: rank of operand 0 in one batch element: 2, or 1 for a vector. The methods raise
    InvalidArgumentError where the call does not hold what a description asks for.
    """

    symbol: str
    config: Mapping[str, int]
    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]
    core_rank: int = 2

    def fail(self, fault: str) -> NoReturn:
        operands = ", ".join(s.to_string(include_layout=False) for s in self.operands)
        results = ", ".join(s.to_string(include_layout=False) for s in self.results)
        raise InvalidArgumentError(
            f"custom-call to lapack_{self.symbol}_ffi from ({operands}) to ({results}): {fault}"
        )

    def check(self) -> None:
        """What every routine needs, before any description looks at dimensions."""
        if not self.operands:
            self.fail("no operands")
        for shape in (*self.operands, *self.results):
            if not shape.is_array or max(shape.dims, default=0) > MAX_DIMENSION:
                self.fail(f"{shape} is no array of less than 2**31 elements a dimension")
        if PREFIXES.get(self.dtype.name) != self.symbol[0]:
            self.fail(f"operand 0 has element type {self.dtype}")
        if self.operands[0].rank < self.core_rank:
            self.fail(f"operand 0 has fewer than {self.core_rank} dimensions")

    @property
    def batch_dims(self) -> tuple[int, ...]:
        return self.operands[0].dims[: self.operands[0].rank - self.core_rank]

    @property
    def dtype(self) -> DType:
        return self.operands[0].dtype

    @property
    def m(self) -> int:
        """Rows of operand 0's matrices."""
        return self.operands[0].dims[-2]

    @property
    def n(self) -> int:
        """Columns of operand 0's matrices."""
        return self.operands[0].dims[-1]

    def order(self) -> int:
        """n, when operand 0's matrices are square."""
        if self.m != self.n:
            self.fail("operand 0's matrices are not square")
        return self.n

    def operand_dims(self, number: int, rank: int) -> tuple[int, ...]:
        """The last `rank` dimensions of an operand."""
        if number >= len(self.operands) or self.operands[number].rank < rank:
            self.fail(f"operand {number} must have {rank} dimensions beside the batch's")
        return self.operands[number].dims[-rank:]

    def option(self, name: str, letters: str) -> int:
        """The code of a letter out of `letters` among the attributes."""
        code = self.config.get(name)
        if not isinstance(code, int) or code not in letters.encode():
            self.fail(f"attribute {name} is {code}, wanted the code of one of {', '.join(letters)}")
        return code

    def char(self, name: str, letters: str) -> Char:
        return Char(self.option(name, letters))

    def matrix(self) -> Array:
        """Operand 0's m x n matrix, overwritten, and result 0."""
        return Array(self.dtype, self.m, self.n, operand=0, result=0)

    def vector(self, result: int, count: int, dtype: DType | None = None) -> Array:
        """A result of one dimension."""
        return Array(dtype or self.dtype, count, result=result)

    def output(self, result: int, rows: int, columns: int, unused: bool = False) -> Array:
        """A result matrix that LAPACK writes."""
        return Array(self.dtype, rows, columns, result=result, unused=unused)

    def work(self) -> tuple[Argument, ...]:
        return (Work(self.dtype), WorkSize(self.dtype))

    def if_complex(self, *arguments: Argument) -> tuple[Argument, ...]:
        return arguments if self.dtype.is_complex else ()

    def call(self, *arguments: Argument | tuple[Argument, ...], **more: object) -> Call:
        """The call; tuples among the arguments are spliced in. Every array is checked to be as
        big as the operand or result it stands for."""
        flat: list[Argument] = []
        for argument in arguments:
            flat.extend(argument if isinstance(argument, tuple) else (argument,))
        call = Call(self.symbol, tuple(flat), **more)  # type: ignore[arg-type]
        self._check_arrays(call)
        return call

    def _check_arrays(self, call: Call) -> None:
        described: set[int] = set()
        for a in (*call.arguments, *call.finished):
            if isinstance(a, Array):
                dims = (a.rows, a.columns)
                if a.operand is not None:
                    self._check_leaf("operand", self.operands, a.operand, a.dtype, dims)
                if a.result is not None:
                    self._check_leaf("result", self.results, a.result, a.dtype, dims)
            elif isinstance(a, Info) and a.result is not None:
                self._check_leaf("result", self.results, a.result, S32, (1, 1))
            if isinstance(a, Array | Info) and a.result is not None:
                described.add(a.result)
        if described != set(range(len(self.results))):
            self.fail(f"wanted {len(described)} results")

    def _check_leaf(
        self,
        what: str,
        shapes: Sequence[Shape],
        number: int,
        dtype: DType,
        dims: tuple[int, int],
    ) -> None:
        rows, columns = dims
        wanted = {(*self.batch_dims, rows, columns)}
        if columns == 1:
            wanted.add((*self.batch_dims, rows))
        if dims == (1, 1):
            wanted.add(self.batch_dims)
        shape = shapes[number] if number < len(shapes) else None
        if shape is None or shape.dtype is not dtype or shape.dims not in wanted:
            shortest = min(wanted, key=len)
            self.fail(f"{what} {number} must be {dtype}[{','.join(map(str, shortest))}]")
