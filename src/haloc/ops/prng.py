"""The counter-based generators of rng-bit-generator, in NumPy and as HLO, bit-exact with XLA:CPU.

Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3" (2011). Each generator is
written once, over an `Arithmetic`: NumPy arrays for `evaluate`, instructions for the expansion.
"""

from __future__ import annotations

from math import prod
from typing import Any, Protocol

import numpy as np

from haloc.ir.dtype import U32, U64, DType
from haloc.ir.module import HloInstruction
from haloc.ops.expand import Beside

U32s = Any
"""An array of u32, or an instruction giving one."""


class Arithmetic(Protocol):
    """Unsigned integer arrays: constants fit the array beside them; results wrap."""

    def add(self, x: U32s, y: U32s) -> U32s: ...
    def add_constant(self, x: U32s, number: int) -> U32s: ...
    def xor(self, x: U32s, y: U32s) -> U32s: ...
    def xor_constant(self, x: U32s, number: int) -> U32s: ...
    def or_(self, x: U32s, y: U32s) -> U32s: ...
    def shift(self, x: U32s, left: int) -> U32s:
        """x * 2**left; towards the right, filled with zeros, when left is negative."""
        ...

    def convert(self, x: U32s, dtype: DType) -> U32s: ...
    def multiply_constant(self, x: U32s, number: int) -> U32s: ...
    def less(self, x: U32s, y: U32s) -> U32s:
        """x < y as 0 or 1 of x's type."""
        ...

    def iota(self, count: int) -> U32s:
        """u64[count]: 0, 1, ..."""
        ...

    def element(self, state: U32s, number: int, count: int) -> U32s:
        """state[number], count times: of the state's type."""
        ...

    def interleave(self, parts: list[U32s], dims: tuple[int, ...], dim: int) -> U32s:
        """Parts reshaped to dims; their elements take turns along `dim` of the result."""
        ...

    def cut(self, x: U32s, dims: tuple[int, ...]) -> U32s:
        """The leading part of x along every dimension."""
        ...

    def reshape(self, x: U32s, dims: tuple[int, ...]) -> U32s: ...


def halves(a: Arithmetic, x: U32s) -> tuple[U32s, U32s]:
    """The low and the high 32 bits of u64s."""
    return a.convert(x, U32), a.convert(a.shift(x, -32), U32)


def joined(a: Arithmetic, low: U32s, high: U32s) -> U32s:
    return a.or_(a.convert(low, U64), a.shift(a.convert(high, U64), 32))


def three_fry(
    a: Arithmetic, key: tuple[U32s, U32s], counter: tuple[U32s, U32s]
) -> tuple[U32s, U32s]:
    """Threefry-2x32 with 20 rounds."""
    keys = (*key, a.xor_constant(a.xor(*key), 0x1BD11BDA))
    x, y = a.add(counter[0], keys[0]), a.add(counter[1], keys[1])
    for group in range(5):
        for rotation in (13, 15, 26, 6) if group % 2 == 0 else (17, 29, 16, 24):
            x = a.add(x, y)
            y = a.xor(a.or_(a.shift(y, rotation), a.shift(y, rotation - 32)), x)
        x = a.add(x, keys[(group + 1) % 3])
        y = a.add(a.add_constant(y, group + 1), keys[(group + 2) % 3])
    return x, y


def philox(
    a: Arithmetic, key: tuple[U32s, U32s], counter: tuple[U32s, U32s, U32s, U32s]
) -> tuple[U32s, U32s, U32s, U32s]:
    """Philox-4x32 with 10 rounds."""
    k0, k1 = key
    x0, x1, x2, x3 = counter
    for _ in range(10):
        low0, high0 = halves(a, a.multiply_constant(a.convert(x0, U64), 0xD2511F53))
        low2, high2 = halves(a, a.multiply_constant(a.convert(x2, U64), 0xCD9E8D57))
        x0, x1 = a.xor(a.xor(high2, x1), k0), low2
        x2, x3 = a.xor(a.xor(high0, x3), k1), low0
        k0, k1 = a.add_constant(k0, 0x9E3779B9), a.add_constant(k1, 0xBB67AE85)
    return x0, x1, x2, x3


def three_fry_bits(
    a: Arithmetic, state: U32s, dims: tuple[int, ...], bits: int
) -> tuple[U32s, int]:
    """u32 (or, for 64 bits, u64) values of `dims`, and by how much the counter state[1] grows.

    Fewer than 32 bits are the low ones of 32. Up to 32 bits, the two words of a counter are
    neighbours along the first even dimension, or else the first of the largest.
    """
    if bits == 64:
        count = prod(dims)
        return a.reshape(joined(a, *_three_fry_words(a, state, count)), dims), count
    whole = dims or (1,)
    even = [d for d, size in enumerate(whole) if size % 2 == 0]
    dim = even[0] if even else whole.index(max(whole))
    half = (*whole[:dim], -(-whole[dim] // 2), *whole[dim + 1 :])
    count = prod(half)
    words = _three_fry_words(a, state, count)
    return a.reshape(a.cut(a.interleave(list(words), half, dim), whole), dims), count


def _three_fry_words(a: Arithmetic, state: U32s, count: int) -> tuple[U32s, U32s]:
    counter = a.add(a.iota(count), a.element(state, 1, count))
    return three_fry(a, halves(a, a.element(state, 0, count)), halves(a, counter))


def philox_bits(
    a: Arithmetic, state: U32s, state_size: int, dims: tuple[int, ...], bits: int
) -> tuple[U32s, int]:
    """u32 (or u64) values of `dims`, and by how much the 128-bit counter state[1:3] grows.

    Elements follow each other through the words of consecutive counters. A state of two has the
    key, state[0], for the counter's high half, which then stays as it is.
    """
    total = prod(dims)
    each = 2 if bits == 64 else 4
    count = -(-total // each)
    low_start = a.element(state, 1, count)
    low = a.add(a.iota(count), low_start)
    high_start = a.element(state, 2 if state_size == 3 else 0, count)
    high = a.add(high_start, a.less(low, low_start))
    key = halves(a, a.element(state, 0, count))
    words = philox(a, key, (*halves(a, low), *halves(a, high)))
    parts = list(words)
    if bits == 64:
        parts = [joined(a, *words[:2]), joined(a, *words[2:])]
    return a.reshape(a.cut(a.interleave(parts, (count,), 0), (total,)), dims), count


class Arrays:
    """`Arithmetic` on NumPy arrays."""

    def add(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x + y

    def add_constant(self, x: np.ndarray, number: int) -> np.ndarray:
        return x + np.full(x.shape, number, x.dtype)

    def xor(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x ^ y

    def xor_constant(self, x: np.ndarray, number: int) -> np.ndarray:
        return x ^ np.full(x.shape, number, x.dtype)

    def or_(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x | y

    def shift(self, x: np.ndarray, left: int) -> np.ndarray:
        amount = np.full(x.shape, abs(left), x.dtype)
        return x << amount if left >= 0 else x >> amount

    def convert(self, x: np.ndarray, dtype: DType) -> np.ndarray:
        return x.astype(dtype.numpy)

    def multiply_constant(self, x: np.ndarray, number: int) -> np.ndarray:
        return x * np.full(x.shape, number, x.dtype)

    def less(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (x < y).astype(x.dtype)

    def iota(self, count: int) -> np.ndarray:
        return np.arange(count, dtype=np.uint64)

    def element(self, state: np.ndarray, number: int, count: int) -> np.ndarray:
        return np.full(count, state[number], state.dtype)

    def interleave(self, parts: list[np.ndarray], dims: tuple[int, ...], dim: int) -> np.ndarray:
        stacked = np.stack([p.reshape(dims) for p in parts], axis=dim + 1)
        return stacked.reshape(*dims[:dim], dims[dim] * len(parts), *dims[dim + 1 :])

    def cut(self, x: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
        return x[tuple(slice(n) for n in dims)]

    def reshape(self, x: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
        return x.reshape(dims)


class Instructions:
    """`Arithmetic` on instructions, added beside a given one."""

    def __init__(self, beside: Beside):
        self.beside = beside

    def add(self, x: HloInstruction, y: HloInstruction) -> HloInstruction:
        return self.beside.binary("add", x, y)

    def add_constant(self, x: HloInstruction, number: int) -> HloInstruction:
        return self.beside.binary("add", x, self.beside.like(x, number))

    def xor(self, x: HloInstruction, y: HloInstruction) -> HloInstruction:
        return self.beside.binary("xor", x, y)

    def xor_constant(self, x: HloInstruction, number: int) -> HloInstruction:
        return self.beside.binary("xor", x, self.beside.like(x, number))

    def or_(self, x: HloInstruction, y: HloInstruction) -> HloInstruction:
        return self.beside.binary("or", x, y)

    def shift(self, x: HloInstruction, left: int) -> HloInstruction:
        opcode = "shift-left" if left >= 0 else "shift-right-logical"
        return self.beside.binary(opcode, x, self.beside.like(x, abs(left)))

    def convert(self, x: HloInstruction, dtype: DType) -> HloInstruction:
        return self.beside.convert(x, dtype)

    def multiply_constant(self, x: HloInstruction, number: int) -> HloInstruction:
        return self.beside.binary("multiply", x, self.beside.like(x, number))

    def less(self, x: HloInstruction, y: HloInstruction) -> HloInstruction:
        return self.beside.convert(self.beside.compare(x, y, "LT"), x.shape.dtype)

    def iota(self, count: int) -> HloInstruction:
        return self.beside.iota(U64, (count,), 0)

    def element(self, state: HloInstruction, number: int, count: int) -> HloInstruction:
        one = self.beside.slice(state, (number, number + 1, 1))
        return self.beside.broadcast(self.beside.reshape(one, ()), (count,), ())

    def interleave(
        self, parts: list[HloInstruction], dims: tuple[int, ...], dim: int
    ) -> HloInstruction:
        apart = [self.beside.reshape(p, (*dims[: dim + 1], 1, *dims[dim + 1 :])) for p in parts]
        joined = self.beside.concatenate(apart, dim + 1)
        whole = (*dims[:dim], dims[dim] * len(parts), *dims[dim + 1 :])
        return self.beside.reshape(joined, whole)

    def cut(self, x: HloInstruction, dims: tuple[int, ...]) -> HloInstruction:
        if x.shape.dims == dims:
            return x
        return self.beside.slice(x, *((0, n, 1) for n in dims))

    def reshape(self, x: HloInstruction, dims: tuple[int, ...]) -> HloInstruction:
        return self.beside.reshape(x, dims)
