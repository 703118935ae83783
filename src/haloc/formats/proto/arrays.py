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
    pieces = range(0, ends.size, _CHUNK)
    parts = [_decode_some(raw, starts[i : i + _CHUNK], lengths[i : i + _CHUNK]) for i in pieces]
    values = np.concatenate(parts)
    return values != 0 if kind == "bool" else values.view(np.int64).astype(dtype)


def _decode_some(raw: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The 64-bit numbers whose varints begin at `starts`."""
    values = (raw[starts] & 0x7F).astype(np.uint64)
    longer = np.flatnonzero(lengths > 1)
    for place in range(1, _LONGEST):
        if not longer.size:
            break
        part = (raw[starts[longer] + place] & 0x7F).astype(np.uint64)
        values[longer] |= part << np.uint64(7 * place)
        longer = longer[lengths[longer] > place + 1]
    return values


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
    parts = [_encode_some(wide[i : i + _CHUNK]) for i in range(0, wide.size, _CHUNK)]
    return b"".join(parts)


_CHUNK = 1 << 14
"""Numbers converted at a time: their bytes stay in the cache."""


def _encode_some(wide: np.ndarray) -> bytes:
    """The varints of 64-bit numbers: a row of bytes each, of which those in use are taken."""
    rows = np.empty((wide.size, _LONGEST), np.uint8)
    used = np.ones((wide.size, _LONGEST), np.bool_)
    for place in range(_LONGEST):
        rest = wide >> np.uint64(7 * place)
        rows[:, place] = (rest & np.uint64(0x7F)) | (
            (rest > 0x7F).astype(np.uint64) << np.uint64(7)
        )
        if place:
            used[:, place] = rest != 0
    return rows[used].tobytes()
