"""Shardy's attributes in text: meshes, shardings, manual axes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from haloc.formats.stablehlo.mlir import (
    Attribute,
    SdyAxis,
    SdyDim,
    SdyManualAxes,
    SdyMesh,
    SdyPerValue,
    SdySharding,
    SymbolRef,
)
from haloc.formats.stablehlo.text.cursor import MlirCursor

T = TypeVar("T")

_SUB_AXIS = re.compile(r"\s*:\s*\(\s*(\d+)\s*\)\s*(\d+)")
_PRIORITY = re.compile(r"p(\d+)")


def parse_mesh(cursor: MlirCursor) -> SdyMesh:
    """`<["x"=2, "y"=4], device_ids=[...]>`."""
    cursor.expect("<")
    axes: list[tuple[str, int]] = []
    if cursor.accept("["):
        while not cursor.accept("]"):
            at = cursor.skip()
            name = cursor.string()
            if name in dict(axes):
                cursor.fail_at(f"mesh axis {name!r} is given twice", at, cursor.pos)
            cursor.expect("=")
            axes.append((name, cursor.integer()))
            if not cursor.accept(","):
                cursor.expect("]")
                break
        cursor.accept(",")
    device_ids: tuple[int, ...] = ()
    if cursor.accept_word("device_ids"):
        cursor.expect("=")
        device_ids = cursor.ints()
    elif cursor.accept_word("maximal_device_id"):
        cursor.expect("=")
        device_ids = (cursor.integer(),)
    cursor.expect(">")
    return SdyMesh(tuple(axes), device_ids)


def parse_sdy_sharding(cursor: MlirCursor) -> SdySharding:
    """`<@mesh, [{"x"}, {?}], replicated={"y"}, unreduced={"z"}>`."""
    cursor.expect("<")
    mesh: SymbolRef | SdyMesh
    if cursor.accept_word("mesh"):
        mesh = parse_mesh(cursor)
    else:
        mesh = SymbolRef(cursor.symbol())
    cursor.expect(",")
    dims = _list(cursor, "[", "]", _dim)
    extra: dict[str, tuple[SdyAxis, ...]] = {}
    while cursor.accept(","):
        at = cursor.skip()
        key = cursor.word("replicated or unreduced")
        if key not in ("replicated", "unreduced") or key in extra:
            message = f"found {key!r}, expected replicated={{...}} or unreduced={{...}} once"
            cursor.fail_at(message, at, cursor.pos)
        cursor.expect("=")
        extra[key] = _list(cursor, "{", "}", _axis)
    cursor.expect(">")
    return SdySharding(mesh, dims, extra.get("replicated", ()), extra.get("unreduced", ()))


def parse_per_value(cursor: MlirCursor) -> SdyPerValue:
    """`<[<@mesh, ...>, <@mesh, ...>]>`."""
    cursor.expect("<")
    shardings = parse_sharding_list(cursor)
    cursor.expect(">")
    return SdyPerValue(shardings)


def parse_sharding_list(cursor: MlirCursor) -> tuple[SdySharding, ...]:
    return _list(cursor, "[", "]", parse_sdy_sharding)


def parse_axis_names(cursor: MlirCursor) -> tuple[str, ...]:
    """`{"x", "y"}`."""
    return _list(cursor, "{", "}", MlirCursor.string)


def parse_manual_axes(cursor: MlirCursor) -> SdyManualAxes:
    if cursor.accept("<"):
        names = parse_axis_names(cursor)
        cursor.expect(">")
        return SdyManualAxes(names)
    return SdyManualAxes(parse_axis_names(cursor))


def _list(
    cursor: MlirCursor, opening: str, closing: str, one: Callable[[MlirCursor], T]
) -> tuple[T, ...]:
    cursor.expect(opening)
    found: list[T] = []
    while not cursor.accept(closing):
        found.append(one(cursor))
        if not cursor.accept(","):
            if not cursor.accept(closing):
                cursor.expected(f"',' or {closing!r}")
            break
    return tuple(found)


def _axis(cursor: MlirCursor) -> SdyAxis:
    name = cursor.string()
    found = _SUB_AXIS.match(cursor.text, cursor.pos)
    if found is None:
        return SdyAxis(name)
    cursor.pos = found.end()
    return SdyAxis(name, int(found[1]), int(found[2]))


def _dim(cursor: MlirCursor) -> SdyDim:
    cursor.expect("{")
    axes: list[SdyAxis] = []
    is_open = False
    while not cursor.accept("}"):
        if cursor.accept("?"):
            is_open = True
            cursor.expect("}")
            break
        axes.append(_axis(cursor))
        if not cursor.accept(","):
            cursor.expect("}")
            break
    found = _PRIORITY.match(cursor.text, cursor.pos)
    if found is None:
        return SdyDim(tuple(axes), is_open)
    cursor.pos = found.end()
    return SdyDim(tuple(axes), is_open, int(found[1]))


def _axis_ref(cursor: MlirCursor) -> SdyAxis:
    cursor.expect("<")
    axis = _axis(cursor)
    cursor.expect(">")
    return axis


SDY_READERS: dict[str, Callable[[MlirCursor], Attribute]] = {
    "mesh": parse_mesh,
    "sharding": parse_sdy_sharding,
    "sharding_per_value": parse_per_value,
    "manual_axes": parse_manual_axes,
    "axis_ref": _axis_ref,
}  # by the word behind `#sdy.`
