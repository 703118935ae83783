"""replica_groups: which participants of a collective work together, in four spellings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, ClassVar

import numpy as np

from haloc.ops.codec import (
    ProtoReader,
    ProtoWriter,
    TextCursor,
    commas,
    format_int_lists,
    int_lists,
    ints,
)

_INTS = r"\d+(?:\s*,\s*\d+)*"
_IOTA = re.compile(rf"\[({_INTS})\]\s*<=\s*\[({_INTS})\](?:\s*T\(({_INTS})\))?")
_MESH = re.compile(
    r"mesh\[([^\[\]]*)\]\s*"
    rf"(?:,\s*device_ids=\(\s*(\[{_INTS}\]\s*T\({_INTS}\)|{_INTS})\s*\)\s*)?,?\s*"
    r"\{([^{}]*)\}"
)
_MESH_AXIS = re.compile(r"\s*['\"]([^'\"]*)['\"]\s*=\s*(\d+)\s*")
_AXIS_REF = re.compile(r"\s*['\"]([^'\"]*)['\"]\s*(?::\s*\((\d+)\)(\d+))?\s*")


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """replica_groups in any of its four spellings; `groups()` gives the explicit lists.

    lists: {{0,1},{2,3}} (or () for {}). iota: (tile dims, reshape dims, transpose perm) of
    [2,2]<=[2,2]T(1,0). mesh: (axes ((name, size), ...), device ids or None, axis refs) of v3.
    """

    lists: tuple[tuple[int, ...], ...] = ()
    iota: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None = None
    mesh: tuple[Any, ...] | None = None

    def groups(self, device_count: int = 0) -> tuple[tuple[int, ...], ...]:
        """The explicit lists; `{}` is one group of all `device_count` participants."""
        if self.iota is not None:
            tile, source, order = self.iota
            ids = np.arange(prod(source)).reshape(source).transpose(order).reshape(tile)
            return tuple(tuple(map(int, row)) for row in ids)
        if self.mesh is not None:
            return _mesh_groups(*self.mesh)
        if not self.lists:
            return (tuple(range(device_count)),) if device_count else ()
        return self.lists


@dataclass(frozen=True, slots=True)
class Groups:
    """ReplicaGroups: `replica_groups={{0,1}}`, `[2,2]<=[4]`, `mesh['a'=2] {'a'}`.

    In protos each spelling has a field of its own.
    """

    proto_zero: ClassVar[Any] = {}
    proto_fields: ClassVar[tuple[str, ...]] = (
        "replica_groups",
        "collective_device_list",
        "iota_collective_device_list",
        "mesh_axes_replica_group_list",
    )

    def from_proto(self, data: Any, reader: ProtoReader) -> ReplicaGroups:
        if mesh := data.get(_MESH_FIELD):
            return ReplicaGroups(mesh=_mesh_from_proto(mesh, reader))
        if iota := data.get(_IOTA_FIELD):
            tile = (iota.get("num_replica_groups", 0), iota.get("num_devices_per_group", 0))
            source = tuple(iota.get("iota_reshape_dims", ()))
            order = tuple(iota.get("iota_transpose_perm", ())) or tuple(range(len(source)))
            if sorted(order) != list(range(len(source))) or prod(tile) != prod(source):
                reader.fail(
                    f"replica_groups {tile} do not fit dimensions {source} in order {order}"
                )
            return ReplicaGroups(iota=(tile, source, order))
        lists = data.get(_LIST_FIELD, {}).get("replica_groups") or data.get("replica_groups", ())
        return ReplicaGroups(lists=tuple(tuple(one.get("replica_ids", ())) for one in lists))

    def to_proto(self, value: ReplicaGroups, writer: ProtoWriter) -> Any:
        if value.mesh is not None:
            return {_MESH_FIELD: _mesh_to_proto(*value.mesh)}
        if value.iota is not None:
            tile, source, order = value.iota
            keys = ("num_replica_groups", "num_devices_per_group")
            dims = {"iota_reshape_dims": list(source), "iota_transpose_perm": list(order)}
            return {_IOTA_FIELD: dict(zip(keys, tile, strict=True)) | dims}
        groups = [{"replica_ids": list(one)} for one in value.lists]
        return {_LIST_FIELD: {"replica_groups": groups}}

    def parse(self, cursor: TextCursor) -> ReplicaGroups:
        if found := cursor.match(_IOTA):
            tile, source, order = map(ints, found.groups())
            order = order or tuple(range(len(source)))
            groups = ReplicaGroups(iota=(tile, source, order))
            if len(tile) != 2 or sorted(order) != list(range(len(source))):
                cursor.fail(
                    f"found {found[0]!r}, expected [groups,size]<=[dims]T(permutation)",
                    len(found[0]),
                )
            if prod(tile) != prod(source):
                cursor.fail(f"{found[0]!r} does not hold as many devices on both sides", 1)
            return groups
        if found := cursor.match(_MESH):
            return ReplicaGroups(mesh=self._mesh(cursor, found))
        lists = int_lists(cursor)
        return ReplicaGroups(lists=lists)

    @staticmethod
    def _mesh(cursor: TextCursor, found: re.Match[str]) -> tuple[Any, ...]:
        axes = _all_matches(_MESH_AXIS, found[1])
        refs = _all_matches(_AXIS_REF, found[3])
        if axes is None or refs is None:
            cursor.fail("expected mesh['axis'=size,...] {'axis',...}", len(found[0]))
        sizes = tuple((m[1], int(m[2])) for m in axes)
        names = tuple((m[1], int(m[2]), int(m[3])) if m[2] else m[1] for m in refs)
        for ref in names:
            axis = ref if isinstance(ref, str) else ref[0]
            if axis not in dict(sizes):
                cursor.fail(f"axis {axis!r} is not an axis of the mesh", len(found[0]))
        devices = found[2].replace(" ", "") if found[2] else None
        return (sizes, devices, names)

    def format(self, value: ReplicaGroups) -> str:
        if value.iota is not None:
            tile, source, order = value.iota
            turned = order != tuple(range(len(order)))
            suffix = f"T({commas(order)})" if turned else ""
            return f"[{commas(tile)}]<=[{commas(source)}]{suffix}"
        if value.mesh is not None:
            axes, devices, refs = value.mesh
            mesh = ",".join(f"'{name}'={size}" for name, size in axes)
            ids = f", device_ids=({devices})" if devices is not None else ""
            named = (f"'{r}'" if isinstance(r, str) else f"'{r[0]}':({r[1]}){r[2]}" for r in refs)
            return f"mesh[{mesh}]{ids} {{{','.join(named)}}}"
        return format_int_lists(value.lists)


def _all_matches(pattern: re.Pattern[str], text: str) -> list[re.Match[str]] | None:
    """One match for each comma-separated part of `text`; None if some part does not match."""
    if not text.strip():
        return []
    found = [pattern.fullmatch(part) for part in text.split(",")]
    return None if None in found else [m for m in found if m]


def _mesh_groups(
    axes: tuple[tuple[str, int], ...], devices: str | None, refs: tuple[Any, ...]
) -> tuple[tuple[int, ...], ...]:
    """Devices that differ only along the axes (or parts of axes) named by `refs`."""
    wanted = [(r, 1, dict(axes)[r]) if isinstance(r, str) else r for r in refs]
    pieces: list[tuple[str, int, int]] = []
    for name, size in axes:
        cuts = {1, size} | {c for n, pre, s in wanted if n == name for c in (pre, pre * s)}
        steps = sorted(cuts)
        pieces += [(name, low, high // low) for low, high in pairwise(steps)]
    wanted_pieces = [
        p for name, pre, size in wanted for p in pieces if p[0] == name and pre <= p[1] < pre * size
    ]
    order = [i for i, p in enumerate(pieces) if p not in wanted_pieces]
    order += [pieces.index(p) for p in wanted_pieces]
    ids = _mesh_devices(axes, devices).reshape([size for _, _, size in pieces])
    group_size = prod([size for _, _, size in wanted_pieces])
    return tuple(tuple(map(int, row)) for row in ids.transpose(order).reshape(-1, group_size))


def _mesh_devices(axes: tuple[tuple[str, int], ...], devices: str | None) -> np.ndarray:
    """Device ids of a mesh, flat: explicit, an iota turned by a permutation, or in order."""
    if devices is None:
        return np.arange(prod([size for _, size in axes]))
    turned = _TURNED.fullmatch(devices)
    if turned is None:
        return np.array(ints(devices))
    source, order = ints(turned[1]), ints(turned[2])
    return np.arange(prod(source)).reshape(source).transpose(order).reshape(-1)


_TURNED = re.compile(rf"\[({_INTS})\]\s*T\(({_INTS})\)")

_LIST_FIELD = "collective_device_list"
_IOTA_FIELD = "iota_collective_device_list"
_MESH_FIELD = "mesh_axes_replica_group_list"


def _mesh_from_proto(data: Any, reader: ProtoReader) -> tuple[Any, ...]:
    """(axes, device ids, axis references) of a mesh_axes_replica_group_list."""
    mesh = data.get("mesh", {})
    axes = tuple((axis.get("name", ""), axis.get("size", 0)) for axis in mesh.get("axes", ()))
    names = []
    for ref in data.get("axes", ()):
        number = ref.get("mesh_axis_index", 0)
        if not 0 <= number < len(axes):
            reader.fail(f"replica_groups name axis {number} of a mesh of {len(axes)} axes")
        part, name = ref.get("sub_axis_info"), axes[number][0]
        names.append(name if part is None else (name, part.get("pre_size", 0), part.get("size", 0)))
    return axes, mesh_device_text(mesh), tuple(names)


def mesh_device_text(mesh: Any) -> str | None:
    """What stands in `device_ids=(...)` of a MeshProto; None for 0, 1, 2, ..."""
    if mesh.get("device_ids"):
        return commas(mesh["device_ids"])
    if turn := mesh.get("iota_transform"):
        return (
            f"[{commas(turn.get('reshape_dims', ()))}]T({commas(turn.get('transpose_perm', ()))})"
        )
    return None


def mesh_to_proto(axes: tuple[tuple[str, int], ...], devices: str | None) -> dict[str, Any]:
    """A MeshProto."""
    found: dict[str, Any] = {"axes": [{"name": name, "size": size} for name, size in axes]}
    turned = None if devices is None else _TURNED.fullmatch(devices)
    if turned:
        found["iota_transform"] = {
            "reshape_dims": list(ints(turned[1])),
            "transpose_perm": list(ints(turned[2])),
        }
    elif devices is not None:
        found["device_ids"] = list(ints(devices))
    return found


def _mesh_to_proto(
    axes: tuple[tuple[str, int], ...], devices: str | None, refs: tuple[Any, ...]
) -> dict[str, Any]:
    numbers = {name: i for i, (name, _) in enumerate(axes)}
    found: list[Any] = []
    for ref in refs:
        if isinstance(ref, str):
            found.append({"mesh_axis_index": numbers[ref]})
        else:
            part = {"pre_size": ref[1], "size": ref[2]}
            found.append({"mesh_axis_index": numbers[ref[0]], "sub_axis_info": part})
    return {"mesh": mesh_to_proto(axes, devices), "axes": found}
