"""Attributes back to MLIR text: for the printer, and for what HLO keeps as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from haloc.formats.stablehlo.mlir import (
    Attribute,
    DenseElements,
    DenseStrings,
    Enum,
    Float,
    Integer,
    OtherAttribute,
    SdyAxis,
    SdyDim,
    SdyManualAxes,
    SdyMesh,
    SdyPerValue,
    SdySharding,
    Struct,
    SymbolRef,
    Unit,
)
from haloc.formats.stablehlo.text.element_text import array_text, dense_text, number_text

_BARE = re.compile(r"[A-Za-z_][\w$.]*")
_SYMBOL = re.compile(r"[A-Za-z_][\w$.-]*")
_SPECIAL = re.compile(r'[\x00-\x1f\x7f-\U0010ffff"\\]')


def quoted(text: str) -> str:
    """A string as MLIR writes it: bytes of UTF-8 outside printable ASCII in hexadecimal."""
    return f'"{_SPECIAL.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    if found[0] == "\\":
        return "\\\\"
    encoded = found[0].encode("utf-8", "surrogateescape")
    return "".join(f"\\{byte:02X}" for byte in encoded)


def symbol_text(name: str) -> str:
    """`@main`, or `@"a b"`."""
    return "@" + (name if _SYMBOL.fullmatch(name) else quoted(name))


def attribute_text(value: Attribute) -> str:
    """The attribute as MLIR prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_item_text, value)) + "]"
    if isinstance(value, dict):
        return dictionary_text(value)
    known = _TEXT_OF.get(type(value))
    return str(value) if known is None else known(value)


def _item_text(value: Attribute) -> str:
    """In a list i64 goes without saying."""
    if isinstance(value, Integer) and value.type == "i64":
        return str(value.value)
    return attribute_text(value)


def dictionary_text(value: dict[str, Attribute]) -> str:
    """`{a = 1 : i32, unit}`, keys in order."""
    fields = []
    for key in sorted(value):
        name = key if _BARE.fullmatch(key) else quoted(key)
        item = value[key]
        fields.append(name if isinstance(item, Unit) else f"{name} = {attribute_text(item)}")
    return "{" + ", ".join(fields) + "}"


def chlo_attributes(attributes: dict[str, Attribute]) -> dict[str, Attribute]:
    """The attributes of an op of chlo, which has enums and structures of its own dialect, called
    as StableHLO's."""
    return {key: _in_chlo(value) for key, value in attributes.items()}


def _in_chlo(value: Attribute) -> Attribute:
    if isinstance(value, Enum):
        return OtherAttribute(f"#chlo<{value.kind} {value.value}>")
    if isinstance(value, Struct) and value.name == "stablehlo.ragged_dot":
        return Struct("chlo.ragged_dot", value.fields)
    return tuple(map(_in_chlo, value)) if isinstance(value, tuple) else value


# --- Dialects ------------------------------------------------------------------------------------


def _struct_text(value: Struct) -> str:
    """`#stablehlo.dot<lhs_contracting_dimensions = [1]>`; what is empty or zero is left out."""
    if value.name == "stablehlo.conv":
        return f"#stablehlo.conv<{conv_text(value)}>"
    return f"#{value.name}{fields_text(value)}"


_ALL_FIELDS = ("stablehlo.channel_handle", "stablehlo.output_operand_alias")
"""Attributes whose empty fields are written too."""


def fields_text(value: Struct) -> str:
    """`<field = value, ...>`."""
    fields = value.fields.items()
    if value.name == "stablehlo.result_accuracy":
        shown = [(k, v) for k, v in fields if v]
    elif value.name in _ALL_FIELDS:
        shown = list(fields)
    else:
        shown = [(k, v) for k, v in fields if v != () and (k, v) != ("index_vector_dim", 0)]
    return "<" + ", ".join(f"{k} = {_plain_text(v)}" for k, v in shown) + ">"


def _plain_text(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_plain_text, value)) + "]"
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, Enum):
        return f"#stablehlo.{value.kind}<{value.value}>"
    if isinstance(value, SdyAxis):
        part = f", sub_axis_info = ({value.pre_size}){value.size}" if value.size else ""
        return f"#stablehlo.axis_ref<name = {quoted(value.name)}{part}>"
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return attribute_text(value)


_CONV_PARTS = (
    ("input", {"b": "input_batch_dimension", "f": "input_feature_dimension"}),
    ("kernel", {"i": "kernel_input_feature_dimension", "o": "kernel_output_feature_dimension"}),
    ("output", {"b": "output_batch_dimension", "f": "output_feature_dimension"}),
)


def conv_text(value: Struct) -> str:
    """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""
    fields: dict[str, Any] = value.fields
    parts = []
    for part, names in _CONV_PARTS:
        spatial = fields.get(f"{part}_spatial_dimensions", ())
        places = {dim: str(number) for number, dim in enumerate(spatial)}
        places |= {fields[name]: label for label, name in names.items()}
        parts.append("[" + ", ".join(places[dim] for dim in sorted(places)) + "]")
    return f"{parts[0]}x{parts[1]}->{parts[2]}"


def _enum_text(value: Enum) -> str:
    return f"#stablehlo<{value.kind} {value.value}>"


def _symbol_ref_text(value: SymbolRef) -> str:
    return "::".join(map(symbol_text, (value.name, *value.nested)))


def _strings_text(value: DenseStrings) -> str:
    listed = ", ".join(map(quoted, value.values))
    return f"dense<[{listed}]> : tensor<{len(value.values)}x!stablehlo.string>"


# --- Shardy --------------------------------------------------------------------------------------


def axis_text(axis: SdyAxis) -> str:
    part = f":({axis.pre_size}){axis.size}" if axis.size else ""
    return quoted(axis.name) + part


def _dim_text(dim: SdyDim) -> str:
    words = [*map(axis_text, dim.axes), *(["?"] if dim.is_open else [])]
    priority = "" if dim.priority is None else f"p{dim.priority}"
    return "{" + ", ".join(words) + "}" + priority


def mesh_text(mesh: SdyMesh) -> str:
    axes = ", ".join(f"{quoted(name)}={size}" for name, size in mesh.axes)
    ids = f", device_ids=[{', '.join(map(str, mesh.device_ids))}]" if mesh.device_ids else ""
    return f"<[{axes}]{ids}>"


def sharding_text(sharding: SdySharding) -> str:
    """`<@mesh, [{"x"}, {}]>`."""
    mesh = sharding.mesh
    name = symbol_text(mesh.name) if isinstance(mesh, SymbolRef) else "mesh" + mesh_text(mesh)
    parts = [name, "[" + ", ".join(map(_dim_text, sharding.dims)) + "]"]
    for key, axes in (("replicated", sharding.replicated), ("unreduced", sharding.unreduced)):
        if axes:
            parts.append(f"{key}={{{', '.join(map(axis_text, axes))}}}")
    return "<" + ", ".join(parts) + ">"


def shardings_text(value: SdyPerValue) -> str:
    """`[<@mesh, [{"x"}]>, <@mesh, [{}]>]`."""
    return "[" + ", ".join(map(sharding_text, value.shardings)) + "]"


def axis_names_text(value: SdyManualAxes) -> str:
    return "{" + ", ".join(map(quoted, value.names)) + "}"


_TEXT_OF: dict[type, Callable[[Any], str]] = {
    Integer: lambda v: f"{v.value} : {v.type}",
    Float: lambda v: f"{number_text(v.value, v.type)} : {v.type}",
    Unit: lambda v: "unit",
    SymbolRef: _symbol_ref_text,
    Enum: _enum_text,
    DenseElements: lambda v: array_text(v) or dense_text(v),
    DenseStrings: _strings_text,
    OtherAttribute: lambda v: v.text,
    Struct: _struct_text,
    SdySharding: lambda v: "#sdy.sharding" + sharding_text(v),
    SdyPerValue: lambda v: f"#sdy.sharding_per_value<{shardings_text(v)}>",
    SdyMesh: lambda v: "#sdy.mesh" + mesh_text(v),
    SdyManualAxes: lambda v: f"#sdy<manual_axes{axis_names_text(v)}>",
}
"""How attributes print, by their class; any other is a type."""
