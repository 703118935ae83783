"""Decoders of Shardy's attributes, which mixed artifacts carry beside VHLO."""

from __future__ import annotations

from typing import Any

from haloc.formats.stablehlo.bytecode.cursor import ByteCursor
from haloc.formats.stablehlo.bytecode.entries import Decoder, Entries, describe
from haloc.formats.stablehlo.mlir import (
    OtherAttribute,
    SdyAxis,
    SdyDim,
    SdyManualAxes,
    SdyMesh,
    SdyPerValue,
    SdySharding,
    SymbolRef,
)


def _listed(cursor: ByteCursor, entries: Entries, kind: Any, what: str) -> tuple[Any, ...]:
    start = cursor.pos
    values = entries.read_attributes(cursor)
    for value in values:
        if not isinstance(value, kind):
            cursor.fail(f"found {describe(value)}, expected {what}", start)
    return values


def _mesh_axis(cursor: ByteCursor, entries: Entries) -> tuple[str, int]:
    return entries.read_string(cursor), cursor.svarint("an axis size")


def _mesh(cursor: ByteCursor, entries: Entries) -> SdyMesh:
    axes = _listed(cursor, entries, tuple, "mesh axes")
    if not all(len(a) == 2 and isinstance(a[0], str) for a in axes):
        cursor.fail(f"found {describe(axes)}, expected mesh axes")
    return SdyMesh(axes, cursor.signed_list("device ids"))


def _sub_axis(cursor: ByteCursor, entries: Entries) -> tuple[int, int]:
    return cursor.svarint("a pre_size"), cursor.svarint("a size")


def _axis(cursor: ByteCursor, entries: Entries) -> SdyAxis:
    name = entries.read_string(cursor)
    part = entries.read_optional_attribute(cursor)
    if isinstance(part, tuple) and len(part) == 2 and all(isinstance(p, int) for p in part):
        return SdyAxis(name, *part)
    return SdyAxis(name)


def _dim(cursor: ByteCursor, entries: Entries) -> SdyDim:
    axes = _listed(cursor, entries, SdyAxis, "an axis")
    is_closed = bool(cursor.byte("whether the dimension is closed"))
    value, is_there = cursor.flagged("a priority")
    return SdyDim(axes, not is_closed, value if is_there else None)


def _sharding(with_unreduced: bool, with_reduction: bool = False) -> Decoder:
    def read(cursor: ByteCursor, entries: Entries) -> SdySharding:
        mesh = entries.read_a(cursor, (SymbolRef, SdyMesh), "a mesh")
        dims = _listed(cursor, entries, SdyDim, "a dimension's sharding")
        replicated = _listed(cursor, entries, SdyAxis, "an axis")
        unreduced = _listed(cursor, entries, SdyAxis, "an axis") if with_unreduced else ()
        if with_reduction:
            cursor.varint("a reduction kind")
        return SdySharding(mesh, dims, replicated, unreduced)

    return read


def _per_value(cursor: ByteCursor, entries: Entries) -> SdyPerValue:
    return SdyPerValue(_listed(cursor, entries, SdySharding, "a sharding"))


def _manual_axes(cursor: ByteCursor, entries: Entries) -> SdyManualAxes:
    return SdyManualAxes(_listed(cursor, entries, str, "an axis name"))


def _dim_factors(cursor: ByteCursor, entries: Entries) -> OtherAttribute:
    return OtherAttribute(str(cursor.signed_list("factors")))


def _value_factors(cursor: ByteCursor, entries: Entries) -> OtherAttribute:
    return OtherAttribute(str(entries.read_attributes(cursor)))


def _rule(cursor: ByteCursor, entries: Entries) -> OtherAttribute:
    """How a custom call may be sharded: factor sizes, the factors of each operand and result,
    four lists of factors (the first versions had fewer), and whether a person wrote the rule."""
    cursor.signed_list("factor sizes")
    entries.read_attributes(cursor)
    entries.read_attributes(cursor)
    while cursor.remaining > 1:
        cursor.signed_list("factors")
    cursor.byte("whether the rule is custom")
    return OtherAttribute("#sdy.op_sharding_rule")


ATTRIBUTES: dict[int, Decoder] = {
    0: _manual_axes,
    1: _mesh_axis,
    2: _mesh,
    3: _sub_axis,
    4: _axis,
    5: _dim,
    6: _sharding(False),
    7: _per_value,
    8: _dim_factors,
    9: _value_factors,
    10: _rule,
    15: _sharding(True),
    16: _per_value,
    17: _sharding(True, True),
}

OPS: dict[str, tuple[str, ...]] = {
    "sdy.mesh": ("mesh", "sym_name"),
    "sdy.sharding_constraint": ("sharding",),
    "sdy.manual_computation": ("in_shardings", "manual_axes", "out_shardings"),
    "sdy.reshard": ("sharding",),
    "sdy.return": (),
    "sdy.sharding_group": ("group_id",),
    "sdy.propagation_barrier": ("allowed_direction",),
    "sdy.named_computation": ("in_shardings?", "name", "out_shardings?"),
}
"""Property names in the order they are written; those with ? are optional."""
