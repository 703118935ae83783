"""Complex arithmetic on vector registers, one lane a line, and small transforms of registers."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

from haloc.codegen.kernel import PREFIX
from haloc.cpu.writer import Function

Complex = tuple[str, str]
"""Registers of the real and the imaginary parts."""


@dataclass
class Tables:
    """Constant arrays of numbers, by the symbols that `Kernel.data` gives them. dtype: float32 or
    float64."""

    dtype: np.dtype
    data: dict[str, bytes] = field(default_factory=dict)

    def add(self, values: np.ndarray, dtype: np.dtype | None = None) -> str:
        """The name of a global holding complex values as pairs."""
        dtype = dtype or self.dtype
        flat = np.ascontiguousarray(values, np.complex128).reshape(-1).view(np.float64)
        symbol = f"{PREFIX}.table{len(self.data)}"
        self.data[symbol] = flat.astype(dtype).tobytes()
        return f"@{symbol}"


class Vectors:
    """Emits arithmetic on <lanes x float or double> into a function."""

    def __init__(self, f: Function, scalar: str, lanes: int):
        self.f = f
        self.scalar = scalar
        self.lanes = lanes
        self.type = f"<{lanes} x {scalar}>"
        self.pair_type = f"<{2 * lanes} x {scalar}>"
        self.bytes = 4 if scalar == "float" else 8
        self._suffix = f"v{lanes}f{8 * self.bytes}"

    @property
    def declares(self) -> tuple[str, ...]:
        t = self.type
        return (f"declare {t} @llvm.fmuladd.{self._suffix}({t}, {t}, {t})",)

    # --- Real vectors --------------------------------------------------------------------------

    def constant(self, x: float) -> str:
        x = float(np.float32(x)) if self.scalar == "float" else float(x)
        return f"splat ({self.scalar} 0x{struct.pack('>d', x).hex().upper()})"

    def add(self, x: str, y: str) -> str:
        return self.f.op(f"fadd {self.type} {x}, {y}")

    def sub(self, x: str, y: str) -> str:
        return self.f.op(f"fsub {self.type} {x}, {y}")

    def mul(self, x: str, y: str) -> str:
        return self.f.op(f"fmul {self.type} {x}, {y}")

    def negate(self, x: str) -> str:
        return self.f.op(f"fneg {self.type} {x}")

    def muladd(self, x: str, y: str, z: str) -> str:
        t = self.type
        return self.f.op(f"call {t} @llvm.fmuladd.{self._suffix}({t} {x}, {t} {y}, {t} {z})")

    def splat(self, x: str) -> str:
        n = self.lanes
        one = self.f.op(f"insertelement {self.type} poison, {self.scalar} {x}, i64 0")
        return self.f.op(
            f"shufflevector {self.type} {one}, {self.type} poison, <{n} x i32> zeroinitializer"
        )

    # --- Complex vectors -----------------------------------------------------------------------

    def cadd(self, x: Complex, y: Complex) -> Complex:
        return self.add(x[0], y[0]), self.add(x[1], y[1])

    def csub(self, x: Complex, y: Complex) -> Complex:
        return self.sub(x[0], y[0]), self.sub(x[1], y[1])

    def cmul(self, x: Complex, y: Complex) -> Complex:
        re = self.muladd(x[0], y[0], self.negate(self.mul(x[1], y[1])))
        return re, self.muladd(x[0], y[1], self.mul(x[1], y[0]))

    def scale(self, x: Complex, factor: str) -> Complex:
        return self.mul(x[0], factor), self.mul(x[1], factor)

    def turn(self, x: Complex, sign: int) -> Complex:
        """x * i * sign."""
        return (self.negate(x[1]), x[0]) if sign > 0 else (x[1], self.negate(x[0]))

    def reverse(self, x: Complex) -> Complex:
        """The lanes in the opposite order."""
        n, t = self.lanes, self.type
        order = ", ".join(f"i32 {n - 1 - i}" for i in range(n))
        re, im = (
            self.f.op(f"shufflevector {t} {part}, {t} poison, <{n} x i32> <{order}>") for part in x
        )
        return re, im

    def table_entry(self, table: str, index: str) -> Complex:
        """Complex number `index` of a table, in all lanes."""
        f, at = self.f, self.f.mul(index, 2)
        re = f.load(self.scalar, f.element(table, self.scalar, at))
        im = f.load(self.scalar, f.element(table, self.scalar, f.add(at, 1)))
        return self.splat(re), self.splat(im)

    # --- Memory: an array of lines is [index][lanes]; each index is a pair vector ----------------

    def load(self, array: str, index: str, pairs: bool) -> Complex:
        """pairs: (re, im) of each lane side by side; else all re, then all im."""
        f, n = self.f, self.lanes
        if pairs:
            both = f.load(self.pair_type, f.element(array, self.pair_type, index), self.bytes)
            return self._every_second(both, 0), self._every_second(both, 1)
        at = f.mul(index, 2)
        align = n * self.bytes
        return (
            f.load(self.type, f.element(array, self.type, at), align),
            f.load(self.type, f.element(array, self.type, f.add(at, 1)), align),
        )

    def store(self, x: Complex, array: str, index: str, pairs: bool) -> None:
        f, n = self.f, self.lanes
        if pairs:
            order = ", ".join(f"i32 {i // 2 + (i % 2) * n}" for i in range(2 * n))
            both = f.op(
                f"shufflevector {self.type} {x[0]}, {self.type} {x[1]}, <{2 * n} x i32> <{order}>"
            )
            f.store(self.pair_type, both, f.element(array, self.pair_type, index), self.bytes)
            return
        at = f.mul(index, 2)
        align = n * self.bytes
        f.store(self.type, x[0], f.element(array, self.type, at), align)
        f.store(self.type, x[1], f.element(array, self.type, f.add(at, 1)), align)

    def _every_second(self, both: str, first: int) -> str:
        n, t = self.lanes, self.pair_type
        order = ", ".join(f"i32 {2 * i + first}" for i in range(n))
        return self.f.op(f"shufflevector {t} {both}, {t} poison, <{n} x i32> <{order}>")

    # --- Transforms of registers -----------------------------------------------------------------

    def dft(self, x: list[Complex], sign: int) -> list[Complex]:
        """The transform of len(x) values with exp(sign 2 pi i jk / n)."""
        n = len(x)
        if n == 1:
            return x
        if n == 2:
            return [self.cadd(x[0], x[1]), self.csub(x[0], x[1])]
        return self._dft_odd(x, sign) if n % 2 else self._dft_even(x, sign)

    def _dft_even(self, x: list[Complex], sign: int) -> list[Complex]:
        half = len(x) // 2
        even, odd = self.dft(x[::2], sign), self.dft(x[1::2], sign)
        odd = [self._rotate(y, k, len(x), sign) for k, y in enumerate(odd)]
        first = [self.cadd(a, b) for a, b in zip(even, odd, strict=True)]
        return first + [self.csub(a, b) for a, b in zip(even[:half], odd, strict=True)]

    def _rotate(self, x: Complex, k: int, n: int, sign: int) -> Complex:
        """x exp(sign 2 pi i k / n), for n = 2, 4 or 8 and k below n / 2."""
        match 8 * k // n:
            case 0:
                return x
            case 2:
                return self.turn(x, sign)
            case eighth:
                start = x if eighth == 1 else self.turn(x, sign)
                # (a + bi)(1 + i sign) / sqrt 2
                both = self.cadd(start, self.turn(start, sign))
                return self.scale(both, self.constant(0.5**0.5))

    def _dft_odd(self, x: list[Complex], sign: int) -> list[Complex]:
        """With sums and differences of x_j and x_(n-j): half the products."""
        n, half = len(x), len(x) // 2
        sums = [self.cadd(x[j], x[n - j]) for j in range(1, half + 1)]
        differences = [self.csub(x[j], x[n - j]) for j in range(1, half + 1)]
        total = x[0]
        for s in sums:
            total = self.cadd(total, s)
        low, high = [], []
        for k in range(1, half + 1):
            a, b = x[0], ("", "")
            for j in range(1, half + 1):
                angle = 2 * np.pi * (j * k % n) / n
                cos, sin = self.constant(np.cos(angle)), self.constant(sign * np.sin(angle))
                s, d = sums[j - 1], differences[j - 1]
                a = self.muladd(s[0], cos, a[0]), self.muladd(s[1], cos, a[1])
                if j == 1:
                    b = self.scale(d, sin)
                else:
                    b = self.muladd(d[0], sin, b[0]), self.muladd(d[1], sin, b[1])
            # a + i b and a - i b
            low.append((self.sub(a[0], b[1]), self.add(a[1], b[0])))
            high.append((self.add(a[0], b[1]), self.sub(a[1], b[0])))
        return [total, *low, *reversed(high)]
