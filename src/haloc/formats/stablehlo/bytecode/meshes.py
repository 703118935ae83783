"""Decoders of StableHLO's meshes, for replica groups that are axes of one; VHLO's are alike."""

from __future__ import annotations

from typing import Any, NoReturn

from haloc.formats.stablehlo.bytecode.cursor import ByteCursor
from haloc.formats.stablehlo.bytecode.entries import ABSENT, Entries, describe
from haloc.formats.stablehlo.mlir import DenseElements, SdyAxis, SdyMesh, Struct, SymbolRef


def _refuse(cursor: ByteCursor, value: Any, wanted: str) -> NoReturn:
    cursor.fail(f"found {describe(value)}, expected {wanted}")


def sub_axis(cursor: ByteCursor, entries: Entries) -> tuple[int, int]:
    return cursor.svarint("a pre_size"), cursor.svarint("a size")


def axis(cursor: ByteCursor, entries: Entries) -> SdyAxis:
    name = entries.read_string(cursor)
    return _axis(cursor, entries, name, cursor.byte("whether the axis is a part of one"))


def axis_by_varint(cursor: ByteCursor, entries: Entries) -> SdyAxis:
    """VHLO's form: a number says whether a part follows."""
    name = entries.read_a(cursor, str, "an axis name")
    return _axis(cursor, entries, name, cursor.varint("whether the axis is a part of one"))


def _axis(cursor: ByteCursor, entries: Entries, name: str, is_part: int) -> SdyAxis:
    if not is_part:
        return SdyAxis(name)
    part = entries.read_a(cursor, tuple, "a part of an axis")
    if len(part) != 2 or not all(isinstance(p, int) for p in part):
        _refuse(cursor, part, "a part of an axis")
    return SdyAxis(name, *part)


def group_axes(cursor: ByteCursor, entries: Entries) -> Struct:
    """VHLO's form: the axes are an array attribute, the mesh's name is a string."""
    mesh = entries.read_a(cursor, (SdyMesh, str), "a mesh or its name")
    axes = entries.read_a(cursor, tuple, "axes")
    return _group_axes(cursor, SymbolRef(mesh) if isinstance(mesh, str) else mesh, axes)


def own_group_axes(cursor: ByteCursor, entries: Entries) -> Struct:
    mesh = entries.read_a(cursor, (SdyMesh, SymbolRef), "a mesh or its name")
    return _group_axes(cursor, mesh, entries.read_attributes(cursor))


def _group_axes(cursor: ByteCursor, mesh: Any, axes: tuple[Any, ...]) -> Struct:
    if not all(isinstance(a, SdyAxis) for a in axes):
        _refuse(cursor, axes, "axes")
    return Struct("stablehlo.replica_group_mesh_axes", {"mesh": mesh, "axes": axes})


def mesh_axis(cursor: ByteCursor, entries: Entries) -> tuple[str, int]:
    return entries.read_a(cursor, str, "an axis name"), cursor.svarint("an axis size")


def own_mesh_axis(cursor: ByteCursor, entries: Entries) -> tuple[str, int]:
    return entries.read_string(cursor), cursor.svarint("an axis size")


def mesh(cursor: ByteCursor, entries: Entries) -> SdyMesh:
    """VHLO's form: the optional device ids are flagged."""
    axes = entries.read_a(cursor, tuple, "mesh axes")
    return _mesh(cursor, axes, entries.read_optional_attribute(cursor))


def own_mesh(cursor: ByteCursor, entries: Entries) -> SdyMesh:
    axes = entries.read_a(cursor, tuple, "mesh axes")
    has_ids = cursor.byte("whether device ids follow")
    return _mesh(cursor, axes, entries.read_attribute(cursor) if has_ids else ABSENT)


def _mesh(cursor: ByteCursor, axes: tuple[Any, ...], ids: Any) -> SdyMesh:
    if not all(isinstance(a, tuple) and len(a) == 2 and isinstance(a[0], str) for a in axes):
        _refuse(cursor, axes, "mesh axes")
    if ids is ABSENT:
        return SdyMesh(axes)
    if not isinstance(ids, DenseElements) or ids.array.dtype.kind != "i":
        _refuse(cursor, ids, "device ids")
    return SdyMesh(axes, tuple(ids.array.ravel().tolist()))
