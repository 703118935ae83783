"""Element types: XLA's primitive types with their NumPy counterparts.

There is one `DType` object per primitive type, so types compare by identity.
"""

from __future__ import annotations

from enum import Enum

import ml_dtypes
import numpy as np

from haloc.errors import InvalidArgumentError


class Kind(Enum):
    """What arithmetic a type supports."""

    PRED = "pred"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    COMPLEX = "complex"
    TOKEN = "token"
    OPAQUE = "opaque"
    BUFFER = "buffer"
    TUPLE = "tuple"


class DType:
    """One primitive type.

    name: HLO spelling ("f32"). bits: significant bits per element. number: value in XLA's
    PrimitiveType enum. numpy: element type of arrays of it (sub-byte types use one byte per
    element in memory), or None for token, opaque and tuple.
    """

    __slots__ = ("bits", "kind", "name", "number", "numpy")

    def __init__(self, name: str, kind: Kind, bits: int, number: int, numpy: object = None):
        self.name = name
        self.kind = kind
        self.bits = bits
        self.number = number
        self.numpy = None if numpy is None else np.dtype(numpy)  # type: ignore[call-overload]

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (dtype_from_name, (self.name,))

    @property
    def is_pred(self) -> bool:
        return self.kind is Kind.PRED

    @property
    def is_signed(self) -> bool:
        return self.kind is Kind.SIGNED

    @property
    def is_unsigned(self) -> bool:
        return self.kind is Kind.UNSIGNED

    @property
    def is_integer(self) -> bool:
        return self.kind is Kind.SIGNED or self.kind is Kind.UNSIGNED

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def is_complex(self) -> bool:
        return self.kind is Kind.COMPLEX

    @property
    def is_array(self) -> bool:
        """True for types that have elements: not token, opaque, buffer or tuple."""
        return self.numpy is not None

    @property
    def byte_size(self) -> int:
        """Bytes one element takes in host memory: sub-byte types are stored one per byte."""
        return self.numpy.itemsize if self.numpy is not None else 0

    @property
    def real(self) -> DType:
        """The component type of a complex type; the type itself otherwise."""
        return {"c64": F32, "c128": F64}.get(self.name, self)


PRED = DType("pred", Kind.PRED, 1, 1, np.bool_)
S2 = DType("s2", Kind.SIGNED, 2, 26, ml_dtypes.int2)
S4 = DType("s4", Kind.SIGNED, 4, 21, ml_dtypes.int4)
S8 = DType("s8", Kind.SIGNED, 8, 2, np.int8)
S16 = DType("s16", Kind.SIGNED, 16, 3, np.int16)
S32 = DType("s32", Kind.SIGNED, 32, 4, np.int32)
S64 = DType("s64", Kind.SIGNED, 64, 5, np.int64)
U2 = DType("u2", Kind.UNSIGNED, 2, 27, ml_dtypes.uint2)
U4 = DType("u4", Kind.UNSIGNED, 4, 22, ml_dtypes.uint4)
U8 = DType("u8", Kind.UNSIGNED, 8, 6, np.uint8)
U16 = DType("u16", Kind.UNSIGNED, 16, 7, np.uint16)
U32 = DType("u32", Kind.UNSIGNED, 32, 8, np.uint32)
U64 = DType("u64", Kind.UNSIGNED, 64, 9, np.uint64)
F16 = DType("f16", Kind.FLOAT, 16, 10, np.float16)
BF16 = DType("bf16", Kind.FLOAT, 16, 16, ml_dtypes.bfloat16)
F32 = DType("f32", Kind.FLOAT, 32, 11, np.float32)
F64 = DType("f64", Kind.FLOAT, 64, 12, np.float64)
C64 = DType("c64", Kind.COMPLEX, 64, 15, np.complex64)
C128 = DType("c128", Kind.COMPLEX, 128, 18, np.complex128)
F8E5M2 = DType("f8e5m2", Kind.FLOAT, 8, 19, ml_dtypes.float8_e5m2)
F8E4M3 = DType("f8e4m3", Kind.FLOAT, 8, 28, ml_dtypes.float8_e4m3)
F8E4M3FN = DType("f8e4m3fn", Kind.FLOAT, 8, 20, ml_dtypes.float8_e4m3fn)
F8E4M3B11FNUZ = DType("f8e4m3b11fnuz", Kind.FLOAT, 8, 23, ml_dtypes.float8_e4m3b11fnuz)
F8E3M4 = DType("f8e3m4", Kind.FLOAT, 8, 29, ml_dtypes.float8_e3m4)
F8E5M2FNUZ = DType("f8e5m2fnuz", Kind.FLOAT, 8, 24, ml_dtypes.float8_e5m2fnuz)
F8E4M3FNUZ = DType("f8e4m3fnuz", Kind.FLOAT, 8, 25, ml_dtypes.float8_e4m3fnuz)
F8E8M0FNU = DType("f8e8m0fnu", Kind.FLOAT, 8, 33, ml_dtypes.float8_e8m0fnu)
F6E2M3FN = DType("f6e2m3fn", Kind.FLOAT, 6, 36, ml_dtypes.float6_e2m3fn)
F6E3M2FN = DType("f6e3m2fn", Kind.FLOAT, 6, 35, ml_dtypes.float6_e3m2fn)
F4E2M1FN = DType("f4e2m1fn", Kind.FLOAT, 4, 32, ml_dtypes.float4_e2m1fn)
TOKEN = DType("token", Kind.TOKEN, 0, 17)
OPAQUE = DType("opaque", Kind.OPAQUE, 0, 14)
BUFFER = DType("buffer", Kind.BUFFER, 0, 34)
TUPLE = DType("tuple", Kind.TUPLE, 0, 13)

ALL_DTYPES: tuple[DType, ...] = tuple(v for v in list(globals().values()) if type(v) is DType)
ARRAY_DTYPES: tuple[DType, ...] = tuple(d for d in ALL_DTYPES if d.is_array)

_BY_NAME = {d.name: d for d in ALL_DTYPES}
_BY_NUMBER = {d.number: d for d in ALL_DTYPES}
_BY_NUMPY = {d.numpy: d for d in ARRAY_DTYPES}


def dtype_from_name(name: str) -> DType:
    """The type spelt `name` in HLO text; InvalidArgumentError if there is none."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise InvalidArgumentError(f"unknown element type {name!r}") from None


def dtype_from_number(number: int) -> DType:
    """The type with this PrimitiveType value; InvalidArgumentError if there is none."""
    try:
        return _BY_NUMBER[number]
    except KeyError:
        raise InvalidArgumentError(f"unknown PrimitiveType {number}") from None


def dtype_from_numpy(numpy_dtype: object) -> DType:
    """The type whose arrays have this NumPy dtype; InvalidArgumentError if there is none."""
    dtype = np.dtype(numpy_dtype)  # type: ignore[call-overload]
    try:
        return _BY_NUMPY[dtype]
    except KeyError:
        raise InvalidArgumentError(
            f"Unknown NumPy dtype {dtype!r} char {dtype.char} kind {dtype.kind} "
            f"itemsize {dtype.itemsize}"
        ) from None
