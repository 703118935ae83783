"""What builder ops take beside arrays: dimension numbers, padding, precision, replica groups.

Plain mutable objects with the fields of XLA's messages of the same names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any


@dataclass
class PaddingConfigDimension:
    edge_padding_low: int = 0
    edge_padding_high: int = 0
    interior_padding: int = 0


@dataclass
class PaddingConfig:
    dimensions: list[PaddingConfigDimension] = field(default_factory=list)


def make_padding_config(
    padding_config: PaddingConfig | Iterable[tuple[int, int, int]],
) -> PaddingConfig:
    """From (low, high, interior) a dimension; a PaddingConfig is returned as it is."""
    if isinstance(padding_config, PaddingConfig):
        return padding_config
    return PaddingConfig([PaddingConfigDimension(*triple) for triple in padding_config])


@dataclass
class DotDimensionNumbers:
    lhs_contracting_dimensions: list[int] = field(default_factory=list)
    rhs_contracting_dimensions: list[int] = field(default_factory=list)
    lhs_batch_dimensions: list[int] = field(default_factory=list)
    rhs_batch_dimensions: list[int] = field(default_factory=list)


def make_dot_dimension_numbers(dimension_numbers: Any) -> DotDimensionNumbers:
    """From ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))."""
    if isinstance(dimension_numbers, DotDimensionNumbers):
        return dimension_numbers
    (lhs, rhs), (lhs_batch, rhs_batch) = dimension_numbers
    return DotDimensionNumbers(list(lhs), list(rhs), list(lhs_batch), list(rhs_batch))


@dataclass
class ConvolutionDimensionNumbers:
    input_batch_dimension: int = 0
    input_feature_dimension: int = 0
    input_spatial_dimensions: list[int] = field(default_factory=list)
    kernel_input_feature_dimension: int = 0
    kernel_output_feature_dimension: int = 0
    kernel_spatial_dimensions: list[int] = field(default_factory=list)
    output_batch_dimension: int = 0
    output_feature_dimension: int = 0
    output_spatial_dimensions: list[int] = field(default_factory=list)


def make_convolution_dimension_numbers(
    dimension_numbers: ConvolutionDimensionNumbers | Sequence[str] | None,
    num_spatial_dimensions: int,
) -> ConvolutionDimensionNumbers:
    """From three words such as ("NHWC", "HWIO", "NHWC"): batch N, features C, kernel's I and O.

    All other letters are spatial dimensions; their order in the second word is the order of window
    strides. None is ("NC..", "OI..", "NC.."). ValueError for words that do not fit each other.
    """
    if isinstance(dimension_numbers, ConvolutionDimensionNumbers):
        return dimension_numbers
    if dimension_numbers is None:
        letters = "".join(chr(ord("a") + n) for n in range(num_spatial_dimensions))
        dimension_numbers = ("NC" + letters, "OI" + letters, "NC" + letters)
    lhs, rhs, out = dimension_numbers
    for word, wanted in ((lhs, "NC"), (rhs, "IO"), (out, "NC")):
        missing = set(wanted) - set(word)
        if missing or len(word) != num_spatial_dimensions + 2 or len(set(word)) != len(word):
            raise ValueError(
                f"dimension numbers {word!r}: wanted {' and '.join(wanted)} once each and "
                f"{num_spatial_dimensions} letters for spatial dimensions"
            )
    spatial = [letter for letter in rhs if letter not in "IO"]
    for word in (lhs, out):
        if set(word) - set("NC") != set(spatial):
            raise ValueError(f"spatial dimensions of {word!r} are not those of {rhs!r}")
    return ConvolutionDimensionNumbers(
        lhs.index("N"),
        lhs.index("C"),
        [lhs.index(letter) for letter in spatial],
        rhs.index("I"),
        rhs.index("O"),
        [rhs.index(letter) for letter in spatial],
        out.index("N"),
        out.index("C"),
        [out.index(letter) for letter in spatial],
    )


class Precision(IntEnum):
    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


@dataclass
class PrecisionConfig:
    """operand_precision: a Precision for each operand; empty for the default."""

    operand_precision: list[Precision] = field(default_factory=list)

    Precision = Precision


class ResultAccuracyMode(IntEnum):
    DEFAULT = 0
    HIGHEST = 1


@dataclass
class ResultAccuracy:
    """A mode, or tolerances where one of them is not zero."""

    mode: ResultAccuracyMode = ResultAccuracyMode.DEFAULT
    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0


@dataclass
class GatherDimensionNumbers:
    offset_dims: list[int] = field(default_factory=list)
    collapsed_slice_dims: list[int] = field(default_factory=list)
    start_index_map: list[int] = field(default_factory=list)
    index_vector_dim: int = 0
    operand_batching_dims: list[int] = field(default_factory=list)
    start_indices_batching_dims: list[int] = field(default_factory=list)


@dataclass
class ScatterDimensionNumbers:
    update_window_dims: list[int] = field(default_factory=list)
    inserted_window_dims: list[int] = field(default_factory=list)
    scatter_dims_to_operand_dims: list[int] = field(default_factory=list)
    index_vector_dim: int = 0
    input_batching_dims: list[int] = field(default_factory=list)
    scatter_indices_batching_dims: list[int] = field(default_factory=list)


@dataclass
class ReplicaGroup:
    replica_ids: list[int] = field(default_factory=list)


def make_replica_groups(replica_groups: Iterable[Iterable[int]] | None) -> list[ReplicaGroup]:
    """None is one group of all replicas."""
    return [ReplicaGroup(list(group)) for group in replica_groups or ()]


@dataclass
class ChannelHandle:
    """handle: the channel's number."""

    handle: int = 0
    type: int = 0


@dataclass
class OpMetadata:
    op_type: str = ""
    op_name: str = ""
    source_file: str = ""
    source_line: int = 0


class FrontendAttributes:
    """Words carried with instructions: `attributes["key"] = "value"`."""

    def __init__(self) -> None:
        self.map: dict[str, str] = {}

    def __setitem__(self, key: str, value: str) -> None:
        self.map[key] = value


class FftType(Enum):
    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


class PaddingType(Enum):
    VALID = 1
    SAME = 2


def window_padding_type_to_pad_values(
    padding_type: str | PaddingType,
    lhs_dims: Sequence[int],
    rhs_dims: Sequence[int],
    window_strides: Sequence[int],
) -> list[tuple[int, int]]:
    """(low, high) padding a dimension. SAME: results are as many as strides fit in lhs_dims."""
    if isinstance(padding_type, str):
        known = PaddingType.__members__.get(padding_type.upper())
        if known is None:
            raise ValueError(
                f'Unknown padding type string: expected "VALID" or "SAME", got {padding_type}.'
            )
        padding_type = known
    if not isinstance(padding_type, PaddingType):
        raise TypeError(f"padding_type must be str or PaddingType, got {type(padding_type)}.")
    if padding_type is PaddingType.VALID:
        return [(0, 0)] * len(window_strides)
    pads = []
    for size, window, stride in zip(lhs_dims, rhs_dims, window_strides):
        total = max((-(-size // stride) - 1) * stride + window - size, 0)
        pads.append((total // 2, total - total // 2))
    return pads


class ShapeIndex(tuple[int, ...]):
    """The path to a part of a tuple: one index a level."""
