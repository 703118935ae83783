"""Eigenvectors of a real matrix, from LAPACK's pairs of real columns to complex ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from haloc.cpu.writer import Function
from haloc.ir.dtype import DType

_N = ord("N")
_IMAGINARY, _LEFT, _RIGHT = 6, 7, 9
"""Argument numbers of wi, vl and vr in {s,d}geev."""


def join_conjugate_pairs(dtype: DType, n: int, left: int, right: int) -> Callable[..., None]:
    """The `finish` of a real geev: results 2 and 3 from the columns and eigenvalues.

    Where eigenvalue j has a positive imaginary part, columns j and j+1 are the real and imaginary
    parts of its vector, and eigenvalue j+1 has the conjugate one. Vectors not computed are zero.
    left, right: the job letters' codes.
    """

    def finish(f: Function, frame: Any) -> None:
        t = {"f32": "float", "f64": "double"}[dtype.name]
        imaginary = frame.places[_IMAGINARY]
        for number, job, argument in ((2, left, _LEFT), (3, right, _RIGHT)):
            if job == _N:
                frame.zero_result(number)
            else:
                _join(f, t, n, (frame.places[argument], imaginary, frame.result(number)))

    return finish


def _join(f: Function, t: str, n: int, arrays: tuple[str, str, str]) -> None:
    """arrays: the real columns, the eigenvalues' imaginary parts, and n x n complex results."""
    columns, imaginary, out = arrays
    with f.loop(0, n) as j:
        part = f.load(t, f.element(imaginary, t, j))
        is_second = f.op(f"fcmp olt {t} {part}, 0.0")
        is_real = f.op(f"fcmp oeq {t} {part}, 0.0")
        first = f.op(f"select i1 {is_second}, i64 {f.sub(j, 1)}, i64 {j}")
        second = f.op(f"select i1 {is_real}, i64 {j}, i64 {f.add(first, 1)}")
        with f.loop(0, n) as i:
            re = f.load(t, f.element(columns, t, f.add(f.mul(first, n), i)))
            im = f.load(t, f.element(columns, t, f.add(f.mul(second, n), i)))
            im = f.op(f"select i1 {is_second}, {t} {f.op(f'fneg {t} {im}')}, {t} {im}")
            im = f.op(f"select i1 {is_real}, {t} 0.0, {t} {im}")
            at = f.mul(f.add(f.mul(i, n), j), 2)
            f.store(t, re, f.element(out, t, at))
            f.store(t, im, f.element(out, t, f.add(at, 1)))
