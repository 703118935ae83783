"""Shardings: how one array is laid out over devices. Immutable and hashable.

`str(sharding)` is the canonical HLO text and `parse_sharding` reads it:

    {replicated}  {manual}  {unknown}  {unreduced}  {maximal device=1}
    {devices=[2,2]0,1,2,3}  {devices=[2,2]<=[4]}  {devices=[2,1,2]<=[2,2]T(1,0) ...}
    ... last_tile_dim_replicate}   ... last_tile_dims={manual, replicated}}   ... shard_as 7}
    {mesh['a'=2,'b'=2], [{'a'}, {'b'}]}    {maximal_mesh[device_id=1]}    {{...}, {...}}
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import Enum
from math import prod

import numpy as np

from haloc.errors import InvalidArgumentError


class ShardingKind(Enum):
    REPLICATED = "replicated"
    MANUAL = "manual"
    UNKNOWN = "unknown"
    UNREDUCED = "unreduced"
    MAXIMAL = "maximal"
    TILED = "devices"
    MESH = "mesh"
    TUPLE = "tuple"


@dataclass(frozen=True, slots=True)
class Iota:
    """Device ids 0..n-1, shaped `dims`, transposed by `order`: `<=[2,2]T(1,0)`."""

    dims: tuple[int, ...]
    order: tuple[int, ...]

    def ids(self) -> np.ndarray:
        """The device ids in order, flat."""
        return np.arange(prod(self.dims)).reshape(self.dims).transpose(self.order).reshape(-1)

    def canonical(self) -> Iota:
        """Without dimensions of size 1 and with neighbours that stay together merged."""
        kept = [d for d in self.order if self.dims[d] != 1]
        groups: list[list[int]] = []
        for d in kept:
            follows = (
                groups
                and not any(self.dims[x] != 1 for x in range(groups[-1][-1] + 1, d))
                and groups[-1][-1] < d
            )
            if follows:
                groups[-1].append(d)
            else:
                groups.append([d])
        by_source = sorted(groups)
        if not groups:
            return Iota((1,), (0,))
        dims = tuple(prod(self.dims[d] for d in g) for g in by_source)
        return Iota(dims, tuple(by_source.index(g) for g in groups))

    def __str__(self) -> str:
        turned = self.order != tuple(range(len(self.order)))
        suffix = "T(" + ",".join(map(str, self.order)) + ")" if turned else ""
        return "<=[" + ",".join(map(str, self.dims)) + "]" + suffix


@dataclass(frozen=True, slots=True)
class AxisRef:
    """A mesh axis, or part of one: `'a'`, or `'a':(pre_size)size`."""

    name: str
    pre_size: int = 1
    size: int = 0

    def __str__(self) -> str:
        return f"'{self.name}':({self.pre_size}){self.size}" if self.size else f"'{self.name}'"


@dataclass(frozen=True, slots=True)
class Mesh:
    """Named axes with sizes; device_ids as written between the brackets of `device_ids=(...)`,
    or None for 0, 1, 2, ..."""

    axes: tuple[tuple[str, int], ...]
    device_ids: str | None = None

    def __str__(self) -> str:
        axes = ",".join(f"'{name}'={size}" for name, size in self.axes)
        ids = "" if self.device_ids is None else f", device_ids=({self.device_ids})"
        return f"mesh[{axes}]{ids}"

    def ids(self) -> np.ndarray:
        """Device ids, shaped as the mesh."""
        sizes = [size for _, size in self.axes]
        if self.device_ids is None:
            return np.arange(prod(sizes)).reshape(sizes)
        turned = _TURNED.fullmatch(self.device_ids)
        if turned:
            return Iota(_ints(turned[1]), _ints(turned[2])).ids().reshape(sizes)
        return np.array(_ints(self.device_ids)).reshape(sizes)


@dataclass(frozen=True, slots=True)
class DimSharding:
    """The axes that split one dimension, major first; open: propagation may add more (`?`)."""

    axes: tuple[AxisRef, ...] = ()
    is_open: bool = False

    def __str__(self) -> str:
        words = [*map(str, self.axes), *(["?"] if self.is_open else [])]
        return "{" + ", ".join(words) + "}"


@dataclass(frozen=True, slots=True)
class HloSharding:
    """One sharding. Which fields count depends on `kind`.

    tile_dims: tiles per dimension, then the sizes of the subgroup dimensions.
    devices: ids in tile order, explicit or an iota. subgroups: kind of each subgroup dimension
    ("replicated", "manual", ...). device: of a maximal sharding; is_maximal_mesh: written in the
    mesh form. shard_group: ("shard_as" or "shard_like", number). metadata: text, not compared.
    """

    kind: ShardingKind
    tile_dims: tuple[int, ...] = ()
    devices: tuple[int, ...] | Iota = ()
    subgroups: tuple[str, ...] = ()
    device: int = 0
    is_maximal_mesh: bool = False
    mesh: Mesh | None = None
    dim_shardings: tuple[DimSharding, ...] = ()
    replicated_axes: tuple[AxisRef, ...] = ()
    unreduced_axes: tuple[AxisRef, ...] = ()
    manual_axes: tuple[AxisRef, ...] = ()
    elements: tuple[HloSharding, ...] = ()
    shard_group: tuple[str, int] | None = None
    metadata: str = field(default="", compare=False)

    @property
    def is_tuple(self) -> bool:
        return self.kind is ShardingKind.TUPLE

    @property
    def is_replicated(self) -> bool:
        """Every device holds the whole value (of a tuple: of every element)."""
        if self.is_tuple:
            return all(e.is_replicated for e in self.elements)
        return self.kind is ShardingKind.REPLICATED

    @property
    def is_manual(self) -> bool:
        return self.kind is ShardingKind.MANUAL

    @property
    def is_tiled(self) -> bool:
        return self.kind is ShardingKind.TILED

    @property
    def tiles(self) -> tuple[int, ...]:
        """Tiles per dimension of the array, subgroup dimensions left out."""
        return self.tile_dims[: len(self.tile_dims) - len(self.subgroups)]

    @property
    def tile_assignment(self) -> np.ndarray:
        """Device ids shaped `tile_dims`, of a tiled sharding."""
        ids = self.devices.ids() if isinstance(self.devices, Iota) else np.array(self.devices)
        return ids.reshape(self.tile_dims)

    def __str__(self) -> str:
        return "{" + self._body() + "}"

    def _body(self) -> str:
        if self.is_tuple:
            return ", ".join(map(str, self.elements))
        words = [self._core()]
        if self.shard_group:
            words.append(f"{self.shard_group[0]} {self.shard_group[1]}")
        if self.metadata:
            words.append(f"metadata={self.metadata}")
        return " ".join(words)

    def _core(self) -> str:
        if self.kind is ShardingKind.MAXIMAL:
            if self.is_maximal_mesh:
                return f"maximal_mesh[device_id={self.device}]"
            return f"maximal device={self.device}"
        if self.kind is ShardingKind.MESH:
            return self._mesh_text()
        if self.kind is not ShardingKind.TILED:
            return self.kind.value
        ids = self.devices
        text = str(ids) if isinstance(ids, Iota) else ",".join(map(str, ids))
        core = f"devices=[{','.join(map(str, self.tile_dims))}]{text}"
        if self.subgroups == ("replicated",):
            return core + " last_tile_dim_replicate"
        if self.subgroups:
            return core + " last_tile_dims={" + ", ".join(self.subgroups) + "}"
        return core

    def _mesh_text(self) -> str:
        parts = [str(self.mesh), "[" + ", ".join(map(str, self.dim_shardings)) + "]"]
        for key, axes in (
            ("replicated", self.replicated_axes),
            ("unreduced", self.unreduced_axes),
            ("manual", self.manual_axes),
        ):
            if axes:
                parts.append(f"{key}={{{', '.join(map(str, axes))}}}")
        return ", ".join(parts)


REPLICATED = HloSharding(ShardingKind.REPLICATED)
MANUAL = HloSharding(ShardingKind.MANUAL)


def tuple_sharding(*elements: HloSharding) -> HloSharding:
    return HloSharding(ShardingKind.TUPLE, elements=tuple(elements))


# --- Reading -----------------------------------------------------------------------------------

_SIMPLE = {"replicated", "manual", "unknown", "unreduced"}
_INT_LIST = r"\d+(?:\s*,\s*\d+)*"
_DEVICES = re.compile(
    rf"devices=\s*\[({_INT_LIST})\]\s*"
    rf"(?:<=\s*\[({_INT_LIST})\](?:\s*T\(({_INT_LIST})\))?|({_INT_LIST}))"
)
_MAXIMAL = re.compile(r"maximal\s+device=(\d+)")
_MAXIMAL_MESH = re.compile(r"maximal_mesh\[device_id=(\d+)\]")
_WORD = re.compile(r"[a-z_]+")
_LAST_DIMS = re.compile(r"last_tile_dims=\{\s*([a-z]+(?:\s*,\s*[a-z]+)*)\s*\}")
_GROUP = re.compile(r"(shard_as|shard_like)\s+(\d+)")
_METADATA = re.compile(r'metadata=(\{(?:[^{}"]|"(?:[^"\\]|\\.)*"|\{[^{}]*\})*\})')
_MESH = re.compile(
    r"mesh\[([^\[\]]*)\]\s*,\s*"
    rf"(?:device_ids=\(\s*(\[{_INT_LIST}\]\s*T\({_INT_LIST}\)|{_INT_LIST})\s*\)\s*,\s*)?"
    r"\[((?:[^\[\]])*)\]"
)
_MESH_AXIS = re.compile(r"\s*['\"]([^'\"]*)['\"]\s*=\s*(\d+)\s*")
_AXIS = re.compile(r"\s*['\"]([^'\"]*)['\"]\s*(?::\s*\((\d+)\)(\d+))?\s*")
_DIM = re.compile(r"\s*\{([^{}]*)\}\s*")
_MESH_LIST = re.compile(r"\s*,\s*(replicated|unreduced|manual)=\{([^{}]*)\}")
_TURNED = re.compile(rf"\[({_INT_LIST})\]\s*T\(({_INT_LIST})\)")


def _ints(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text.strip() else ()


def parse_sharding(text: str) -> HloSharding:
    """The sharding written in HLO text, braces included. Raises InvalidArgumentError."""
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        raise InvalidArgumentError(f"sharding {text!r} must stand in braces")
    body = text[1:-1].strip()
    if not body:
        return tuple_sharding()
    if body.startswith("{"):
        parts = [part.strip() for part in _split(body)]
        for part in parts:
            if part[:2] in ("{{", "{}"):
                raise InvalidArgumentError(f"found {part} as an element of a tuple sharding")
        return tuple_sharding(*map(parse_sharding, parts))
    sharding, end = _core_of(body)
    return _canonical(_with_suffixes(sharding, body, end))


def _split(body: str) -> list[str]:
    """The comma-separated parts of a text, commas in brackets left alone."""
    parts, depth, start = [], 0, 0
    for i, character in enumerate(body):
        if character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(body[start:i])
            start = i + 1
    return [*parts, body[start:]]


def _core_of(body: str) -> tuple[HloSharding, int]:
    if found := _DEVICES.match(body):
        return _tiled(found), found.end()
    if found := _MAXIMAL.match(body):
        return HloSharding(ShardingKind.MAXIMAL, device=int(found[1])), found.end()
    if found := _MAXIMAL_MESH.match(body):
        maximal = HloSharding(ShardingKind.MAXIMAL, device=int(found[1]), is_maximal_mesh=True)
        return maximal, found.end()
    if found := _MESH.match(body):
        return _mesh(body, found)
    word = _WORD.match(body)
    if word and word[0] in _SIMPLE:
        return HloSharding(ShardingKind(word[0])), word.end()
    raise InvalidArgumentError(
        f"found sharding {{{body}}}, expected replicated, manual, unknown, unreduced, "
        "maximal device=N, devices=[...], mesh[...] or a tuple of shardings"
    )


def _tiled(found: re.Match[str]) -> HloSharding:
    dims = _ints(found[1])
    devices: tuple[int, ...] | Iota
    if found[2]:
        source = _ints(found[2])
        order = _ints(found[3]) if found[3] else tuple(range(len(source)))
        if sorted(order) != list(range(len(source))):
            raise InvalidArgumentError(f"T({found[3]}) is not a permutation of [{found[2]}]")
        devices = Iota(source, order).canonical()
        count = prod(source)
    else:
        devices = _ints(found[4])
        count = len(devices)
        if len(set(devices)) != count:
            raise InvalidArgumentError(f"sharding names a device twice: {found[4]}")
        if count == 1:
            raise InvalidArgumentError("a tiled sharding needs more than one device, given 1")
    if count != prod(dims):
        raise InvalidArgumentError(
            f"devices=[{found[1]}] has {prod(dims)} tiles, given {count} devices"
        )
    return HloSharding(ShardingKind.TILED, dims, devices)


def _mesh(body: str, found: re.Match[str]) -> tuple[HloSharding, int]:
    axes = tuple((m[1], int(m[2])) for m in _parts(_MESH_AXIS, found[1], "a mesh axis 'name'=size"))
    ids = None if found[2] is None else found[2].replace(" ", "")
    dims = []
    for part in _parts(_DIM, found[3], "the axes of a dimension {'a'}"):
        words = [w.strip() for w in part[1].split(",") if w.strip()]
        is_open = "?" in words
        refs = _axis_refs(",".join(w for w in words if w != "?"))
        dims.append(DimSharding(refs, is_open))
    lists: dict[str, tuple[AxisRef, ...]] = {}
    end = found.end()
    while more := _MESH_LIST.match(body, end):
        lists[more[1]] = _axis_refs(more[2])
        end = more.end()
    used = [*(a for d in dims for a in d.axes), *(a for refs in lists.values() for a in refs)]
    for ref in used:
        if ref.name not in dict(axes):
            raise InvalidArgumentError(f"sharding names axis {ref.name!r}, which the mesh has not")
    sharding = HloSharding(
        ShardingKind.MESH,
        mesh=Mesh(axes, ids),
        dim_shardings=tuple(dims),
        replicated_axes=lists.get("replicated", ()),
        unreduced_axes=lists.get("unreduced", ()),
        manual_axes=lists.get("manual", ()),
    )
    return sharding, end


def _axis_refs(text: str) -> tuple[AxisRef, ...]:
    found = _parts(_AXIS, text, "a mesh axis 'name'")
    return tuple(AxisRef(m[1], int(m[2]), int(m[3])) if m[2] else AxisRef(m[1]) for m in found)


def _parts(pattern: re.Pattern[str], text: str, what: str) -> list[re.Match[str]]:
    if not text.strip():
        return []
    found = []
    for part in _split(text):
        one = pattern.fullmatch(part)
        if one is None:
            raise InvalidArgumentError(f"found {part.strip()!r} in a sharding, expected {what}")
        found.append(one)
    return found


def _with_suffixes(sharding: HloSharding, body: str, end: int) -> HloSharding:
    """Read what may follow the core: subgroups, a shard group, metadata."""
    rest = body[end:].lstrip(" \n\t,")
    while rest:
        if rest.startswith("last_tile_dim_replicate"):
            sharding = replace(sharding, subgroups=("replicated",))
            rest = rest[len("last_tile_dim_replicate") :]
        elif found := _LAST_DIMS.match(rest):
            kinds = tuple(w.strip() for w in found[1].split(","))
            for kind in kinds:
                if kind not in _SIMPLE:
                    raise InvalidArgumentError(f"unknown subgroup kind {kind!r} in a sharding")
            sharding = replace(sharding, subgroups=kinds)
            rest = rest[found.end() :]
        elif found := _GROUP.match(rest):
            sharding = replace(sharding, shard_group=(found[1], int(found[2])))
            rest = rest[found.end() :]
        elif found := _METADATA.match(rest):
            sharding = replace(sharding, metadata=found[1])
            rest = rest[found.end() :]
        else:
            raise InvalidArgumentError(f"found {rest!r} behind a sharding")
        rest = rest.lstrip()
    if sharding.subgroups and not sharding.is_tiled:
        raise InvalidArgumentError("last_tile_dims belongs to a sharding with devices=[...]")
    if len(sharding.subgroups) > len(sharding.tile_dims):
        raise InvalidArgumentError(f"{sharding}: more subgroup dimensions than dimensions")
    return sharding


def _canonical(sharding: HloSharding) -> HloSharding:
    """Drop subgroup dimensions of size 1; one subgroup over everything is its plain kind."""
    if not sharding.subgroups:
        return sharding
    count = len(sharding.tile_dims) - len(sharding.subgroups)
    kept = [
        (size, kind)
        for size, kind in zip(sharding.tile_dims[count:], sharding.subgroups)
        if size != 1
    ]
    if len(kept) == 1 and all(size == 1 for size in sharding.tiles):
        kind = kept[0][1]
        if kind != "unreduced":
            return HloSharding(
                ShardingKind(kind), shard_group=sharding.shard_group, metadata=sharding.metadata
            )
    dims = sharding.tile_dims[:count] + tuple(size for size, _ in kept)
    return replace(sharding, tile_dims=dims, subgroups=tuple(kind for _, kind in kept))
