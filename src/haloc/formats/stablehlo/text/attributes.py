"""MLIR attributes in text: numbers, strings, arrays, dictionaries and those of the dialects."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from haloc.formats.stablehlo.element_types import numpy_of
from haloc.formats.stablehlo.mlir import (
    UNIT,
    Attribute,
    DenseElements,
    Enum,
    Float,
    Integer,
    Location,
    OtherAttribute,
    RankedTensor,
    Scalar,
    SdyAxis,
    Struct,
    SymbolRef,
)
from haloc.formats.stablehlo.text.cursor import MlirCursor
from haloc.formats.stablehlo.text.elements import parse_dense, parse_resource
from haloc.formats.stablehlo.text.locations import parse_location
from haloc.formats.stablehlo.text.sdy import SDY_READERS
from haloc.formats.stablehlo.text.types import parse_type

_NUMBER = re.compile(r"\s*(-?(?:0x[0-9A-Fa-f]+|\d+(\.\d*)?([eE][+-]?\d+)?))")
_TYPED = re.compile(r"\s*:(?!:)")
_DIALECT = re.compile(r"\s*#([A-Za-z_][\w$.-]*|\d+)")
_ENUM = re.compile(r"\s*<\s*([a-z_]+)\s*<?\s*(\w+)\s*>?\s*>")
_ENUM_WITH_NAME = re.compile(r"\s*<\s*(\w+)\s*>")
_ARRAY = re.compile(r"\s*<\s*(\w+)\s*(?::\s*([^<>]*))?>")
_WORD = re.compile(r"\s*([A-Za-z_][\w$]*)")
_CONV_PART = re.compile(r"\s*\[([\w\s,?]*)\]\s*")
_BOUNDS = re.compile(r"\s*<\s*((?:(?:\d+|\?)\s*,\s*)*(?:\d+|\?))\s*>")


class AttributeCursor(MlirCursor):
    """A cursor that reads attributes too, for the types whose encoding is one."""

    __slots__ = ()

    def attribute(self) -> Attribute:
        return parse_attribute(self)


def parse_attribute(cursor: MlirCursor) -> Attribute:
    start = cursor.skip()
    first = cursor.text[start : start + 1]
    if first.isdigit() or first == "-":
        return _number(cursor)
    if first == '"':
        text = cursor.string()
        if _TYPED.match(cursor.text, cursor.pos):
            cursor.expect(":")
            parse_type(cursor)
        return text
    if first == "[":
        with cursor.nested("attributes"):
            return parse_array(cursor)
    if first == "{":
        with cursor.nested("attributes"):
            return parse_dictionary(cursor)
    if first == "@":
        name = cursor.symbol()
        nested = []
        while cursor.accept("::"):
            nested.append(cursor.symbol())
        return SymbolRef(name, tuple(nested))
    if first == "#":
        with cursor.nested("attributes"):
            return _dialect_attribute(cursor)
    word = _WORD.match(cursor.text, start)
    if word is not None and word[1] in _WORDS:
        cursor.pos = word.end()
        return _WORDS[word[1]](cursor)
    if word is None and first not in ("(", "!"):
        return cursor.expected("an attribute")
    return parse_type(cursor)


def parse_array(cursor: MlirCursor) -> tuple[Attribute, ...]:
    cursor.expect("[")
    found: list[Attribute] = []
    if cursor.accept("]"):
        return ()
    while True:
        found.append(parse_attribute(cursor))
        if not cursor.accept(","):
            break
    if not cursor.accept("]"):
        cursor.expected("',' or ']'")
    return tuple(found)


def parse_dictionary(cursor: MlirCursor) -> dict[str, Attribute]:
    """`{a = 1 : i32, "b c" = "x", unit}`."""
    cursor.expect("{")
    found: dict[str, Attribute] = {}
    while not cursor.accept("}"):
        at = cursor.skip()
        key = cursor.key()
        if key in found:
            cursor.fail_at(f"attribute {key!r} is given twice", at, cursor.pos)
        found[key] = parse_attribute(cursor) if cursor.accept("=") else UNIT
        if not cursor.accept(","):
            if not cursor.accept("}"):
                cursor.expected("',' or '}'")
            break
    return found


def read_dictionary(text: str, filename: str = "<attributes>") -> dict[str, Attribute]:
    """A dictionary written by itself, `{uplo = 76 : ui8}`. HloParseError for any other text."""
    cursor = AttributeCursor(text, filename)
    found = parse_dictionary(cursor)
    if cursor.skip() < len(cursor.text):
        cursor.expected("the end of the dictionary")
    return found


def _number(cursor: MlirCursor) -> Attribute:
    start = cursor.pos
    found = cursor.match(_NUMBER)
    if found is None:
        return cursor.expected("a number")
    digits = found[1]
    is_float = found[2] is not None or found[3] is not None
    type_name = ""
    if _TYPED.match(cursor.text, cursor.pos):
        cursor.expect(":")
        at = cursor.skip()
        type_ = parse_type(cursor)
        if not isinstance(type_, Scalar):
            cursor.fail_at(f"a number cannot have the type {type_}", at, cursor.pos)
        type_name = type_.name
    dtype = numpy_of(type_name) if type_name else None
    of_float = dtype is not None and type_name[0] in "fb"
    if of_float or (is_float and not type_name):
        if not digits.lstrip("-").startswith("0x"):
            return Float(float(digits), type_name or "f64")
        assert dtype is not None  # a number in hexadecimal has a type here
        unsigned = np.dtype(f"u{dtype.itemsize}")
        pattern = int(digits, 16)
        if not 0 <= pattern < 1 << (8 * unsigned.itemsize):
            cursor.fail_at(f"{digits} has more bits than {type_name}", start, cursor.pos)
        return Float(float(np.array(pattern, unsigned).view(dtype)), type_name)
    if is_float:
        cursor.fail_at(f"{digits} is not an integer, but {type_name} is", start, cursor.pos)
    value = int(digits, 16 if "0x" in digits else 10)
    return Integer(_wrapped(cursor, value, type_name or "i64", start), type_name or "i64")


def _wrapped(cursor: MlirCursor, value: int, type_name: str, start: int) -> int:
    """`value` in the type's range; a signless type takes both readings of its top bit."""
    digits = type_name.lstrip("sui")
    if not digits.isdigit():
        return value
    bits = int(digits)
    low, high = (0, 1 << bits) if type_name[0] == "u" else (-(1 << bits - 1), 1 << bits)
    if not low <= value < high:
        cursor.fail_at(f"{value} does not fit {type_name}", start, cursor.pos)
    if type_name[0] != "u" and bits > 1 and value >= 1 << bits - 1:
        value -= 1 << bits
    return value


def _dense_array(cursor: MlirCursor) -> Attribute:
    """array<i64: 1, 2>."""
    start = cursor.pos
    found = cursor.match(_ARRAY)
    if found is None:
        return cursor.expected("array<type: values>")
    element, listed = found[1], (found[2] or "").strip()
    dtype = numpy_of(element)
    if dtype is None:
        cursor.fail_at(f"array<> of {element} is not read", start, cursor.pos)
    words = [w.strip() for w in listed.split(",")] if listed else []
    try:
        if element == "i1":
            array = np.array([{"true": True, "false": False}[w] for w in words], np.bool_)
        elif element[0] in "fb":
            array = np.array([float(w) for w in words]).astype(dtype)
        else:
            array = np.array([int(w, 0) for w in words], dtype)
    except (ValueError, KeyError, OverflowError):
        cursor.fail_at(f"the values of array<{element}: ...> do not read", start, cursor.pos)
    array.flags.writeable = False
    return DenseElements(RankedTensor((len(words),), element), array)


def _loc(cursor: MlirCursor) -> Location | None:
    return parse_location(cursor, parse_attribute)


def _affine_map(cursor: MlirCursor) -> OtherAttribute:
    start = cursor.skip()
    end = cursor.text.find(">", cursor.text.find("->", start) + 2)
    if end < 0:
        cursor.fail("this '<' is not closed", -1)
    cursor.pos = end + 1
    return OtherAttribute("affine_map" + cursor.text[start : end + 1])


_WORDS: dict[str, Callable[[MlirCursor], Attribute]] = {
    "true": lambda cursor: True,
    "false": lambda cursor: False,
    "unit": lambda cursor: UNIT,
    "dense": parse_dense,
    "dense_resource": parse_resource,
    "array": _dense_array,
    "loc": _loc,  # type: ignore[dict-item]
    "affine_map": _affine_map,
}


# --- Dialects ------------------------------------------------------------------------------------


def _dialect_attribute(cursor: MlirCursor) -> Attribute:
    """`#alias`, `#stablehlo.name<...>` or `#stablehlo<name VALUE>`."""
    start = cursor.pos
    found = cursor.match(_DIALECT)
    if found is None:
        return cursor.expected("an attribute")
    name = found[1]
    if name in cursor.attribute_aliases:
        return resolve_alias(cursor, name, start)  # type: ignore[return-value]
    dialect, dot, mnemonic = name.partition(".")
    if dialect == "sdy":
        reader = SDY_READERS.get(mnemonic)
        if reader is not None:
            return reader(cursor)
        if not dot and (word := re.compile(r"\s*<\s*(\w+)").match(cursor.text, cursor.pos)):
            reader = SDY_READERS.get(word[1])
            if reader is not None:
                cursor.pos = word.end()
                value = reader(cursor)
                cursor.expect(">")
                return value
        return OtherAttribute(cursor.text[start : cursor.pos] + _angles(cursor))
    if not dot:
        if dialect not in ("stablehlo", "chlo", "mhlo", "vhlo"):
            if cursor.text.startswith("<", cursor.pos):
                return OtherAttribute("#" + name + _angles(cursor))
            cursor.fail_at(f"attribute alias #{name} is not defined", start, cursor.pos)
        enum = cursor.match(_ENUM)
        if enum is None:
            return cursor.expected(f"<kind VALUE> behind #{dialect}")
        return Enum(enum[1], enum[2])
    return parse_struct(cursor, dialect, mnemonic, start)


def parse_struct(cursor: MlirCursor, dialect: str, mnemonic: str, start: int) -> Attribute:
    """What stands behind `#stablehlo.dot`, and `<...>` alone where the op tells which it is."""
    if mnemonic == "conv":
        return _conv(cursor)
    if mnemonic == "bounds":
        found = cursor.match(_BOUNDS)
        if found is None:
            return cursor.expected("bounds such as <?, 4>")
        words = [w.strip() for w in found[1].split(",")]
        bounds = tuple(None if w == "?" else int(w) for w in words)
        return Struct("stablehlo.bounds", {"bounds": bounds})  # type: ignore[dict-item]
    if mnemonic == "axis_ref":
        axis = cursor.match(_AXIS)
        if axis is None:
            return cursor.expected('an axis such as <name = "x"> or with sub_axis_info = (1)2')
        return SdyAxis(axis[1], int(axis[2] or 1), int(axis[3] or 0))
    if mnemonic in _STRUCTS:
        return _fields(cursor, mnemonic)
    if enum := _ENUM_WITH_NAME.match(cursor.text, cursor.pos):
        cursor.pos = enum.end()
        return Enum(mnemonic, enum[1])
    text = cursor.text[start : cursor.pos].strip()
    return OtherAttribute(text + _angles(cursor))


_DOT = (
    "lhs_batching_dimensions rhs_batching_dimensions lhs_contracting_dimensions "
    "rhs_contracting_dimensions"
)
_AXIS = re.compile(
    r'\s*<\s*name\s*=\s*"([^"\\]*)"\s*(?:,\s*sub_axis_info\s*=\s*\((\d+)\)(\d+)\s*)?>'
)
_STRUCTS = {
    "dot": _DOT,
    "ragged_dot": _DOT + " lhs_ragged_dimensions rhs_group_dimensions",
    "dot_algorithm": "lhs_precision_type rhs_precision_type accumulation_type "
    "lhs_component_count rhs_component_count num_primitive_operations "
    "allow_imprecise_accumulation",
    "gather": "offset_dims collapsed_slice_dims operand_batching_dims "
    "start_indices_batching_dims start_index_map index_vector_dim",
    "scatter": "update_window_dims inserted_window_dims input_batching_dims "
    "scatter_indices_batching_dims scatter_dims_to_operand_dims index_vector_dim",
    "channel_handle": "handle type",
    "output_operand_alias": "output_tuple_indices operand_index operand_tuple_indices",
    "result_accuracy": "atol rtol ulps mode",
    "replica_group_mesh_axes": "mesh axes",
    "type_extensions": "bounds",
}
"""Field names of the attributes written `#stablehlo.name<field = value, ...>`."""


def _fields(cursor: MlirCursor, mnemonic: str) -> Struct:
    known = _STRUCTS[mnemonic].split()
    cursor.expect("<")
    fields: dict[str, Attribute] = {}
    while not cursor.accept(">"):
        at = cursor.skip()
        key = cursor.key()
        if key not in known:
            wanted = ", ".join(known)
            cursor.fail_at(
                f"#stablehlo.{mnemonic} has no field {key!r}, it has {wanted}", at, cursor.pos
            )
        if key in fields:
            cursor.fail_at(f"field {key!r} is given twice", at, cursor.pos)
        cursor.expect("=")
        fields[key] = plain(parse_attribute(cursor))
        if not cursor.accept(","):
            if not cursor.accept(">"):
                cursor.expected("',' or '>'")
            break
    return Struct("stablehlo." + mnemonic, fields)


def plain(value: Attribute) -> Attribute:
    """Numbers and lists of numbers as Python has them."""
    if isinstance(value, Integer | Float):
        return value.value  # type: ignore[return-value]
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    return value


def _angles(cursor: MlirCursor) -> str:
    """The text of `<...>`, if that comes next; arrows and strings inside are stepped over."""
    start = cursor.pos
    if not cursor.peek("<"):
        return ""
    depth, text = 0, cursor.text
    for found in re.compile(r'"(?:[^"\\\n]|\\.)*"|->|[<>]').finditer(text, cursor.pos):
        depth += {"<": 1, ">": -1}.get(found[0], 0)
        if depth == 0:
            cursor.pos = found.end()
            return text[start : found.end()]
    return cursor.fail("this '<' is not closed", -1)


def _conv(cursor: MlirCursor) -> Struct:
    cursor.expect("<")
    value = parse_conv_dims(cursor)
    cursor.expect(">")
    return value


def parse_conv_dims(cursor: MlirCursor) -> Struct:
    """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`, or `raw` and the fields by name."""
    if cursor.accept_word("raw"):
        return _raw_conv_dims(cursor)
    fields: dict[str, Attribute] = {}
    for part, names, separator in (
        ("input", {"b": "input_batch_dimension", "f": "input_feature_dimension"}, "x"),
        (
            "kernel",
            {"i": "kernel_input_feature_dimension", "o": "kernel_output_feature_dimension"},
            "->",
        ),
        ("output", {"b": "output_batch_dimension", "f": "output_feature_dimension"}, ""),
    ):
        at = cursor.skip()
        found = cursor.match(_CONV_PART)
        if found is None:
            cursor.expected("dimension labels such as [b, 0, 1, f]")
        words = [w.strip() for w in found[1].split(",")]
        count = len(words) - 2
        wanted = [*names, *map(str, range(count))]
        if sorted(words) != sorted(wanted):
            cursor.fail_at(
                f"found the labels {', '.join(words)}, expected {', '.join(wanted)} once each",
                at,
                found.end(1) + 1,
            )
        for label, name in names.items():
            fields[name] = words.index(label)
        spatial = tuple(words.index(str(d)) for d in range(count))
        fields[f"{part}_spatial_dimensions"] = spatial
        if separator:
            cursor.expect(separator)
    return Struct("stablehlo.conv", fields)


def _raw_conv_dims(cursor: MlirCursor) -> Struct:
    fields: dict[str, Attribute] = {}
    while not cursor.peek(">"):
        key = cursor.key()
        cursor.expect("=")
        fields[key] = plain(parse_attribute(cursor))
        if not cursor.accept(","):
            break
    return Struct("stablehlo.conv", fields)


def resolve_alias(cursor: MlirCursor, name: str, start: int) -> Attribute | Location | None:
    """The attribute or location behind `#name`, read when first used."""
    key = "#" + name
    if key in cursor.resolved:
        return cursor.resolved[key]
    if name not in cursor.attribute_aliases:
        cursor.fail_at(f"attribute alias {key} is not defined", start, cursor.pos)
    if key in cursor.resolving:
        cursor.fail_at(f"alias {key} is defined by itself", start, cursor.pos)
    cursor.resolving.add(key)
    back, cursor.pos = cursor.pos, cursor.attribute_aliases[name]
    value = parse_attribute(cursor)
    cursor.alias_ends[key] = cursor.pos
    cursor.pos = back
    cursor.resolving.discard(key)
    cursor.resolved[key] = value
    return value
