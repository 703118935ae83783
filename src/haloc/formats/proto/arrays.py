"""Packed numbers as NumPy arrays."""

from __future__ import annotations

import numpy as np

from haloc.errors import HloParseError
from haloc.formats.proto.table import ARRAY_DTYPES

_FIXED = ("float", "double")
_LONGEST = 10
"""Bytes of the longest varint: 64 bits, 7 a byte."""


def decode_packed(data: bytes, kind: str) -> np.ndarray:
    """The numbers of a packed field of a numeric kind. Raises HloParseError."""
    dtype = ARRAY_DTYPES[kind]
    if kind in _FIXED:
        if len(data) % dtype.itemsize:
            raise HloParseError(f"{len(data)} bytes of packed {kind}s of {dtype.itemsize} bytes")
        return np.frombuffer(data, dtype)
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw < 0x80)
    if ends.size == raw.size:
        return raw.astype(dtype)
    if not ends.size or ends[-1] != raw.size - 1:
        raise HloParseError(f"{raw.size} bytes of packed numbers end within a number")
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    if lengths.max() > _LONGEST:
        raise HloParseError(f"a packed number has more than {_LONGEST} bytes")
    place = np.arange(raw.size) - np.repeat(starts, lengths)
    parts = (raw & 0x7F).astype(np.uint64) << (7 * place).astype(np.uint64)
    values = np.bitwise_or.reduceat(parts, starts)
    return values != 0 if kind == "bool" else values.view(np.int64).astype(dtype)


def encode_packed(values: np.ndarray, kind: str) -> bytes:
    """The packed form of a flat array."""
    dtype = ARRAY_DTYPES[kind]
    array = np.ascontiguousarray(values, dtype)
    if kind in _FIXED:
        return array.tobytes()
    if kind == "bool":
        return array.view(np.uint8).tobytes()
    wide = array.astype(np.int64).view(np.uint64) if dtype.kind == "i" else array.astype(np.uint64)
    if wide.size == 0 or wide.max() < 0x80:
        return wide.astype(np.uint8).tobytes()
    lengths = np.ones(wide.size, np.int64)
    for count in range(1, _LONGEST):
        lengths += wide >= np.uint64(1 << 7 * count)
    starts = np.cumsum(lengths) - lengths
    place = np.arange(int(lengths.sum())) - np.repeat(starts, lengths)
    parts = np.repeat(wide, lengths) >> (7 * place).astype(np.uint64)
    more = place < np.repeat(lengths, lengths) - 1
    return (
        ((parts & np.uint64(0x7F)) | (more.astype(np.uint64) << np.uint64(7)))
        .astype(np.uint8)
        .tobytes()
    )
