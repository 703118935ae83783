"""The transform of a block of lines, one a lane, as an LLVM function between two work arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from haloc.codegen.kernel import PREFIX
from haloc.cpu.fft.plan import Bluestein, Stage, factor, roots, smooth_above, stages
from haloc.cpu.fft.vectors import Complex, Tables, Vectors
from haloc.cpu.writer import Function

Post = Callable[[Vectors, Complex, str], Complex]
"""(vectors, value, index) -> value: what is done to each result."""


@dataclass(frozen=True, slots=True)
class LineFunction:
    """void symbol(a, b, block): a holds the lines as pairs; the result is pairs in a or b.

    work: elements of each array, a multiple of the lanes times two real numbers.
    """

    symbol: str
    text: str
    result_in_a: bool
    work: int
    declares: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """Multiply result k of line l by exp(sign 2 pi i k l / n), as between the two halves of a long
    transform. Lanes are consecutive lines, `block` times the number of lanes on."""

    n: int


@dataclass(frozen=True, slots=True)
class LineSpec:
    """sign: -1 forward. scale: factor of all results."""

    n: int
    sign: int
    scale: float = 1.0
    turn: Turn | None = None


@dataclass(slots=True)
class _Work:
    """The two arrays; data is always in `arrays[0]` between steps."""

    v: Vectors
    tables: Tables
    arrays: list[str]

    def flip(self) -> None:
        self.arrays.reverse()


def work_length(n: int) -> int:
    """Elements of the work arrays of a line of length n."""
    return n if factor(n) is not None else smooth_above(2 * n - 1)


def line_function(
    number: int, spec: LineSpec, scalar: str, lanes: int, tables: Tables
) -> LineFunction:
    symbol = f"{PREFIX}.fft{number}"
    f = Function(symbol, "ptr noalias %a, ptr noalias %b, i64 %block", linkage="internal")
    v = Vectors(f, scalar, lanes)
    post = _post(spec, tables, lanes)
    work = _Work(v, tables, ["%a", "%b"])
    if factor(spec.n) is not None:
        _stockham(work, spec.n, spec.sign, pairs=True, post=post)
    else:
        _bluestein(work, spec, post)
    in_a = work.arrays[0] == "%a"
    return LineFunction(symbol, f.text(), in_a, work_length(spec.n), v.declares)


def _post(spec: LineSpec, tables: Tables, lanes: int) -> Post:
    turn = None if spec.turn is None else _turn(spec.turn, spec, tables, lanes)

    def post(v: Vectors, x: Complex, index: str) -> Complex:
        if spec.scale != 1.0:
            x = v.scale(x, v.constant(spec.scale))
        return x if turn is None else turn(v, x, index)

    return post


def _turn(turn: Turn, spec: LineSpec, tables: Tables, lanes: int) -> Post:
    """The factor is w^(k lane), from a table, times w^(k lanes block), from a product of two."""
    k = np.arange(spec.n)[:, None]
    within = roots(spec.sign, k * np.arange(lanes)[None, :], turn.n)
    # A table of lane vectors: all real parts, then all imaginary parts, for each k.
    packed = np.concatenate([within.real, within.imag], axis=1).reshape(-1, 2)
    by_lane = tables.add(packed[:, 0] + 1j * packed[:, 1])
    step = 1 << ((turn.n.bit_length() + 1) // 2)
    fine = tables.add(roots(spec.sign, np.arange(step), turn.n), np.dtype(np.float64))
    coarse_at = np.arange(-(-turn.n // step)) * step
    coarse = tables.add(roots(spec.sign, coarse_at, turn.n), np.dtype(np.float64))

    def post(v: Vectors, x: Complex, index: str) -> Complex:
        f = v.f
        power = f.mul(f.mul("%block", lanes), index)
        _, power = f.divmod(power, turn.n)
        high, low = f.divmod(power, step)
        a, b = (_scalar_entry(f, table, at) for table, at in ((coarse, high), (fine, low)))
        re = f.op(f"fsub double {_fmul(f, a[0], b[0])}, {_fmul(f, a[1], b[1])}")
        im = f.op(f"fadd double {_fmul(f, a[0], b[1])}, {_fmul(f, a[1], b[0])}")
        if v.scalar == "float":
            re, im = (f.op(f"fptrunc double {part} to float") for part in (re, im))
        factor_of_block = (v.splat(re), v.splat(im))
        return v.cmul(x, v.cmul(factor_of_block, v.load(by_lane, index, pairs=False)))

    return post


def _fmul(f: Function, x: str, y: str) -> str:
    return f.op(f"fmul double {x}, {y}")


def _scalar_entry(f: Function, table: str, index: str) -> Complex:
    at = f.mul(index, 2)
    return (
        f.load("double", f.element(table, "double", at)),
        f.load("double", f.element(table, "double", f.add(at, 1))),
    )


def _stockham(work: _Work, n: int, sign: int, *, pairs: bool, post: Post | None = None) -> None:
    """Transform the data; `pairs`: that is how it comes and how it is left."""
    plan = stages(n) or [Stage(1, 1, 1)]
    for number, stage in enumerate(plan):
        is_last = number == len(plan) - 1
        forms = (pairs and number == 0, pairs and is_last)
        _stage(work, stage, sign, forms, post if is_last else None)


def _stage(
    work: _Work, stage: Stage, sign: int, pairs: tuple[bool, bool], post: Post | None
) -> None:
    v, (source, target) = work.v, work.arrays
    f, radix, outer, inner = v.f, stage.radix, stage.outer, stage.inner
    table = work.tables.add(stage.twiddles(sign)) if inner > 1 else ""
    with f.loop(0, outer) as k, f.loop(0, inner) as i:
        x = [
            v.load(source, f.add(i, f.mul(inner, f.add(j, f.mul(radix, k)))), pairs[0])
            for j in range(radix)
        ]
        for j, y in enumerate(v.dft(x, sign)):
            if j and inner > 1:
                y = v.cmul(y, v.table_entry(table, f.add(f.mul(i, radix - 1), j - 1)))
            index = f.add(i, f.mul(inner, f.add(k, outer * j)))
            v.store(y if post is None else post(v, y, index), target, index, pairs[1])
    work.flip()


def _bluestein(work: _Work, spec: LineSpec, post: Post) -> None:
    v, n = work.v, spec.n
    f, plan = v.f, Bluestein(n, work_length(n))
    chirp = work.tables.add(plan.chirp(spec.sign))
    spectrum = work.tables.add(plan.spectrum(spec.sign))
    source, target = work.arrays
    with f.loop(0, n) as j:
        x = v.cmul(v.load(source, j, pairs=True), v.table_entry(chirp, j))
        v.store(x, target, j, pairs=False)
    zero = v.constant(0.0)
    with f.loop(n, plan.padded) as j:
        v.store((zero, zero), target, j, pairs=False)
    work.flip()
    _stockham(work, plan.padded, -1, pairs=False)
    data = work.arrays[0]
    with f.loop(0, plan.padded) as j:
        x = v.cmul(v.load(data, j, pairs=False), v.table_entry(spectrum, j))
        v.store(x, data, j, pairs=False)
    _stockham(work, plan.padded, 1, pairs=False)
    source, target = work.arrays
    with f.loop(0, n) as k:
        x = v.cmul(v.load(source, k, pairs=False), v.table_entry(chirp, k))
        v.store(post(v, x, k), target, k, pairs=True)
    work.flip()
