"""Transforms of n real values as transforms of m = n / 2 complex ones, z_j = x_2j + i x_(2j+1).

With Z and X the transforms of z and x, w = exp(-2 pi i / n), a = Z_k, b = Z_(m-k):
s = a + conj b, d = a - conj b, X_k = (s - i w^k d) / 2 and X_(m-k) = conj(s + i w^k d) / 2.
The way back has the same form: Z_k = s + i w^-k d from a = X_k, b = X_(m-k), but for a factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from haloc.codegen.kernel import PREFIX, Phase
from haloc.cpu.fft.plan import roots
from haloc.cpu.fft.vectors import Complex, Tables, Vectors
from haloc.cpu.writer import Function

MAX_LENGTH = 1 << 16
"""Longer transforms take all values as complex ones: the table of factors would be too big."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """Between Z and X, for `lines` lines of n values.

    source, target: a buffer, or an offset in scratch in bytes; may be the same. sign: -1 from Z to
    X, 1 back. Lines of X are m + 1 elements apart, of Z: `z_stride`.
    """

    n: int
    lines: int
    source: str | int
    target: str | int
    sign: int
    z_stride: int

    @property
    def is_forward(self) -> bool:
        return self.sign < 0


def emit_conversion(
    name: str, c: Conversion, scalar: str, lanes: int, tables: Tables
) -> tuple[str, Phase]:
    m = c.n // 2
    k = np.arange(m // 2 + 1)
    # -i w^k, or i w^-k.
    table = tables.add(roots(c.sign, k, c.n) * (1j * c.sign))
    f = Function(f"{PREFIX}.{name}", "ptr %b0, ptr %b1, ptr %scratch, i64 %begin, i64 %end")
    vector, single = Vectors(f, scalar, lanes), Vectors(f, scalar, 1)
    strides = (c.z_stride, m + 1) if c.is_forward else (m + 1, c.z_stride)
    blocks = (m - 1) // (2 * lanes)
    with f.loop("%begin", "%end") as line:
        source, target = (
            _row(f, pointer, f.mul(line, stride), single.pair_type)
            for pointer, stride in zip((c.source, c.target), strides, strict=True)
        )
        line_code = _Line(c, m, table, source, target)
        line_code.first(single)
        with f.loop(1, 1 + blocks * lanes, lanes) as k0:
            line_code.pair(vector, k0)
        with f.loop(1 + blocks * lanes, m // 2 + 1) as k0:
            line_code.pair(single, k0)
    return f.text(), Phase(f"{PREFIX}.{name}", c.lines, 0.5 * m)


def _row(f: Function, pointer: str | int, offset: str, pair: str) -> str:
    if isinstance(pointer, int):
        pointer = f.op(f"getelementptr i8, ptr %scratch, i64 {pointer}")
    return f.element(pointer, pair, offset)


@dataclass(frozen=True, slots=True)
class _Line:
    c: Conversion
    m: int
    table: str
    source: str
    target: str

    def first(self, v: Vectors) -> None:
        """k = 0, where b is Z_0 going forward and X_m coming back; X_0 and X_m are real."""
        a = self._load(v, "0")
        if self.c.is_forward:
            zero = v.constant(0.0)
            self._store(v, (v.add(a[0], a[1]), zero), "0")
            self._store(v, (v.sub(a[0], a[1]), zero), str(self.m))
            return
        b = self._load(v, str(self.m))
        self._store(v, (v.add(a[0], b[0]), v.sub(a[0], b[0])), "0")

    def pair(self, v: Vectors, k: str) -> None:
        """Elements k + lane and m - k - lane."""
        f = v.f
        mirror = f.sub(self.m - v.lanes + 1, k)
        a = self._load(v, k)
        b = v.reverse(self._load(v, mirror))
        s = v.add(a[0], b[0]), v.sub(a[1], b[1])
        d = v.sub(a[0], b[0]), v.add(a[1], b[1])
        at = f.element(self.table, f"<2 x {v.scalar}>", k)
        t = v.cmul(v.load(at, "0", pairs=True), d)
        low, high = v.cadd(s, t), v.csub(s, t)
        if self.c.is_forward:
            low, high = (v.scale(x, v.constant(0.5)) for x in (low, high))
        self._store(v, low, k)
        self._store(v, v.reverse((high[0], v.negate(high[1]))), mirror)

    def _load(self, v: Vectors, index: str) -> Complex:
        place = v.f.element(self.source, f"<2 x {v.scalar}>", index)
        return v.load(place, "0", pairs=True)

    def _store(self, v: Vectors, x: Complex, index: str) -> None:
        place = v.f.element(self.target, f"<2 x {v.scalar}>", index)
        v.store(x, place, "0", pairs=True)
