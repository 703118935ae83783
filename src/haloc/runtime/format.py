"""How an array lies in memory: `Format`, and the ways to say which layout an array should get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.ir.dtype import DType
from haloc.ir.shape import Layout, default_layout
from haloc.runtime.xla_shape import PjRtLayout, XlaLayout


@dataclass(frozen=True)
class DeviceLayout:
    """A layout as JAX spells it: major_to_minor lists the dimensions, slowest-varying first."""

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] = ()
    sub_byte_element_size_in_bits: int = 0


@dataclass(frozen=True)
class Format:
    """An array's layout (None: it has been deleted) and sharding."""

    layout: DeviceLayout | None
    sharding: Any


LayoutLike: TypeAlias = "XlaLayout | PjRtLayout | DeviceLayout | Format | Sequence[int]"
"""A sequence of numbers is minor_to_major."""


def as_layout(given: LayoutLike, dtype: DType, rank: int, what: str) -> Layout:
    """The layout of an array that a caller asks for. what: names it in errors.

    InvalidArgumentError for what does not order `rank` dimensions, UnimplementedError for tiles.
    """
    if isinstance(given, Format):
        if given.layout is None:
            raise InvalidArgumentError(f"{what}={given}: the format has no layout")
        given = given.layout
    if isinstance(given, DeviceLayout):
        order = tuple(given.major_to_minor[::-1])
        bits = given.sub_byte_element_size_in_bits
        layout = Layout(order, tuple(given.tiling or ()), bits)
    elif isinstance(given, PjRtLayout):
        layout = given._layout
    else:
        layout = given.ir if isinstance(given, XlaLayout) else Layout(tuple(given))
    if sorted(layout.minor_to_major) != list(range(rank)):
        raise InvalidArgumentError(f"{what}={layout} does not order {rank} dimensions")
    return dense_layout(layout, dtype, what)


def dense_layout(layout: Layout, dtype: DType, what: str) -> Layout:
    """The order of dimensions alone, which is all that haloc's arrays have.

    UnimplementedError, naming `what`, for tiles and for element sizes other than the type's own.
    """
    if layout.tiles:
        raise UnimplementedError(f"{what}={layout}: haloc's arrays are not tiled")
    if layout.element_size_bits not in (0, dtype.bits):
        raise UnimplementedError(
            f"{what}={layout}: an element of {dtype.name} takes {dtype.bits} bits, not "
            f"{layout.element_size_bits}"
        )
    rank = len(layout.minor_to_major)
    return Layout(layout.minor_to_major) if layout != default_layout(rank) else layout
