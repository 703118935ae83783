"""Decoders of the builtin dialect's attributes, types and locations, by code."""

from __future__ import annotations

from typing import Any

import numpy as np

from haloc.formats.stablehlo.bytecode.cursor import ByteCursor
from haloc.formats.stablehlo.bytecode.entries import (
    ABSENT,
    UNKNOWN_LOCATION,
    Decoder,
    Entries,
    describe,
)
from haloc.formats.stablehlo.bytecode.numbers import (
    INTEGERS,
    dense_elements,
    integer_bits,
    read_float,
    read_integer,
)
from haloc.formats.stablehlo.mlir import (
    UNIT,
    Buffer,
    CallLocation,
    DenseElements,
    DenseStrings,
    FileLocation,
    Float,
    Function,
    FusedLocation,
    Integer,
    Location,
    MlirType,
    NameLocation,
    OtherType,
    Quantized,
    RankedTensor,
    Scalar,
    SymbolRef,
    Tuple,
    UnrankedTensor,
)

DYNAMIC = -(1 << 63)
"""A dynamic size among dimensions."""

_LOCATIONS = (FileLocation, NameLocation, CallLocation, FusedLocation)


def read_dims(cursor: ByteCursor) -> tuple[int | None, ...]:
    """The sizes of a tensor, None for a dynamic one."""
    start = cursor.pos
    dims = cursor.signed_list("dimensions")
    if any(d < 0 and d != DYNAMIC for d in dims):
        cursor.fail(f"dimensions {list(dims)}, expected sizes of at least 0", start)
    return tuple([None if d == DYNAMIC else d for d in dims])


def element_name(cursor: ByteCursor, type: Any) -> str:
    """The name of an element type."""
    if not isinstance(type, Scalar):
        cursor.fail(f"elements of type {describe(type)}, expected a number type")
    return type.name


def read_location(cursor: ByteCursor, entries: Entries) -> Location | None:
    start = cursor.pos
    value = entries.read_attribute(cursor)
    if value is not UNKNOWN_LOCATION and not isinstance(value, _LOCATIONS):
        cursor.fail(f"found {describe(value)}, expected a location", start)
    return value


def _locations(cursor: ByteCursor, entries: Entries) -> tuple[Location | None, ...]:
    return tuple([read_location(cursor, entries) for _ in range(cursor.count("locations"))])


def read_dictionary(cursor: ByteCursor, entries: Entries) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(cursor.count("dictionary entries")):
        name = entries.read_a(cursor, str, "a name")
        found[name] = entries.read_attribute(cursor)
    return found


def _integer(cursor: ByteCursor, entries: Entries) -> bool | Integer:
    name = element_name(cursor, entries.read_type(cursor))
    value = read_integer(cursor, name)
    return bool(value) if name == "i1" else Integer(value, name)


def _float(cursor: ByteCursor, entries: Entries) -> Float:
    name = element_name(cursor, entries.read_type(cursor))
    return Float(read_float(cursor, name), name)


def _symbol(cursor: ByteCursor, entries: Entries) -> SymbolRef:
    return SymbolRef(entries.read_a(cursor, str, "a symbol name"))


def _nested_symbol(cursor: ByteCursor, entries: Entries) -> SymbolRef:
    root = entries.read_a(cursor, str, "a symbol name")
    nested = [
        entries.read_a(cursor, SymbolRef, "a symbol").name for _ in range(cursor.count("symbols"))
    ]
    return SymbolRef(root, tuple(nested))


def _typed_string(cursor: ByteCursor, entries: Entries) -> str:
    text = entries.read_string(cursor)
    entries.read_type(cursor)
    return text


def _file(cursor: ByteCursor, entries: Entries) -> FileLocation:
    name = entries.read_a(cursor, str, "a file name")
    return FileLocation(name, cursor.varint("a line"), cursor.varint("a column"))


def _file_range(cursor: ByteCursor, entries: Entries) -> FileLocation:
    """file, then 0 to 4 of: start line, start column, end column, or end line and column."""
    name = entries.read_a(cursor, str, "a file name")
    start = cursor.pos
    numbers = [cursor.varint("a line or column") for _ in range(cursor.count("numbers"))]
    match numbers:
        case []:
            return FileLocation(name, 0, 0)
        case [line]:
            return FileLocation(name, line, 0)
        case [line, column]:
            return FileLocation(name, line, column)
        case [line, column, end_column]:
            return FileLocation(name, line, column, line, end_column)
        case [line, column, end_line, end_column]:
            return FileLocation(name, line, column, end_line, end_column)
    cursor.fail(f"{len(numbers)} numbers of a file location, expected at most 4", start)


def _name_location(cursor: ByteCursor, entries: Entries) -> NameLocation:
    return NameLocation(entries.read_a(cursor, str, "a name"), read_location(cursor, entries))


def _call_location(cursor: ByteCursor, entries: Entries) -> CallLocation:
    return CallLocation(read_location(cursor, entries), read_location(cursor, entries))


def _tensor(cursor: ByteCursor, entries: Entries, what: str = "a tensor type") -> RankedTensor:
    start = cursor.pos
    type = entries.read_type(cursor)
    if not isinstance(type, RankedTensor):
        cursor.fail(f"found {describe(type)}, expected {what}", start)
    return type


def _dense(cursor: ByteCursor, entries: Entries) -> DenseElements:
    type = _tensor(cursor, entries)
    return dense_elements(cursor, type, cursor.blob("elements"))


def _dense_array(cursor: ByteCursor, entries: Entries) -> DenseElements:
    name = element_name(cursor, entries.read_type(cursor))
    size = cursor.varint("the number of elements")
    blob = cursor.blob("elements")
    type = RankedTensor((size,), name)
    if name == "i1":  # one byte each here
        if len(blob) != size:
            cursor.fail(f"{len(blob)} bytes of data for {type}")
        return DenseElements(type, np.frombuffer(blob, np.uint8) != 0)
    bits = integer_bits(name)
    if name not in INTEGERS and bits is not None:
        cursor.fail(f"an array of {name}, expected a whole number of bytes")
    return dense_elements(cursor, type, blob)


def _dense_strings(cursor: ByteCursor, entries: Entries) -> DenseStrings:
    entries.read_type(cursor)
    number, is_splat = cursor.flagged("the number of strings")
    del is_splat
    if number > cursor.remaining:
        cursor.fail(f"{number} strings, but only {cursor.remaining} bytes follow")
    return DenseStrings(tuple([entries.read_string(cursor) for _ in range(number)]))


def _resource(cursor: ByteCursor, entries: Entries) -> DenseElements:
    type = _tensor(cursor, entries)
    start = cursor.pos
    number = cursor.varint("a resource")
    resources = entries.container.resources
    blob = resources[number] if number < len(resources) else None
    if blob is None:
        cursor.fail(f"resource {number}, but the file holds no data for it", start)
    return dense_elements(cursor, type, blob)


def _unsupported(what: str) -> Decoder:
    def fail(cursor: ByteCursor, entries: Entries) -> Any:
        cursor.fail(f"{what}, which haloc does not read")

    return fail


ATTRIBUTES: dict[int, Decoder] = {
    0: lambda c, e: e.read_attributes(c),
    1: read_dictionary,
    2: lambda c, e: e.read_string(c),
    3: _typed_string,
    4: _symbol,
    5: _nested_symbol,
    6: lambda c, e: e.read_type(c),
    7: lambda c, e: UNIT,
    8: _integer,
    9: _float,
    10: _call_location,
    11: _file,
    12: lambda c, e: FusedLocation(_locations(c, e)),
    13: lambda c, e: FusedLocation(_locations(c, e), e.read_attribute(c)),
    14: _name_location,
    15: lambda c, e: UNKNOWN_LOCATION,
    16: _resource,
    17: _dense_array,
    18: _dense,
    19: _dense_strings,
    20: _unsupported("a sparse elements attribute"),
    21: _unsupported("a distinct attribute"),
    22: _file_range,
}


def _scalar(name: str) -> Decoder:
    return lambda cursor, entries: Scalar(name)


def _integer_type(cursor: ByteCursor, entries: Entries) -> Scalar:
    code = cursor.varint("an integer type")
    sign = {0: "", 1: "s", 2: "u"}.get(code & 3)
    if sign is None:
        cursor.fail(f"signedness 3 of an integer type {code}, expected 0 to 2")
    return Scalar(f"{sign}i{code >> 2}")


def _complex_type(cursor: ByteCursor, entries: Entries) -> Scalar:
    return Scalar(f"complex<{element_name(cursor, entries.read_type(cursor))}>")


def _ranked(cursor: ByteCursor, entries: Entries) -> RankedTensor:
    dims = read_dims(cursor)
    return RankedTensor(dims, tensor_element(cursor, entries.read_type(cursor)))


def _ranked_encoded(cursor: ByteCursor, entries: Entries) -> RankedTensor:
    encoding = entries.read_attribute(cursor)
    dims = read_dims(cursor)
    return ranked_with(dims, tensor_element(cursor, entries.read_type(cursor)), encoding)


def _memref(cursor: ByteCursor, entries: Entries) -> Buffer:
    dims = read_dims(cursor)
    element = element_name(cursor, entries.read_type(cursor))
    entries.read_attribute(cursor)  # the layout, an affine map
    return Buffer(dims, element)


def ranked_with(dims: tuple[int | None, ...], element: Any, encoding: Any) -> RankedTensor:
    """A tensor type with an encoding; `Bounds` are StableHLO's own."""
    if isinstance(encoding, Bounds):
        return RankedTensor(dims, element, tuple(encoding))
    return RankedTensor(dims, element, (), None if encoding is ABSENT else encoding)


class Bounds(tuple):
    """#stablehlo.bounds<?, 4>: one entry a dimension, None where there is none."""

    __slots__ = ()


def tensor_element(cursor: ByteCursor, type: MlirType) -> Any:
    """What stands in a tensor type: a number type's name, or a quantized type."""
    return type if isinstance(type, Quantized) else element_name(cursor, type)


TYPES: dict[int, Decoder] = {
    0: _integer_type,
    1: _scalar("index"),
    2: lambda c, e: Function(e.read_types(c), e.read_types(c)),
    3: _scalar("bf16"),
    4: _scalar("f16"),
    5: _scalar("f32"),
    6: _scalar("f64"),
    7: _scalar("f80"),
    8: _scalar("f128"),
    9: _complex_type,
    12: lambda c, e: OtherType("none"),
    13: _ranked,
    14: _ranked_encoded,
    15: lambda c, e: Tuple(e.read_types(c)),
    10: _memref,
    18: lambda c, e: UnrankedTensor(tensor_element(c, e.read_type(c))),
    21: _scalar("tf32"),
    22: _scalar("f8E5M2"),
    23: _scalar("f8E4M3"),
    24: _scalar("f8E4M3FN"),
    25: _scalar("f8E5M2FNUZ"),
    26: _scalar("f8E4M3FNUZ"),
    27: _scalar("f8E4M3B11FNUZ"),
    28: _scalar("f8E3M4"),
    29: _scalar("f4E2M1FN"),
    30: _scalar("f6E2M3FN"),
    31: _scalar("f6E3M2FN"),
    32: _scalar("f8E8M0FNU"),
}
