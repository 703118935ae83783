"""Numbers and arrays as the entries write them: APInt, APFloat, and blobs of elements."""

from __future__ import annotations

import math
import re

import ml_dtypes
import numpy as np

from haloc.formats.stablehlo.bytecode.cursor import ByteCursor
from haloc.formats.stablehlo.mlir import DenseElements, RankedTensor

SPLAT_LIMIT_BYTES = 1 << 46
"""How large a splat may claim to be; NumPy cannot describe much more."""

FLOATS: dict[str, np.dtype] = {
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "f8E4M3": np.dtype(ml_dtypes.float8_e4m3),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "f8E4M3B11FNUZ": np.dtype(ml_dtypes.float8_e4m3b11fnuz),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "f8E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "f8E3M4": np.dtype(ml_dtypes.float8_e3m4),
    "f8E8M0FNU": np.dtype(ml_dtypes.float8_e8m0fnu),
    "f6E2M3FN": np.dtype(ml_dtypes.float6_e2m3fn),
    "f6E3M2FN": np.dtype(ml_dtypes.float6_e3m2fn),
    "f4E2M1FN": np.dtype(ml_dtypes.float4_e2m1fn),
}
_FLOAT_BITS = {"f6E2M3FN": 6, "f6E3M2FN": 6, "f4E2M1FN": 4}

INTEGERS: dict[str, np.dtype] = {
    "i1": np.dtype(np.bool_),
    "i2": np.dtype(ml_dtypes.int2),
    "i4": np.dtype(ml_dtypes.int4),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "ui2": np.dtype(ml_dtypes.uint2),
    "ui4": np.dtype(ml_dtypes.uint4),
    "ui8": np.dtype(np.uint8),
    "ui16": np.dtype(np.uint16),
    "ui32": np.dtype(np.uint32),
    "ui64": np.dtype(np.uint64),
    "index": np.dtype(np.int64),
}

ELEMENTS: dict[str, np.dtype] = {
    **INTEGERS,
    **FLOATS,
    "complex<f32>": np.dtype(np.complex64),
    "complex<f64>": np.dtype(np.complex128),
}

_INTEGER = re.compile(r"(u|s)?i(\d{1,4})")


def integer_bits(name: str) -> int | None:
    """The width of an integer type ("i32", "ui8", "index"), None for any other."""
    if name == "index":
        return 64
    found = _INTEGER.fullmatch(name)
    return int(found[2]) if found else None


def read_bits(cursor: ByteCursor, width: int) -> int:
    """An APInt: the bits as an unsigned number."""
    if width <= 8:
        value = cursor.byte("an integer")
    elif width <= 64:
        value = cursor.svarint("an integer")
    else:
        words = cursor.signed_list("words of an integer")
        value = sum((word & (1 << 64) - 1) << 64 * i for i, word in enumerate(words))
    return value & (1 << width) - 1


def read_integer(cursor: ByteCursor, name: str) -> int:
    """An APInt of a type, in that type's range; a signless type counts as signed."""
    width = integer_bits(name)
    if width is None or width == 0:
        cursor.fail(f"an integer of type {name}, expected an integer type")
    bits = read_bits(cursor, width)
    if not name.startswith("u") and bits >> (width - 1) and width > 1:
        bits -= 1 << width
    return bits


def read_float(cursor: ByteCursor, name: str) -> float:
    """An APFloat: an APInt of the bits."""
    dtype = FLOATS.get(name)
    if dtype is None:
        cursor.fail(f"a float of type {name}, expected one of {', '.join(FLOATS)}")
    bits = read_bits(cursor, _FLOAT_BITS.get(name, dtype.itemsize * 8))
    return float(np.frombuffer(bits.to_bytes(dtype.itemsize, "little"), dtype)[0])


def dense_elements(cursor: ByteCursor, type: RankedTensor, blob: bytes) -> DenseElements:
    """The array of a blob: every element, or one that stands for all."""
    name = type.element
    dtype = ELEMENTS.get(name) if isinstance(name, str) else None
    if dtype is None:
        cursor.fail(f"elements of type {name}, expected one of {', '.join(ELEMENTS)}")
    if len(type.dims) > 32:
        cursor.fail(f"elements of rank {len(type.dims)}, expected at most 32")
    dims = [d for d in type.dims if d is not None]
    if len(dims) != len(type.dims) or any(d < 0 for d in dims):
        cursor.fail(f"elements of {type}, expected static sizes")
    total = math.prod(dims)
    if math.prod([max(d, 1) for d in dims]) * dtype.itemsize > SPLAT_LIMIT_BYTES:
        cursor.fail(f"elements of {type}, larger than any memory")
    flat = _booleans(cursor, blob, total) if name == "i1" else _flat(name, dtype, blob)
    if flat is None or len(flat) not in (total, 1):
        cursor.fail(f"{len(blob)} bytes of data for {type}")
    array = flat.reshape(dims) if len(flat) == total else np.broadcast_to(flat[0], dims)
    array.flags.writeable = False
    return DenseElements(type, array)


def _booleans(cursor: ByteCursor, blob: bytes, total: int) -> np.ndarray | None:
    if len(blob) == total and total > 1:  # one byte each, as XLA's older versions wrote them
        return np.frombuffer(blob, np.uint8) != 0
    if len(blob) == 1 and blob[0] in (0x00, 0xFF):
        return np.full(1, blob[0] != 0)
    if len(blob) == 1 and total == 1:
        return np.full(1, bool(blob[0] & 1))
    if len(blob) != (total + 7) // 8:
        return None
    return np.unpackbits(np.frombuffer(blob, np.uint8), count=total, bitorder="little").view(bool)


def _flat(name: str | object, dtype: np.dtype, blob: bytes) -> np.ndarray | None:
    if len(blob) % dtype.itemsize:
        return None
    if name in ("i2", "i4"):
        bits = 2 if name == "i2" else 4
        half = 1 << (bits - 1)
        raw = np.frombuffer(blob, np.uint8) & ((1 << bits) - 1)
        return ((raw.astype(np.int8) ^ half) - half).astype(dtype)
    if name in ("ui2", "ui4"):
        return (np.frombuffer(blob, np.uint8) & (3 if name == "ui2" else 15)).astype(dtype)
    return np.frombuffer(blob, dtype)
