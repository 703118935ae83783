"""An operand or result of a contraction, seen as a matrix: where element (g, x, k) lies in memory.

g is the flat batch index, x the flat free index (a row of lhs, a column of rhs), k the flat
contracted index. Each is a row-major index over axes, and each dimension of the array has a
coordinate that is a linear function of axis indices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from haloc.cpu.contraction.text import I64, Code
from haloc.ir.dtype import DType


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a flat index: its size, and what one step moves each coordinate by."""

    size: int
    steps: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A dimension of the array: the element stride, and what the axes' sum is offset by.

    size: None when every index is inside the array; else indices outside [0, size) read zeros.
    dilation: the index is divided by it; what does not divide evenly reads zeros.
    """

    stride: int
    start: int = 0
    size: int | None = None
    dilation: int = 1


@dataclass(frozen=True, slots=True)
class View:
    """groups: the axes of each flat index, by its letter "g", "x", "k", major first."""

    dtype: DType
    coordinates: tuple[Coordinate, ...]
    groups: Mapping[str, tuple[Axis, ...]] = field(hash=False)

    def extent(self, group: str) -> int:
        return prod(a.size for a in self.groups[group])

    def stride(self, group: str) -> int | None:
        """Elements that one step of a flat index moves by, when that is one number throughout and
        no index leaves the array."""
        if any(c.size is not None for c in self.coordinates):
            return None
        axes = self.groups[group]
        if not axes:
            return 0
        if len(axes) > 1:
            return None
        return self._plain_stride(axes[0])

    def minor_stride(self, group: str) -> int | None:
        """Elements that one step of the minor axis moves by; None when it can leave the array
        (then see `coordinates`) or moves two coordinates."""
        axes = self.groups[group]
        return self._plain_stride(axes[-1]) if axes else 0

    def _plain_stride(self, axis: Axis) -> int | None:
        if any(self.coordinates[c].size is not None for c in axis.steps):
            return None
        return sum(self.coordinates[c].stride * step for c, step in axis.steps.items())

    def with_components(self) -> View:
        """The same complex array as an array of its components: a new minor axis of k, size 2."""
        coordinates = tuple(replace(c, stride=c.stride * 2) for c in self.coordinates)
        minor = Axis(2, {len(coordinates): 1})
        groups = {**self.groups, "k": (*self.groups["k"], minor)}
        return simplified(View(self.dtype.real, (*coordinates, Coordinate(1)), groups))

    # --- Code ---------------------------------------------------------------------------------

    def sums(self, code: Code, group: str, indices: Sequence[I64]) -> dict[int, I64]:
        """What the axes of a group, at these indices, add to each coordinate."""
        totals: dict[int, I64] = {}
        for axis, index in zip(self.groups[group], indices, strict=True):
            for coordinate, step in axis.steps.items():
                moved = code.mul(index, step)
                totals[coordinate] = code.add(totals.get(coordinate, 0), moved)
        return totals

    def flat_sums(self, code: Code, group: str, index: I64) -> dict[int, I64]:
        return self.sums(code, group, code.split(index, [a.size for a in self.groups[group]]))

    def plain_offset(self, code: Code, sums: Mapping[int, I64]) -> I64:
        """The part of the element offset that comes from coordinates without bounds."""
        offset: I64 = 0
        for number, moved in sums.items():
            coordinate = self.coordinates[number]
            if coordinate.size is None:
                offset = code.add(offset, code.mul(moved, coordinate.stride))
        return offset


def added(code: Code, *parts: Mapping[int, I64]) -> dict[int, I64]:
    """Coordinate sums added up."""
    totals: dict[int, I64] = {}
    for part in parts:
        for coordinate, moved in part.items():
            totals[coordinate] = code.add(totals.get(coordinate, 0), moved)
    return totals


def dense_view(dtype: DType, dims: Sequence[int], groups: Mapping[str, Sequence[int]]) -> View:
    """A row-major array whose dimensions belong to the groups' axes as listed, major first."""
    strides = [prod(dims[d + 1 :]) for d in range(len(dims))]
    coordinates = tuple(Coordinate(s) for s in strides)
    axes = {g: tuple(Axis(dims[d], {d: 1}) for d in listed) for g, listed in groups.items()}
    return simplified(View(dtype, coordinates, axes))


def simplified(view: View) -> View:
    """Drop axes of size 1, and join neighbouring axes that one stride describes.

    Only of axes that move nothing but coordinates without bounds; the flat indices keep their
    meaning. Such coordinates become one, of stride 1.
    """
    bounded = [n for n, c in enumerate(view.coordinates) if c.size is not None]
    renumbered = {old: new for new, old in enumerate(bounded)}
    plain = len(bounded)
    start = sum(c.start * c.stride for c in view.coordinates if c.size is None)
    coordinates = (*(view.coordinates[n] for n in bounded), Coordinate(1, start))
    groups = {}
    for group, axes in view.groups.items():
        joined: list[Axis] = []
        for axis in axes:
            if axis.size == 1:
                continue
            steps: dict[int, int] = {}
            for number, step in axis.steps.items():
                if number in renumbered:
                    steps[renumbered[number]] = step
                else:
                    moved = step * view.coordinates[number].stride
                    steps[plain] = steps.get(plain, 0) + moved
            if joined and joined[-1].steps == {n: s * axis.size for n, s in steps.items()}:
                joined[-1] = Axis(joined[-1].size * axis.size, steps)
            else:
                joined.append(Axis(axis.size, steps))
        groups[group] = tuple(joined)
    return View(view.dtype, coordinates, groups)
