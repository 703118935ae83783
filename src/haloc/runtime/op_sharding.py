"""`OpSharding` and `HloSharding` as `xla_client` shows them: the proto, and what it means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum
from itertools import accumulate, pairwise
from math import prod
from operator import mul
from typing import Any

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.formats.hlo_proto import sharding_from_bytes, sharding_to_bytes
from haloc.formats.proto import Message, decode, encode
from haloc.ir.sharding import (
    MANUAL,
    REPLICATED,
    HloSharding,
    Iota,
    ShardingKind,
    parse_sharding,
    tuple_sharding,
)
from haloc.runtime.xla_shape import XlaShape


class OpShardingType(IntEnum):
    """Prints as jaxlib's `OpSharding_Type` does."""

    REPLICATED = 0
    MAXIMAL = 1
    TUPLE = 2
    OTHER = 3
    MANUAL = 4
    UNKNOWN = 5
    UNREDUCED = 6

    def __repr__(self) -> str:
        return f"OpSharding_Type.{self.name}"


class ShardGroupType(IntEnum):
    AS = 0
    LIKE = 1

    def __repr__(self) -> str:
        return f"OpSharding_ShardGroupType.{self.name}"


class OpSharding:
    """An OpSharding message, mutable, with jaxlib's names. Compared by identity."""

    Type = OpShardingType
    ShardGroupType = ShardGroupType

    _LISTS = (
        "tile_assignment_dimensions",
        "tile_assignment_devices",
        "iota_reshape_dims",
        "iota_transpose_perm",
    )

    __slots__ = (
        "_rest",
        "iota_reshape_dims",
        "iota_transpose_perm",
        "is_shard_group",
        "last_tile_dims",
        "replicate_on_last_tile_dim",
        "shard_group_id",
        "shard_group_type",
        "tile_assignment_devices",
        "tile_assignment_dimensions",
        "tuple_shardings",
        "type",
    )

    type: OpShardingType
    shard_group_type: ShardGroupType

    def __init__(self) -> None:
        self._set({})

    def __setattr__(self, name: str, value: Any) -> None:
        wanted = {"type": OpShardingType, "shard_group_type": ShardGroupType}.get(name, object)
        if not isinstance(value, wanted):
            raise TypeError(f"OpSharding.{name} is {value!r}, not an {wanted.__name__}")
        object.__setattr__(self, name, value)

    def _set(self, message: Message) -> None:
        message = dict(message)
        self.type = OpShardingType(message.pop("type", 0))
        for name in self._LISTS:
            setattr(self, name, message.pop(name, []))
        self.last_tile_dims = [OpShardingType(n) for n in message.pop("last_tile_dims", [])]
        self.tuple_shardings = [
            op_sharding_from_message(m) for m in message.pop("tuple_shardings", [])
        ]
        self.replicate_on_last_tile_dim = message.pop("replicate_on_last_tile_dim", False)
        self.is_shard_group = message.pop("is_shard_group", False)
        self.shard_group_id = message.pop("shard_group_id", 0)
        self.shard_group_type = ShardGroupType(message.pop("shard_group_type", 0))
        self._rest = message

    def _message(self) -> Message:
        return self._rest | {
            "type": int(self.type),
            **{name: list(getattr(self, name)) for name in self._LISTS},
            "last_tile_dims": [int(kind) for kind in self.last_tile_dims],
            "tuple_shardings": [s._message() for s in self.tuple_shardings],
            "replicate_on_last_tile_dim": self.replicate_on_last_tile_dim,
            "is_shard_group": self.is_shard_group,
            "shard_group_id": self.shard_group_id,
            "shard_group_type": int(self.shard_group_type),
        }

    def SerializeToString(self) -> bytes:
        """InvalidArgumentError for a value that does not fit its field."""
        return encode("OpSharding", self._message())

    def ParseFromString(self, data: bytes) -> None:
        """Replace every field. HloParseError for data that is no OpSharding."""
        message = decode("OpSharding", data)
        sharding_numbers_are_known(message)
        self._set(message)

    def clone(self) -> OpSharding:
        return op_sharding_from_message(decode("OpSharding", self.SerializeToString()))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_from_bytes, (self.SerializeToString(),))

    def __repr__(self) -> str:
        return f"OpSharding({', '.join(f'{k}={v}' for k, v in self._message().items() if v)})"


def sharding_numbers_are_known(message: Message) -> None:
    """InvalidArgumentError for a number that is in no enumeration of OpSharding."""
    kinds = (message.get("type", 0), *message.get("last_tile_dims", ()))
    for what, number, known in (
        *(("Type", kind, OpShardingType) for kind in kinds),
        ("ShardGroupType", message.get("shard_group_type", 0), ShardGroupType),
    ):
        if number not in known.__members__.values():
            raise InvalidArgumentError(f"unknown OpSharding.{what} {number}")
    for inner in message.get("tuple_shardings", ()):
        sharding_numbers_are_known(inner)


def op_sharding_from_message(message: Message) -> OpSharding:
    """The wrapper of a decoded OpSharding message."""
    made = OpSharding()
    made._set(message)
    return made


def _from_bytes(data: bytes) -> OpSharding:
    made = OpSharding()
    made.ParseFromString(data)
    return made


class XlaHloSharding:
    """A sharding with its meaning, immutable and hashable. `ir` is haloc's own."""

    def __init__(self, sharding: HloSharding):
        self.ir = sharding

    @staticmethod
    def from_proto(proto: OpSharding) -> XlaHloSharding:
        """InvalidArgumentError for a message that is no sharding."""
        return XlaHloSharding(sharding_from_bytes(proto.SerializeToString()))

    @staticmethod
    def from_string(text: str) -> XlaHloSharding:
        """`{devices=[2,2]<=[4]}` and the like; InvalidArgumentError for other text."""
        return XlaHloSharding(parse_sharding(text))

    @staticmethod
    def replicate() -> XlaHloSharding:
        return XlaHloSharding(REPLICATED)

    @staticmethod
    def manual() -> XlaHloSharding:
        return XlaHloSharding(MANUAL)

    @staticmethod
    def unknown() -> XlaHloSharding:
        return XlaHloSharding(HloSharding(ShardingKind.UNKNOWN))

    @staticmethod
    def unreduced() -> XlaHloSharding:
        return XlaHloSharding(HloSharding(ShardingKind.UNREDUCED))

    @staticmethod
    def iota_tile(
        dims: Sequence[int],
        reshape_dims: Sequence[int] = (),
        transpose_perm: Sequence[int] = (),
        subgroup_types: Sequence[int] = (),
    ) -> XlaHloSharding:
        """Devices 0, 1, 2, ..., shaped `reshape_dims`, transposed, over tiles `dims`; the last
        dims are subgroups of the given types."""
        if not dims:
            raise InvalidArgumentError("`dims` should not be empty.")
        message: Message = {
            "type": 3,
            "tile_assignment_dimensions": list(dims),
            "iota_reshape_dims": list(reshape_dims) or [prod(dims)],
            "iota_transpose_perm": list(transpose_perm) or list(range(len(reshape_dims) or 1)),
            "last_tile_dims": [int(kind) for kind in subgroup_types],
        }
        return XlaHloSharding(sharding_from_bytes(encode("OpSharding", message)))

    @staticmethod
    def subgroup_with_device_ordering(
        tile_assignment: np.ndarray, subgroup_types: Sequence[int] = ()
    ) -> XlaHloSharding:
        """Device ids shaped as the tiles; the last dimensions are subgroups."""
        message: Message = {
            "type": 3,
            "tile_assignment_dimensions": list(tile_assignment.shape),
            "tile_assignment_devices": tile_assignment.reshape(-1).tolist(),
            "last_tile_dims": [int(kind) for kind in subgroup_types],
        }
        return XlaHloSharding(sharding_from_bytes(encode("OpSharding", message)))

    @staticmethod
    def tuple_sharding(shape: XlaShape, shardings: Sequence[XlaHloSharding]) -> XlaHloSharding:
        """One sharding for each leaf of a tuple shape."""
        leaves = len(shape.ir.leaves())
        if len(shardings) != leaves:
            raise InvalidArgumentError(f"{len(shardings)} shardings for the {leaves} leaves")
        return XlaHloSharding(tuple_sharding(*(s.ir for s in shardings)))

    def to_proto(self) -> OpSharding:
        return _from_bytes(sharding_to_bytes(self.ir))

    def is_replicated(self) -> bool:
        return self.ir.is_replicated

    def is_manual(self) -> bool:
        return self.ir.is_manual

    def is_unknown(self) -> bool:
        return self.ir.kind is ShardingKind.UNKNOWN

    def is_unreduced(self) -> bool:
        return self.ir.kind is ShardingKind.UNREDUCED

    def is_maximal(self) -> bool:
        """On one device, or replicated: no tiles (as in XLA)."""
        return self.ir.kind is ShardingKind.MAXIMAL or self.ir.is_replicated

    def is_tiled(self) -> bool:
        return self.ir.is_tiled

    def tuple_elements(self) -> list[XlaHloSharding]:
        return [XlaHloSharding(e) for e in self.ir.elements]

    def num_dimensions(self) -> int:
        return len(self.tile_assignment_dimensions())

    def num_devices(self) -> int:
        return prod(self.ir.tile_dims) if self.ir.is_tiled else 1

    def tile_assignment_dimensions(self) -> list[int]:
        return [1] if self.ir.kind is ShardingKind.MAXIMAL else list(self.ir.tile_dims)

    def tile_assignment_devices(self) -> list[int]:
        if self.ir.is_tiled:
            return self.ir.tile_assignment.reshape(-1).tolist()
        return [self.ir.device]

    def is_tile_assignment_iota(self) -> bool:
        return isinstance(self.ir.devices, Iota)

    def get_axis_sizes(self) -> list[int]:
        """Sizes of the mesh axes, device ids counted row-major, of which every tile dimension is a
        product. InvalidArgumentError for device ids that are no iota, or where there is no such
        mesh."""
        return self.mesh_axes()[0]

    def mesh_axes(self) -> tuple[list[int], list[list[int]]]:
        """(sizes of the mesh axes, for each tile dimension the axes that it is made of, by number,
        major first). InvalidArgumentError as for `get_axis_sizes`."""
        devices = self.ir.devices
        if not isinstance(devices, Iota):
            raise InvalidArgumentError(f"sharding {self.ir} has no axes: its devices are no iota")
        # Cut the transposed ids where either factorisation has a boundary.
        turned = [devices.dims[d] for d in devices.order]
        cuts = sorted({*accumulate(turned, mul), *accumulate(self.ir.tile_dims, mul)} - {1})
        if any(larger % smaller for smaller, larger in pairwise(cuts)):
            raise InvalidArgumentError(f"sharding {self.ir} has no mesh axes that divide its tiles")
        sizes = [larger // smaller for smaller, larger in pairwise([1, *cuts])]
        by_source = _grouped(sizes, turned)
        numbered = [n for d in np.argsort(devices.order) for n in by_source[d]]
        axes = [[numbered.index(n) for n in group] for group in _grouped(sizes, self.ir.tile_dims)]
        return [sizes[n] for n in numbered], axes

    def replicate_on_last_tile_dim(self) -> bool:
        return self.ir.subgroups == ("replicated",)

    def subgroup_types(self) -> list[OpShardingType]:
        """Kinds of the subgroup dimensions; [] for one that is only replicated (as in XLA)."""
        if self.replicate_on_last_tile_dim():
            return []
        return [OpShardingType[kind.upper()] for kind in self.ir.subgroups]

    def tile(self, shape: XlaShape) -> XlaShape:
        """The shape of one device's part: each dimension divided by its tiles, rounded up."""
        if not self.ir.is_tiled:
            return shape
        counts = (*self.ir.tiles, *[1] * shape.rank())
        dims = tuple(-(-d // n) for d, n in zip(shape.dimensions(), counts))
        return XlaShape(shape.ir.with_dims(dims))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, XlaHloSharding):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> HloSharding:
        """The same for device ids that are written as a list or as an iota."""
        if not isinstance(self.ir.devices, Iota):
            return self.ir
        return replace(self.ir, devices=tuple(self.ir.devices.ids().tolist()))

    def __reduce__(self) -> tuple[Any, ...]:
        return (XlaHloSharding.from_string, (str(self.ir),))

    def __repr__(self) -> str:
        return str(self.ir)


def _grouped(sizes: Sequence[int], products: Sequence[int]) -> list[list[int]]:
    """The numbers of the sizes that multiply to each product, in order."""
    numbers = iter(range(len(sizes)))
    groups: list[list[int]] = []
    for product in products:
        group: list[int] = []
        while prod(sizes[n] for n in group) < product:
            group.append(next(numbers))
        groups.append(group)
    return groups
