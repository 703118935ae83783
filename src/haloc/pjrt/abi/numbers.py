"""Enums of the PJRT C API."""

from __future__ import annotations

from enum import IntEnum

from haloc.errors import UnimplementedError
from haloc.ir.dtype import DType, dtype_from_name

BUFFER_TYPES = [
    "invalid",
    "pred",
    "s8",
    "s16",
    "s32",
    "s64",
    "u8",
    "u16",
    "u32",
    "u64",
    "f16",
    "f32",
    "f64",
    "bf16",
    "c64",
    "c128",
    "f8e5m2",
    "f8e4m3fn",
    "f8e4m3b11fnuz",
    "f8e5m2fnuz",
    "f8e4m3fnuz",
    "s4",
    "u4",
    "token",
    "s2",
    "u2",
    "f8e4m3",
    "f8e3m4",
    "f8e8m0fnu",
    "f4e2m1fn",
]
"""HLO's names by the number of the PJRT_Buffer_Type."""


class HostBufferSemantics(IntEnum):
    IMMUTABLE_ONLY_DURING_CALL = 0
    IMMUTABLE_UNTIL_TRANSFER_COMPLETES = 1
    IMMUTABLE_ZERO_COPY = 2
    MUTABLE_ZERO_COPY = 3


class NamedValueType(IntEnum):
    STRING = 0
    INT64 = 1
    INT64_LIST = 2
    FLOAT = 3
    BOOL = 4


def buffer_type_of(dtype: DType) -> int:
    return BUFFER_TYPES.index(dtype.name)


def dtype_of_buffer_type(number: int) -> DType:
    """UnimplementedError for a number that haloc does not know."""
    if not 0 < number < len(BUFFER_TYPES):
        raise UnimplementedError(f"PJRT_Buffer_Type {number} is not known to haloc")
    return dtype_from_name(BUFFER_TYPES[number])
