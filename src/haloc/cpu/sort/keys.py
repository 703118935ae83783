"""Sort keys as unsigned integers: the smaller integer comes first."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from haloc.cpu.sort.comparator import SortKey
from haloc.cpu.writer import Function

WORD_BITS = 64


def key_bits(key: SortKey) -> int:
    """Width of one key in memory and as an integer."""
    return 8 * key.dtype.byte_size


def pack(keys: list[SortKey]) -> list[list[SortKey]]:
    """Keys in words of at most 64 bits, most significant word and key first."""
    words: list[list[SortKey]] = []
    used = WORD_BITS
    for key in keys:
        if used + key_bits(key) > WORD_BITS:
            words.append([])
            used = 0
        words[-1].append(key)
        used += key_bits(key)
    return words


def word_bits(word: list[SortKey]) -> int:
    return sum(key_bits(k) for k in word)


@dataclass(frozen=True, slots=True)
class KeyCode:
    """A key's arithmetic on registers of type i<bits>."""

    key: SortKey

    @property
    def bits(self) -> int:
        return key_bits(self.key)

    @property
    def _sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def _infinity(self) -> int:
        finfo = ml_dtypes.finfo(self.key.dtype.numpy)
        value = np.array(np.inf, finfo.dtype)
        return int.from_bytes(value.tobytes(), "little")

    def is_nan(self, f: Function, raw: str) -> str:
        magnitude = f.op(f"and i{self.bits} {raw}, {self._sign - 1}")
        return f.op(f"icmp ugt i{self.bits} {magnitude}, {self._infinity}")

    def is_zero(self, f: Function, raw: str) -> str:
        magnitude = f.op(f"and i{self.bits} {raw}, {self._sign - 1}")
        return f.op(f"icmp eq i{self.bits} {magnitude}, 0")

    def encode(self, f: Function, raw: str) -> str:
        """An element's bits -> its key."""
        key, t = self.key, f"i{self.bits}"
        if key.dtype.is_float:
            if key.nan is not None:
                raw = f.op(f"select i1 {self.is_nan(f, raw)}, {t} {key.nan}, {t} {raw}")
            if key.zero is not None:
                raw = f.op(f"select i1 {self.is_zero(f, raw)}, {t} {key.zero}, {t} {raw}")
            # Negative: all bits flipped. Positive: the sign bit flipped.
            negative = f.op(f"ashr {t} {raw}, {self.bits - 1}")
            raw = f.op(f"xor {t} {raw}, {f.op(f'or {t} {negative}, {self._sign}')}")
        elif key.dtype.is_integer:
            if key.dtype.bits < self.bits:  # a sub-byte type: only its low bits count
                raw = f.op(f"shl {t} {raw}, {self.bits - key.dtype.bits}")
            if key.dtype.is_signed:
                raw = f.op(f"xor {t} {raw}, {self._sign}")
        return f.op(f"xor {t} {raw}, -1") if key.is_descending else raw

    @property
    def is_invertible(self) -> bool:
        """Whether `decode` gives back every element but those that `canonical` names."""
        return not (self.key.dtype.is_integer and self.key.dtype.bits < self.bits)

    def decode(self, f: Function, code: str) -> str:
        """A key -> the element's bits (the canonical ones of a NaN or zero)."""
        key, t = self.key, f"i{self.bits}"
        if key.is_descending:
            code = f.op(f"xor {t} {code}, -1")
        if key.dtype.is_float:
            positive = f.op(f"ashr {t} {code}, {self.bits - 1}")
            flipped = f.op(f"xor {t} {positive}, -1")
            return f.op(f"xor {t} {code}, {f.op(f'or {t} {flipped}, {self._sign}')}")
        if key.dtype.is_signed:
            return f.op(f"xor {t} {code}, {self._sign}")
        return code

    def canonical(self) -> list[tuple[str, int]]:
        """Classes of elements that share one key: (method that tests for it, that key)."""
        key = self.key
        classes = []
        if key.dtype.is_float and key.nan is not None:
            classes.append(("is_nan", self._encode_constant(key.nan)))
        if key.dtype.is_float and key.zero is not None:
            classes.append(("is_zero", self._encode_constant(key.zero)))
        return classes

    def _encode_constant(self, raw: int) -> int:
        mask = (1 << self.bits) - 1
        code = raw ^ mask if raw & self._sign else raw ^ self._sign
        return code ^ mask if self.key.is_descending else code
