"""`PartitionSpec`: for each dimension of an array, the mesh axes that split it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


class _Unconstrained:
    """The entry of a dimension that may be split in any way."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "_UNCONSTRAINED"  # the one object, by name


_UNCONSTRAINED = _Unconstrained()


class PartitionSpec:
    """`PartitionSpec('x', None, ('y', 'z'))`: dimension 0 is split over mesh axis x, dimension 1 is
    not, dimension 2 is split over y and z, y the major one. Dimensions beyond the last entry are
    not split.

    unreduced, reduced: mesh axes over which the value is (was) a sum yet to be taken. Immutable,
    hashable, and a sequence of its entries.
    """

    UNCONSTRAINED = _UNCONSTRAINED

    __slots__ = ("_partitions", "reduced", "unreduced")

    def __init__(
        self, *partitions: Any, unreduced: Iterable[str] = (), reduced: Iterable[str] = ()
    ):
        self._partitions = tuple(map(canonicalize_partition, partitions))
        self.unreduced = frozenset(unreduced)
        self.reduced = frozenset(reduced)

    def __len__(self) -> int:
        return len(self._partitions)

    def __getitem__(self, index: Any) -> Any:
        return self._partitions[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._partitions)

    def index(self, entry: Any) -> int:
        """ValueError where no dimension has this entry."""
        return self._partitions.index(canonicalize_partition(entry))

    def count(self, entry: Any) -> int:
        return self._partitions.count(canonicalize_partition(entry))

    def update(self, **changes: Any) -> PartitionSpec:
        """The same with `partitions=`, `unreduced=` or `reduced=` replaced."""
        partitions = changes.pop("partitions", self._partitions)
        kept = {"unreduced": self.unreduced, "reduced": self.reduced}
        return PartitionSpec(*partitions, **(kept | changes))

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            return PartitionSpec(
                *self,
                *other,
                unreduced=self.unreduced | other.unreduced,
                reduced=self.reduced | other.reduced,
            )
        if isinstance(other, tuple):
            return self.update(partitions=(*self, *other))
        return NotImplemented

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartitionSpec):
            return self._key() == other._key()
        if isinstance(other, tuple):
            return self._key() == PartitionSpec(*other)._key()
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return (self._partitions, self.unreduced, self.reduced)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_remade, self._key())

    def __repr__(self) -> str:
        words = [repr(p) for p in self._partitions]
        for name in ("unreduced", "reduced"):
            axes = sorted(getattr(self, name))
            if axes:
                words.append(f"{name}={{{', '.join(map(repr, axes))}}}")
        return f"PartitionSpec({words[0]},)" if len(words) == 1 else _joined(words)


def _joined(words: list[str]) -> str:
    return f"PartitionSpec({', '.join(words)})"


def canonicalize_partition(entry: Any) -> Any:
    """An entry as specs hold it: None for no axes, one axis itself, several as a tuple."""
    if isinstance(entry, list | tuple):
        if len(entry) <= 1:
            return entry[0] if entry else None
        return tuple(entry)
    return entry


def _remade(partitions: tuple[Any, ...], unreduced: Any, reduced: Any) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)
