"""Attributes back to MLIR text, for what HLO keeps as text: backend configs, sdy attributes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from haloc.formats.stablehlo.element_types import numpy_of
from haloc.formats.stablehlo.mlir import (
    Attribute,
    DenseElements,
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

_BARE = re.compile(r"[A-Za-z_][\w$.]*")


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\0A")
    return f'"{escaped}"'


def attribute_text(value: Attribute) -> str:
    """The attribute as MLIR prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(map(attribute_text, value)) + "]"
    if isinstance(value, dict):
        return dictionary_text(value)
    if isinstance(value, Integer):
        return f"{value.value} : {value.type}"
    if isinstance(value, Float):
        return f"{_number_text(value)} : {value.type}"
    if isinstance(value, Unit):
        return "unit"
    if isinstance(value, SymbolRef):
        return "@" + "::@".join((value.name, *value.nested))
    if isinstance(value, Enum):
        return f"#stablehlo<{value.kind} {value.value}>"
    if isinstance(value, DenseElements):
        return _dense_text(value)
    if isinstance(value, OtherAttribute):
        return value.text
    if isinstance(value, Struct):
        fields = ", ".join(f"{k} = {_plain_text(v)}" for k, v in value.fields.items())
        return f"#{value.name}<{fields}>"
    return sdy_text(value)


def _number_text(value: Float) -> str:
    """Six digits where they say it all; bits where there are no digits."""
    short = f"{value.value:.6e}"
    dtype = numpy_of(value.type) or np.dtype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        exact = np.float64(value.value).astype(dtype)
        if not np.isfinite(value.value):
            return f"0x{exact.view(f'u{dtype.itemsize}'):0{2 * dtype.itemsize}X}"
        if np.float64(float(short)).astype(dtype) == exact:
            return short
    return f"{value.value:.{9 if dtype.itemsize <= 4 else 17}g}"


def dictionary_text(value: dict[str, Attribute]) -> str:
    """`{a = 1 : i32, unit}`, keys in order."""
    fields = []
    for key in sorted(value):
        name = key if _BARE.fullmatch(key) else quoted(key)
        item = value[key]
        fields.append(name if isinstance(item, Unit) else f"{name} = {attribute_text(item)}")
    return "{" + ", ".join(fields) + "}"


def _plain_text(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_plain_text, value)) + "]"
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return attribute_text(value)


def _dense_text(value: DenseElements) -> str:
    def nested(items: Any) -> str:
        if isinstance(items, list):
            return "[" + ", ".join(map(nested, items)) + "]"
        if isinstance(items, bool):
            return "true" if items else "false"
        return f"{items:.6e}" if isinstance(items, float) else str(items)

    if value.array.size > 1 and not any(value.array.strides):
        return f"dense<{nested(value.array.flat[:1].tolist()[0])}> : {value.type}"
    if value.type.bounds == () and len(value.type.dims) == 1 and value.type.element == "i64":
        listed = ", ".join(map(str, value.array.tolist()))
        return f"array<i64: {listed}>" if listed else "array<i64>"
    return f"dense<{nested(value.array.tolist())}> : {value.type}"


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
    name = "@" + mesh.name if isinstance(mesh, SymbolRef) else "mesh" + mesh_text(mesh)
    parts = [name, "[" + ", ".join(map(_dim_text, sharding.dims)) + "]"]
    for key, axes in (("replicated", sharding.replicated), ("unreduced", sharding.unreduced)):
        if axes:
            parts.append(f"{key}={{{', '.join(map(axis_text, axes))}}}")
    return "<" + ", ".join(parts) + ">"


def sdy_text(value: Attribute) -> str:
    if isinstance(value, SdySharding):
        return "#sdy.sharding" + sharding_text(value)
    if isinstance(value, SdyPerValue):
        return f"#sdy.sharding_per_value<[{', '.join(map(sharding_text, value.shardings))}]>"
    if isinstance(value, SdyMesh):
        return "#sdy.mesh" + mesh_text(value)
    if isinstance(value, SdyManualAxes):
        return f"#sdy<manual_axes{{{', '.join(map(quoted, value.names))}}}>"
    return str(value)
