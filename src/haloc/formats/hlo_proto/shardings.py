"""OpSharding and `HloSharding`, in both forms: tiles over devices, and named mesh axes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from haloc.errors import HloParseError, InvalidArgumentError
from haloc.formats.hlo_proto.metadata import metadata_list_text, metadata_list_to_proto
from haloc.formats.proto import Message, decode, encode
from haloc.ir.sharding import AxisRef, DimSharding, HloSharding, Iota, ShardingKind, parse_sharding
from haloc.ops.replica_groups import mesh_device_text, mesh_to_proto

_TYPES = ("replicated", "maximal", "tuple", "devices", "manual", "unknown", "unreduced")
"""ShardingKind values by the number of OpSharding.Type."""

_GROUPS = ("shard_as", "shard_like")


@lru_cache(maxsize=20_000)
def sharding_from_bytes(data: bytes) -> HloSharding:
    """The sharding of an encoded OpSharding. Raises HloParseError, InvalidArgumentError."""
    return sharding_from_proto(decode("OpSharding", data))


def sharding_to_bytes(sharding: HloSharding) -> bytes:
    return _encoded(sharding, str(sharding))


@lru_cache(maxsize=20_000)
def _encoded(sharding: HloSharding, text: str) -> bytes:
    """By text too: shardings that differ in metadata only are equal."""
    return encode("OpSharding", sharding_to_proto(sharding))


def sharding_from_proto(message: Message) -> HloSharding:
    """The sharding of a decoded OpSharding, made canonical and checked by the reader of text."""
    return parse_sharding("{" + _text(message) + "}")


def _text(message: Message) -> str:
    if "named_sharding" in message:
        return _with_metadata(_mesh_text(message["named_sharding"]), message["named_sharding"])
    number = message.get("type", 0)
    if not 0 <= number < len(_TYPES):
        raise HloParseError(f"unknown OpSharding.Type {number}")
    word = _TYPES[number]
    if word == "tuple":
        return ", ".join("{" + _text(m) + "}" for m in message.get("tuple_shardings", ()))
    if word == "maximal":
        devices = message.get("tile_assignment_devices", [])
        if len(devices) != 1:
            raise HloParseError(f"a maximal sharding is on one device, given {devices}")
        word = f"maximal device={devices[0]}"
    elif word == "devices":
        word = _tiled_text(message)
    if message.get("is_shard_group"):
        kind = message.get("shard_group_type", 0)
        if kind not in (0, 1):
            raise HloParseError(f"unknown OpSharding.ShardGroupType {kind}")
        word += f" {_GROUPS[kind]} {message.get('shard_group_id', 0)}"
    return _with_metadata(word, message)


def _with_metadata(word: str, message: Message) -> str:
    metadata = message.get("metadata", ())
    return f"{word} metadata={metadata_list_text(metadata)}" if metadata else word


def _tiled_text(message: Message) -> str:
    def commas(key: str) -> str:
        return ",".join(map(str, message.get(key, ())))

    text = f"devices=[{commas('tile_assignment_dimensions')}]"
    if message.get("iota_reshape_dims"):
        text += f"<=[{commas('iota_reshape_dims')}]"
        if len(message.get("iota_transpose_perm", ())) > 1:
            text += f"T({commas('iota_transpose_perm')})"
    else:
        text += commas("tile_assignment_devices")
    if message.get("replicate_on_last_tile_dim"):
        return text + " last_tile_dim_replicate"
    if kinds := message.get("last_tile_dims"):
        for kind in kinds:
            if not 0 <= kind < len(_TYPES):
                raise HloParseError(f"unknown OpSharding.Type {kind}")
        text += " last_tile_dims={" + ", ".join(_TYPES[k] for k in kinds) + "}"
    return text


def _mesh_text(message: Message) -> str:
    mesh = message.get("mesh", {})
    names = [axis.get("name", "") for axis in mesh.get("axes", ())]
    for name in names:
        if any(c in name for c in "'\"[]{}(),"):
            raise HloParseError(f"a mesh axis cannot be called {name!r}")
    dims = message.get("dim_shardings", ())
    if not names and not dims and len(mesh.get("device_ids", ())) == 1:
        return f"maximal_mesh[device_id={mesh['device_ids'][0]}]"
    axes = ",".join(f"'{a.get('name', '')}'={a.get('size', 0)}" for a in mesh.get("axes", ()))
    ids = mesh_device_text(mesh)
    parts = [f"mesh[{axes}]", *([] if ids is None else [f"device_ids=({ids})"])]
    shardings = (DimSharding(_refs(d.get("axes", ()), names), not d.get("is_closed")) for d in dims)
    parts.append("[" + ", ".join(map(str, shardings)) + "]")
    for key in ("replicated", "unreduced", "manual"):
        if refs := _refs(message.get(f"{key}_axes", ()), names):
            parts.append(f"{key}={{{', '.join(map(str, refs))}}}")
    return ", ".join(parts)


def _refs(messages: Any, names: list[str]) -> tuple[AxisRef, ...]:
    found = []
    for ref in messages:
        number = ref.get("mesh_axis_index", 0)
        if not 0 <= number < len(names):
            raise HloParseError(f"a sharding names axis {number} of a mesh of {len(names)} axes")
        part = ref.get("sub_axis_info")
        size = (part.get("pre_size", 0), part.get("size", 0)) if part else (1, 0)
        found.append(AxisRef(names[number], *size))
    return tuple(found)


def sharding_to_proto(sharding: HloSharding) -> Message:
    """An OpSharding."""
    metadata = metadata_list_to_proto(sharding.metadata) if sharding.metadata else []
    if sharding.kind is ShardingKind.MESH or sharding.is_maximal_mesh:
        named = _named_to_proto(sharding)
        return {"named_sharding": named | ({"metadata": metadata} if metadata else {})}
    message: Message = {"type": _TYPES.index(sharding.kind.value)}
    if sharding.is_tuple:
        message["tuple_shardings"] = [sharding_to_proto(e) for e in sharding.elements]
    elif sharding.kind is ShardingKind.MAXIMAL:
        message["tile_assignment_devices"] = [sharding.device]
    elif sharding.is_tiled:
        message["tile_assignment_dimensions"] = list(sharding.tile_dims)
        if isinstance(sharding.devices, Iota):
            message["iota_reshape_dims"] = list(sharding.devices.dims)
            message["iota_transpose_perm"] = list(sharding.devices.order)
        else:
            message["tile_assignment_devices"] = list(sharding.devices)
        if sharding.subgroups == ("replicated",):
            message["replicate_on_last_tile_dim"] = True
        else:
            message["last_tile_dims"] = [_TYPES.index(kind) for kind in sharding.subgroups]
    if sharding.shard_group:
        kind, number = sharding.shard_group
        message |= {"is_shard_group": True, "shard_group_id": number}
        message["shard_group_type"] = _GROUPS.index(kind)
    if metadata:
        message["metadata"] = metadata
    return message


def _named_to_proto(sharding: HloSharding) -> Message:
    if sharding.is_maximal_mesh:
        return {"mesh": {"device_ids": [sharding.device]}}
    mesh = sharding.mesh
    if mesh is None:
        raise InvalidArgumentError(f"sharding {sharding} has no mesh")
    numbers = {name: i for i, (name, _) in enumerate(mesh.axes)}

    def refs(axes: tuple[AxisRef, ...]) -> list[Message]:
        found: list[Message] = []
        for axis in axes:
            ref: Message = {"mesh_axis_index": numbers[axis.name]}
            if axis.size:
                ref["sub_axis_info"] = {"pre_size": axis.pre_size, "size": axis.size}
            found.append(ref)
        return found

    return {
        "mesh": mesh_to_proto(mesh.axes, mesh.device_ids),
        "dim_shardings": [
            {"axes": refs(d.axes), "is_closed": not d.is_open} for d in sharding.dim_shardings
        ],
        "replicated_axes": refs(sharding.replicated_axes),
        "unreduced_axes": refs(sharding.unreduced_axes),
        "manual_axes": refs(sharding.manual_axes),
    }
