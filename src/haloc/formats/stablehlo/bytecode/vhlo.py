"""Decoders of VHLO's attributes and types, by code. They give StableHLO's forms."""

from __future__ import annotations

from typing import Any

from haloc.formats.stablehlo.bytecode import meshes
from haloc.formats.stablehlo.bytecode import stablehlo_dialect as own
from haloc.formats.stablehlo.bytecode.builtin import (
    Bounds,
    element_name,
    ranked_with,
    read_dims,
    tensor_element,
)
from haloc.formats.stablehlo.bytecode.cursor import ByteCursor
from haloc.formats.stablehlo.bytecode.entries import ABSENT, Decoder, Entries, describe
from haloc.formats.stablehlo.bytecode.numbers import (
    dense_elements,
    integer_bits,
    read_float,
    read_integer,
)
from haloc.formats.stablehlo.mlir import (
    Buffer,
    DenseElements,
    Float,
    Function,
    Future,
    Integer,
    OtherType,
    Quantized,
    RankedTensor,
    Scalar,
    Struct,
    Token,
    Tuple,
    UnrankedTensor,
)

# --- Attributes ----------------------------------------------------------------------------------


def _boolean(cursor: ByteCursor, entries: Entries) -> bool:
    value = cursor.varint("a boolean")
    if value > 1:
        cursor.fail(f"boolean {value}, expected 0 or 1")
    return bool(value)


def _dictionary(cursor: ByteCursor, entries: Entries) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(cursor.count("dictionary entries")):
        name = entries.read_a(cursor, str, "a name")
        found[name] = entries.read_attribute(cursor)
    return found


def _float(cursor: ByteCursor, entries: Entries) -> Float:
    name = element_name(cursor, entries.read_type(cursor))
    return Float(read_float(cursor, name), name)


def _integer(cursor: ByteCursor, entries: Entries) -> Integer:
    name = element_name(cursor, entries.read_type(cursor))
    return Integer(read_integer(cursor, name), name)


def _alias(cursor: ByteCursor, entries: Entries) -> Struct:
    fields: dict[str, Any] = {
        "output_tuple_indices": cursor.signed_list("output_tuple_indices"),
        "operand_index": cursor.svarint("an operand_index"),
        "operand_tuple_indices": cursor.signed_list("operand_tuple_indices"),
    }
    return Struct("stablehlo.output_operand_alias", fields)


def _tensor(cursor: ByteCursor, entries: Entries) -> DenseElements:
    start = cursor.pos
    type = entries.read_type(cursor)
    if not isinstance(type, RankedTensor):
        cursor.fail(f"found {describe(type)}, expected a tensor type", start)
    return dense_elements(cursor, type, cursor.blob("elements"))


def _api_version(cursor: ByteCursor, entries: Entries) -> Integer:
    return Integer(cursor.varint("a custom call's API version"), "i32")


ENUM_CODES = {
    "custom_call_api_version": 5,
    "comparison_direction": 3,
    "comparison_type": 4,
    "fft_type": 7,
    "precision": 11,
    "rng_algorithm": 12,
    "rng_distribution": 13,
    "transpose": 16,
    "result_accuracy_mode": 19,
}

ATTRIBUTES: dict[int, Decoder] = {code: own.enum(kind) for kind, code in ENUM_CODES.items()} | {
    1: lambda c, e: e.read_attributes(c),
    2: _boolean,
    5: _api_version,
    6: _dictionary,
    8: _float,
    9: _integer,
    10: _alias,
    14: lambda c, e: e.read_string(c),
    15: _tensor,
    17: lambda c, e: e.read_type(c),
    18: own.read_bounds,
    20: own.read_accuracy,
    21: meshes.sub_axis,
    22: meshes.axis_by_varint,
    23: meshes.group_axes,
    24: meshes.mesh_axis,
    25: meshes.mesh,
}

# --- Types ---------------------------------------------------------------------------------------


def _complex(cursor: ByteCursor, entries: Entries) -> Scalar:
    return Scalar(f"complex<{element_name(cursor, entries.read_type(cursor))}>")


def _ranked(cursor: ByteCursor, entries: Entries) -> RankedTensor:
    dims = read_dims(cursor)
    return RankedTensor(dims, tensor_element(cursor, entries.read_type(cursor)))


def _ranked_encoded(cursor: ByteCursor, entries: Entries) -> RankedTensor:
    encoding = entries.read_attribute(cursor)
    dims = read_dims(cursor)
    if isinstance(encoding, Bounds) and len(encoding) not in (0, len(dims)):
        cursor.fail(f"{len(encoding)} bounds of {len(dims)} dimensions")
    return ranked_with(dims, tensor_element(cursor, entries.read_type(cursor)), encoding)


def _buffer(cursor: ByteCursor, entries: Entries) -> Buffer:
    dims = read_dims(cursor)
    return Buffer(dims, element_name(cursor, entries.read_type(cursor)))


def _storage(cursor: ByteCursor, entries: Entries) -> tuple[str, str]:
    """The storage type, spelt by the sign flag, and the expressed type."""
    is_signed = cursor.varint("quantization flags") & 1
    storage = element_name(cursor, entries.read_type(cursor))
    bits = integer_bits(storage)
    if bits is None or bits == 0:
        cursor.fail(f"storage of type {storage}, expected an integer type")
    expressed = element_name(cursor, entries.read_type(cursor))
    return f"{'' if is_signed else 'u'}i{bits}", expressed


def _limits(storage: str, low: int, high: int) -> tuple[int | None, int | None]:
    """Storage limits, None for those of the type itself."""
    bits = integer_bits(storage) or 1
    signed = not storage.startswith("u")
    if (low, high) == (-(1 << bits - 1) if signed else 0, (1 << bits - signed) - 1):
        return None, None
    return low, high


def _quantized(cursor: ByteCursor, entries: Entries) -> Quantized:
    storage, expressed = _storage(cursor, entries)
    scale = read_float(cursor, "f64")
    zero_point = cursor.svarint("a zero point")
    limits = _limits(storage, cursor.svarint("a storage limit"), cursor.svarint("a storage limit"))
    return Quantized(storage, expressed, (scale,), (zero_point,), None, *limits)


def _quantized_per_axis(cursor: ByteCursor, entries: Entries) -> Quantized:
    storage, expressed = _storage(cursor, entries)
    axis = cursor.varint("an axis")
    limits = _limits(storage, cursor.svarint("a storage limit"), cursor.svarint("a storage limit"))
    scales = [read_float(cursor, "f64") for _ in range(cursor.count("scales"))]
    zero_points = cursor.signed_list("zero points")
    if len(scales) != len(zero_points):
        cursor.fail(f"{len(scales)} scales but {len(zero_points)} zero points")
    return Quantized(storage, expressed, tuple(scales), zero_points, axis, *limits)


def _scalar(name: str) -> Decoder:
    return lambda cursor, entries: Scalar(name)


SCALARS = {
    0: "i1",
    2: "bf16",
    3: "f16",
    4: "f32",
    5: "f64",
    6: "f8E4M3FN",
    7: "f8E5M2",
    9: "index",
    10: "i4",
    11: "i8",
    12: "i16",
    13: "i32",
    14: "i64",
    15: "ui4",
    16: "ui8",
    17: "ui16",
    18: "ui32",
    19: "ui64",
    27: "f8E4M3FNUZ",
    28: "f8E5M2FNUZ",
    29: "f8E4M3B11FNUZ",
    31: "i2",
    32: "ui2",
    34: "tf32",
    35: "f8E4M3",
    36: "f8E3M4",
    37: "f4E2M1FN",
    38: "f6E2M3FN",
    39: "f6E3M2FN",
    40: "f8E8M0FNU",
}
"""Element types by code."""

TYPES: dict[int, Decoder] = {code: _scalar(name) for code, name in SCALARS.items()} | {
    1: _complex,
    8: lambda c, e: Function(e.read_types(c), e.read_types(c)),
    20: _ranked,
    21: _ranked_encoded,
    22: lambda c, e: Token(),
    23: lambda c, e: Tuple(e.read_types(c)),
    24: _quantized,
    25: lambda c, e: UnrankedTensor(tensor_element(c, e.read_type(c))),
    26: lambda c, e: OtherType("!shape.witness"),
    30: _quantized_per_axis,
    33: lambda c, e: ABSENT,
    41: _buffer,
    42: lambda c, e: Future(e.read_types(c)),
}
