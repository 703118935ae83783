"""`NamedSharding`: the dimensions of an array split over the named axes of a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from haloc.runtime.op_sharding import OpShardingType, XlaHloSharding
from haloc.runtime.sharding.base import Sharding
from haloc.runtime.sharding.partition_spec import PartitionSpec


class DuplicateSpecError(ValueError):
    """A spec that uses one mesh axis for two dimensions."""


class NamedSharding(Sharding):
    """mesh: a Mesh, or any object with `devices` (an array) and `axis_names`. spec: a PartitionSpec
    of its axes. memory_kind: of the mesh's devices; default their default memory.

    ValueError for a spec with axes that the mesh has not, or with one axis twice, and for an
    unknown memory kind; TypeError for a spec of another type.
    """

    def __init__(
        self,
        mesh: Any,
        spec: PartitionSpec,
        memory_kind: str | None = None,
        _logical_device_ids: Sequence[int] | None = None,
    ):
        self.mesh = mesh
        self.spec = _checked(spec, mesh)
        self._logical_device_ids = _logical_device_ids
        self._sizes = dict(zip(mesh.axis_names, np.shape(mesh.devices), strict=True))
        self._device_assignment = tuple(np.asarray(mesh.devices, object).flat)
        self._set_memory_kind(memory_kind)

    @property
    def is_fully_replicated(self) -> bool:
        used = [a for entry in self.spec for a in _axes(entry)]
        return prod(self._sizes[a] for a in [*used, *self.spec.unreduced]) == 1

    def with_memory_kind(self, kind: str) -> NamedSharding:
        return NamedSharding(self.mesh, self.spec, kind, self._logical_device_ids)

    def update(self, **changes: Any) -> NamedSharding:
        """The same with `mesh=`, `spec=` or `memory_kind=` replaced."""
        kept = {"mesh": self.mesh, "spec": self.spec, "memory_kind": self._memory_kind}
        return NamedSharding(**(kept | changes))

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """ValueError for a shape with fewer dimensions than the spec has entries."""
        if len(aval_shape) < len(self.spec):
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(self.spec)}, but "
                f"was applied to a value of rank {len(aval_shape)}"
            )

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> XlaHloSharding:
        self.check_compatible_aval((0,) * num_dimensions)
        names = list(self._sizes)
        by_dim = [_axes(entry) for entry in self.spec]
        by_dim += [()] * (num_dimensions - len(by_dim))
        tiles = [prod(self._sizes[a] for a in axes) for axes in by_dim]
        order = [a for axes in by_dim for a in axes]
        subgroups = []
        unreduced = [a for a in names if a in self.spec.unreduced]
        rest = [a for a in names if a not in order and a not in unreduced]
        for axes, kind in (
            (unreduced, OpShardingType.UNREDUCED),
            (rest, OpShardingType.REPLICATED),
        ):
            size = prod(self._sizes[a] for a in axes)
            order += axes
            if size > 1:
                tiles.append(size)
                subgroups.append(kind)
        if self.is_fully_replicated:
            return XlaHloSharding.replicate()
        turned = [names.index(a) for a in order]
        sizes = list(self._sizes.values())
        return XlaHloSharding.iota_tile(tiles, sizes, turned, subgroups)

    def _key(self) -> tuple[Any, ...]:
        return (self.mesh, self.spec, self._memory_kind)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, NamedSharding) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}, memory_kind={self._memory_kind})"
        )


def _axes(entry: Any) -> tuple[Any, ...]:
    """The mesh axes of one entry of a spec."""
    if entry is None or entry is PartitionSpec.UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def _checked(spec: Any, mesh: Any) -> PartitionSpec:
    if not isinstance(spec, PartitionSpec):
        spec = _own_spec(spec)
    used = [a for entry in spec for a in _axes(entry)]
    for axis in [*used, *sorted(spec.unreduced | spec.reduced)]:
        if axis not in mesh.axis_names:
            raise ValueError(
                f"Resource axis: {axis} of {spec} is not found in mesh: {tuple(mesh.axis_names)}."
            )
        if used.count(axis) > 1:
            raise DuplicateSpecError(
                "A single NamedSharding spec specification can map every mesh axis to at most one "
                f"positional dimension, but {spec} has duplicate entries for `{axis}`"
            )
    return spec


def _own_spec(spec: Any) -> PartitionSpec:
    """The spec of another library, which is known by its UNCONSTRAINED."""
    unconstrained = getattr(spec, "UNCONSTRAINED", None)
    if unconstrained is None:
        raise TypeError(f"NamedSharding: spec is a {type(spec).__name__}, not a PartitionSpec")
    entries = (PartitionSpec.UNCONSTRAINED if e is unconstrained else e for e in spec)
    sums = {name: getattr(spec, name, ()) for name in ("unreduced", "reduced")}
    return PartitionSpec(*entries, **sums)
