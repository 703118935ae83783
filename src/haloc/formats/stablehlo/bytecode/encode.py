"""Attributes and types as bytes: VHLO's and the builtin dialect's, by the codes the reader has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from haloc.errors import UnimplementedError
from haloc.formats.stablehlo.bytecode.builtin import DYNAMIC
from haloc.formats.stablehlo.bytecode.entries import ABSENT, describe
from haloc.formats.stablehlo.bytecode.numbers import ELEMENTS, integer_bits
from haloc.formats.stablehlo.bytecode.stablehlo_dialect import ENUMS
from haloc.formats.stablehlo.bytecode.vhlo import ENUM_CODES, SCALARS
from haloc.formats.stablehlo.mlir import (
    Buffer,
    CallLocation,
    DenseElements,
    Enum,
    FileLocation,
    Float,
    Function,
    FusedLocation,
    Integer,
    Location,
    MlirType,
    NameLocation,
    RankedTensor,
    Scalar,
    Struct,
    SymbolRef,
    Token,
    Tuple,
    Unit,
    UnrankedTensor,
)
from haloc.formats.stablehlo.text.element_text import is_splat

_SCALAR_CODES = {name: code for code, name in SCALARS.items()}
_BUILTIN_INTEGER_SIGNS = {"i": 0, "si": 1, "ui": 2}


def varint(value: int) -> bytes:
    """An unsigned number: the first byte's trailing zero bits say how many bytes follow."""
    if value < 128:
        return bytes(((value << 1) | 1,))
    width = (value.bit_length() + 6) // 7
    if width > 8:
        return b"\0" + value.to_bytes(8, "little")
    return ((value << width) | (1 << (width - 1))).to_bytes(width, "little")


def svarint(value: int) -> bytes:
    return varint((value << 1) ^ (value >> 63))


def flagged(value: int, flag: bool) -> bytes:
    return varint(value << 1 | flag)


def _bits(value: int, width: int) -> bytes:
    """An APInt: one byte, or the bits as a signed number of 64 bits."""
    value &= (1 << width) - 1
    if width <= 8:
        return bytes((value,))
    return svarint(value - (1 << 64) if value >> 63 else value)


def integer_bytes(value: int, name: str) -> bytes:
    width = integer_bits(name)
    if width is None or width > 64:
        raise UnimplementedError(f"an integer of type {name} in bytecode")
    return _bits(value, width)


def float_bytes(value: float, name: str) -> bytes:
    with np.errstate(over="ignore", under="ignore"):
        array = np.array(value, np.float64).astype(ELEMENTS[name])
    return _bits(int(array.view(f"u{array.itemsize}")), 8 * array.itemsize)


def elements_bytes(value: DenseElements) -> bytes:
    """Little-endian elements; one when all are the same. Booleans are bits."""
    array = value.array
    splat = is_splat(array)
    if array.dtype == np.bool_:
        if splat:
            return b"\xff" if array.flat[0] else b"\0"
        return np.packbits(array.reshape(-1), bitorder="little").tobytes()
    flat = array.reshape(-1)[:1] if splat else np.ascontiguousarray(array)
    return flat.tobytes()


class Encoder:
    """Numbers attributes and types as they are asked for, each behind those it refers to."""

    def __init__(self) -> None:
        self.strings: dict[bytes, int] = {}
        self.attributes: dict[tuple[str, bytes], int] = {}
        self.types: dict[tuple[str, bytes], int] = {}
        self._known_types: dict[MlirType, int] = {}
        self._known_locations: dict[int, tuple[Location | None, int]] = {}

    def string(self, text: str) -> int:
        data = text.encode("utf-8", "surrogateescape")
        return self.strings.setdefault(data, len(self.strings))

    def _attribute(self, dialect: str, data: bytes) -> int:
        return self.attributes.setdefault((dialect, data), len(self.attributes))

    # --- Types -----------------------------------------------------------------------------

    def type(self, type_: MlirType) -> int:
        known = self._known_types.get(type_)
        if known is None:
            key = ("vhlo", self._type_bytes(type_))
            known = self.types.setdefault(key, len(self.types))
            self._known_types[type_] = known
        return known

    def _type_bytes(self, type_: MlirType) -> bytes:
        if isinstance(type_, RankedTensor):
            return self._tensor_bytes(type_)
        if isinstance(type_, Scalar):
            return self._scalar_bytes(type_.name)
        if isinstance(type_, Function):
            return varint(8) + self._types(type_.inputs) + self._types(type_.results)
        if isinstance(type_, Token):
            return varint(22)
        if isinstance(type_, Tuple):
            return varint(23) + self._types(type_.members)
        if isinstance(type_, UnrankedTensor) and isinstance(type_.element, str):
            return varint(25) + varint(self.type(Scalar(type_.element)))
        if isinstance(type_, Buffer):
            element = varint(self.type(Scalar(type_.element)))
            return varint(41) + _dims_bytes(type_.dims) + element
        raise UnimplementedError(f"type {type_} in bytecode")

    def _scalar_bytes(self, name: str) -> bytes:
        if name.startswith("complex<"):
            return varint(1) + varint(self.type(Scalar(name[8:-1])))
        if name not in _SCALAR_CODES:
            raise UnimplementedError(f"type {name} in bytecode")
        return varint(_SCALAR_CODES[name])

    def _tensor_bytes(self, type_: RankedTensor) -> bytes:
        if not isinstance(type_.element, str) or type_.encoding is not None:
            raise UnimplementedError(f"type {type_} in bytecode")
        element = varint(self.type(Scalar(type_.element)))
        dims = _dims_bytes(type_.dims)
        if not type_.bounds:
            return varint(20) + dims + element
        bounds = self._attribute("vhlo", varint(18) + _dims_bytes(type_.bounds))
        return varint(21) + varint(bounds) + dims + element

    def _types(self, types: tuple[MlirType, ...]) -> bytes:
        return varint(len(types)) + b"".join([varint(self.type(t)) for t in types])

    def absent_type(self) -> int:
        return self.types.setdefault(("vhlo", varint(33)), len(self.types))

    # --- Attributes of VHLO ----------------------------------------------------------------

    def attribute(self, value: Any) -> int:
        return self._attribute("vhlo", self._attribute_bytes(value))

    def _attribute_bytes(self, value: Any) -> bytes:
        if isinstance(value, bool):
            return varint(2) + varint(value)
        if isinstance(value, str):
            return varint(14) + varint(self.string(value))
        if isinstance(value, tuple):
            items = b"".join([varint(self.attribute(v)) for v in value])
            return varint(1) + varint(len(value)) + items
        if isinstance(value, dict):
            pairs = [(self.attribute(k), self.attribute(value[k])) for k in sorted(value)]
            listed = b"".join([varint(k) + varint(v) for k, v in pairs])
            return varint(6) + varint(len(pairs)) + listed
        if value is ABSENT:
            return varint(17) + varint(self.absent_type())
        if isinstance(value, SymbolRef):
            return varint(14) + varint(self.string(value.name))
        encode = _VHLO.get(type(value))
        if encode is not None:
            return encode(self, value)
        if isinstance(value, RankedTensor | Scalar | Function):
            return varint(17) + varint(self.type(value))
        raise UnimplementedError(f"attribute {describe(value)} in bytecode")

    # --- Attributes of the builtin dialect -------------------------------------------------

    def location(self, location: Location | None) -> int:
        known = self._known_locations.get(id(location))
        if known is None:
            # The location is kept alive here, so its id stays its own.
            number = self._attribute("builtin", self._location_bytes(location))
            known = self._known_locations[id(location)] = (location, number)
        return known[1]

    def _location_bytes(self, location: Location | None) -> bytes:
        if isinstance(location, FileLocation):
            file = varint(self.builtin(location.file))
            return varint(11) + file + varint(location.line) + varint(location.column)
        if isinstance(location, NameLocation):
            name = varint(self.builtin(location.name))
            return varint(14) + name + varint(self.location(location.child))
        if isinstance(location, CallLocation):
            ends = (location.callee, location.caller)
            return varint(10) + b"".join([varint(self.location(e)) for e in ends])
        if isinstance(location, FusedLocation):
            parts = b"".join([varint(self.location(p)) for p in location.parts])
            return varint(12) + varint(len(location.parts)) + parts
        return varint(15)

    def builtin(self, value: Any) -> int:
        """An attribute of the module itself, which stays MLIR's own."""
        return self._attribute("builtin", self._builtin_bytes(value))

    def _builtin_bytes(self, value: Any) -> bytes:
        if isinstance(value, str):
            return varint(2) + varint(self.string(value))
        if isinstance(value, bool):
            value = Integer(int(value), "i1")
        if isinstance(value, Integer):
            return (
                varint(8)
                + varint(self._builtin_type(value.type))
                + (integer_bytes(value.value, value.type))
            )
        if isinstance(value, dict):
            pairs = [(self.builtin(k), self.builtin(value[k])) for k in sorted(value)]
            listed = b"".join([varint(k) + varint(v) for k, v in pairs])
            return varint(1) + varint(len(pairs)) + listed
        if isinstance(value, tuple):
            items = b"".join([varint(self.builtin(v)) for v in value])
            return varint(0) + varint(len(value)) + items
        if isinstance(value, Unit):
            return varint(7)
        if isinstance(value, SymbolRef) and not value.nested:
            return varint(4) + varint(self.builtin(value.name))
        raise UnimplementedError(f"module attribute {describe(value)} in bytecode")

    def _builtin_type(self, name: str) -> int:
        width = integer_bits(name)
        if name == "index" or width is None:
            raise UnimplementedError(f"a module attribute of type {name} in bytecode")
        sign = _BUILTIN_INTEGER_SIGNS[name.rstrip("0123456789")]
        key = ("builtin", varint(0) + varint(width << 2 | sign))
        return self.types.setdefault(key, len(self.types))

    def named(self, attributes: dict[str, Any]) -> int:
        """The dictionary of an op's own attributes: names are builtin strings, values VHLO's."""
        pairs = [(self.builtin(k), self.attribute(attributes[k])) for k in sorted(attributes)]
        listed = b"".join([varint(k) + varint(v) for k, v in pairs])
        return self._attribute("builtin", varint(1) + varint(len(pairs)) + listed)


def _dims_bytes(dims: tuple[int | None, ...]) -> bytes:
    listed = b"".join([svarint(DYNAMIC if d is None else d) for d in dims])
    return varint(len(dims)) + listed


def _list_bytes(values: tuple[int, ...]) -> bytes:
    return varint(len(values)) + b"".join(map(svarint, values))


def _number(e: Encoder, value: Integer) -> bytes:
    return varint(9) + varint(e.type(Scalar(value.type))) + integer_bytes(value.value, value.type)


def _float(e: Encoder, value: Float) -> bytes:
    return varint(8) + varint(e.type(Scalar(value.type))) + float_bytes(value.value, value.type)


def _tensor(e: Encoder, value: DenseElements) -> bytes:
    data = elements_bytes(value)
    return varint(15) + varint(e.type(value.type)) + varint(len(data)) + data


def _enum(e: Encoder, value: Enum) -> bytes:
    return varint(ENUM_CODES[value.kind]) + varint(ENUMS[value.kind].index(value.value))


def _struct(e: Encoder, value: Struct) -> bytes:
    fields: dict[str, Any] = value.fields
    if value.name == "stablehlo.output_operand_alias":
        parts = (
            _list_bytes(fields["output_tuple_indices"]),
            svarint(fields["operand_index"]),
            _list_bytes(fields["operand_tuple_indices"]),
        )
        return varint(10) + b"".join(parts)
    if value.name == "stablehlo.result_accuracy":
        numbers = [float_bytes(fields.get(k, 0.0), "f64") for k in ("atol", "rtol")]
        mode = varint(e.attribute(fields["mode"]))
        return varint(20) + b"".join(numbers) + svarint(fields.get("ulps", 0)) + mode
    raise UnimplementedError(f"attribute #{value.name} in bytecode")


_VHLO: dict[type, Callable[[Encoder, Any], bytes]] = {
    Integer: _number,
    Float: _float,
    DenseElements: _tensor,
    Enum: _enum,
    Struct: _struct,
}
