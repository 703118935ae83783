"""Attribute values and their codecs: one codec serves every written form of an attribute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


class TextCursor(Protocol):
    """What a codec may ask of the HLO text parser. Grows with the codecs' needs."""


class Codec(Protocol):
    """Reads and writes one kind of attribute value in HLO text (and, later, protos and MLIR)."""

    def parse(self, cursor: TextCursor) -> Any: ...
    def format(self, value: Any) -> str: ...


@dataclass(frozen=True, slots=True)
class WindowDim:
    """One dimension of a window. Dilation 1 means none; padding may be negative."""

    size: int
    stride: int = 1
    padding_low: int = 0
    padding_high: int = 0
    base_dilation: int = 1  # lhs_dilate
    window_dilation: int = 1  # rhs_dilate
    reversal: bool = False


@dataclass(frozen=True, slots=True)
class ConvDims:
    """dim_labels=b01f_01io->b01f: which dimension of each array plays which part."""

    input_batch: int
    input_feature: int
    input_spatial: tuple[int, ...]
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """replica_groups in any of its four spellings; `groups()` gives the explicit lists.

    lists: {{0,1},{2,3}} (or () for {}). iota: (tile dims, reshape dims, transpose perm) of
    [2,2]<=[2,2]T(1,0). mesh: (axes ((name, size), ...), device ids or None, axis refs) of v3.
    """

    lists: tuple[tuple[int, ...], ...] = ()
    iota: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None = None
    mesh: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True)
class Int:
    """int: `index=0`."""


@dataclass(frozen=True, slots=True)
class Float:
    """float: `epsilon=0.001`."""


@dataclass(frozen=True, slots=True)
class Bool:
    """bool: `is_stable=true`."""


@dataclass(frozen=True, slots=True)
class Name:
    """str, a bare word out of `allowed` (any, when empty): `direction=LT`, `kind=kLoop`."""

    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """str, written as a quoted string: `custom_call_target="f"`."""


@dataclass(frozen=True, slots=True)
class Dims:
    """tuple of int: `dimensions={0,1}`."""


@dataclass(frozen=True, slots=True)
class OneDim:
    """int, written as a list of one: `dimensions={0}` of concatenate, sort, get-dimension-size."""


@dataclass(frozen=True, slots=True)
class WindowAttr:
    """tuple of WindowDim: `window={size=3x3 pad=1_1x1_1}`."""


@dataclass(frozen=True, slots=True)
class DimLabels:
    """ConvDims: `dim_labels=b01f_01io->b01f`."""


@dataclass(frozen=True, slots=True)
class Padding:
    """tuple of (low, high, interior) a dimension: `padding=1_1_1x-1_-1_0`."""


@dataclass(frozen=True, slots=True)
class Slices:
    """tuple of (start, limit, stride) a dimension: `slice={[0:4:2], [4:8:1]}`."""


@dataclass(frozen=True, slots=True)
class Computation:
    """HloComputation: `to_apply=add`."""


@dataclass(frozen=True, slots=True)
class Computations:
    """tuple of HloComputation: `branch_computations={b0, b1}`."""


@dataclass(frozen=True, slots=True)
class Groups:
    """ReplicaGroups: `replica_groups={{0,1}}`, `[2,2]<=[4]`, `mesh['a'=2] {'a'}`."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """tuple of (int, int): `source_target_pairs={{0,1},{1,0}}`."""


@dataclass(frozen=True, slots=True)
class Words:
    """tuple of bare words: `operand_precision={high,highest}`."""

    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shapes:
    """tuple of Shape: `operand_layout_constraints={f32[4]{0}}`."""


@dataclass(frozen=True, slots=True)
class Aliasing:
    """tuple of (output index, operand number, operand index): `{{}: (0, {})}`."""


@dataclass(frozen=True, slots=True)
class Bools:
    """tuple of bool: `parameter_replication={true,false}`."""


@dataclass(frozen=True, slots=True)
class Raw:
    """str, the text of a brace- or bracket-balanced value kept as it stands."""
