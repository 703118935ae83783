"""`Mesh`: devices in a grid whose axes have names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from enum import Enum
from typing import Any

import numpy as np


class AxisType(Enum):
    """Who splits arrays over a mesh axis: the compiler, the types, or the program itself."""

    Auto = "auto"
    Explicit = "explicit"
    Manual = "manual"

    def __repr__(self) -> str:
        return self.name


class Mesh:
    """`Mesh(np.array(devices).reshape(2, 2), ('x', 'y'))`. Immutable and hashable.

    devices: an array of devices, or a sequence of them for one axis. axis_names: one name a
    dimension. ValueError where they do not fit or a name or device comes twice.
    """

    def __init__(
        self,
        devices: np.ndarray | Sequence[Any],
        axis_names: str | Sequence[Hashable],
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ):
        grid = np.array(devices, object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if axis_types is None or isinstance(axis_types, AxisType):
            axis_types = (axis_types or AxisType.Auto,) * len(names)
        if grid.ndim != len(names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of "
                f"its second argument (`axis_names`), but got devices.ndim == {grid.ndim} and "
                f"len(axis_names) == {len(names)}."
            )
        if len(set(names)) != len(names):
            raise ValueError(f"Mesh axis names must be different, but got {names}")
        if len(axis_types) != len(names):
            raise ValueError(f"Mesh has {len(names)} axes, but got {len(axis_types)} axis types")
        if len(set(grid.flat)) != grid.size:
            raise ValueError(f"Mesh devices must be different, but got {grid.tolist()}")
        grid.flags.writeable = False
        self.devices = grid
        self.axis_names = names
        self.axis_types = tuple(axis_types)

    @property
    def shape(self) -> OrderedDict[Hashable, int]:
        """{axis name: size}."""
        return OrderedDict(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return self.devices.shape

    @property
    def shape_tuple(self) -> tuple[tuple[Hashable, int], ...]:
        return tuple(self.shape.items())

    @property
    def size(self) -> int:
        """Number of devices."""
        return self.devices.size

    @property
    def empty(self) -> bool:
        return self.devices.ndim == 0

    @property
    def device_ids(self) -> np.ndarray:
        """The devices' ids, shaped as the mesh."""
        ids = [d.id for d in self.devices.flat]
        return np.array(ids, np.int64).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list[Any]:
        return [d for d in self.devices.flat if d.process_index == d.client.process_index()]

    def _key(self) -> tuple[Any, ...]:
        return (self.axis_names, self.devices.shape, tuple(self.devices.flat), self.axis_types)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Mesh) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, "
            f"axis_types={self.axis_types})"
        )

    def __str__(self) -> str:
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)
        return f"Mesh({sizes}, axis_types={self.axis_types})"
