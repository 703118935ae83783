"""Products, convolutions and Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from haloc.errors import InvalidArgumentError
from haloc.frontend.builder import XlaOp
from haloc.frontend.messages import (
    ConvolutionDimensionNumbers,
    DotDimensionNumbers,
    FftType,
    PrecisionConfig,
)
from haloc.frontend.ops.arguments import add, element_type, ints, precision, value
from haloc.ir.dtype import DType
from haloc.ir.shape import Shape
from haloc.ops.attrs import ConvDims, WindowDim


def _result_type(lhs: XlaOp, rhs: XlaOp, preferred: int | None) -> DType:
    """preferred_element_type, else the wider type of the operands."""
    if preferred is not None:
        return element_type(preferred)
    return max((value(x).shape.dtype for x in (lhs, rhs)), key=lambda d: d.bits)


def Dot(
    lhs: XlaOp,
    rhs: XlaOp,
    precision_config: PrecisionConfig | None = None,
    preferred_element_type: int | None = None,
) -> XlaOp:
    """Vectors and matrices: the last dimension of lhs with the first of rhs."""
    numbers = DotDimensionNumbers([value(lhs).shape.rank - 1], [0])
    if not 1 <= lhs.shape.rank <= 2 or not 1 <= value(rhs).shape.rank <= 2:
        raise InvalidArgumentError(
            f"Dot: wanted vectors or matrices, given {lhs.shape.to_string(False)} and "
            f"{rhs.shape.to_string(False)}"
        )
    return DotGeneral(lhs, rhs, numbers, precision_config, preferred_element_type)


def DotGeneral(
    lhs: XlaOp,
    rhs: XlaOp,
    dimension_numbers: DotDimensionNumbers,
    precision_config: PrecisionConfig | None = None,
    preferred_element_type: int | None = None,
) -> XlaOp:
    """The result's dimensions: batch, lhs's others, rhs's others."""
    attrs: dict[str, Any] = {}
    for side in ("lhs", "rhs"):
        for kind in ("batch", "contracting"):
            dims = ints(getattr(dimension_numbers, f"{side}_{kind}_dimensions"))
            if dims:
                attrs[f"{side}_{kind}_dims"] = dims
    open_shape = Shape(_result_type(lhs, rhs, preferred_element_type))
    return add("dot", [lhs, rhs], open_shape, **attrs, **precision(precision_config))


def ConvGeneralDilated(
    lhs: XlaOp,
    rhs: XlaOp,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: ConvolutionDimensionNumbers,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision_config: PrecisionConfig | None = None,
    preferred_element_type: int | None = None,
    window_reversal: Sequence[bool] | None = None,
) -> XlaOp:
    """Strides, padding and dilations have an entry for each spatial dimension."""
    n, rank = dimension_numbers, len(dimension_numbers.kernel_spatial_dimensions)
    fields = zip(
        (value(rhs).shape.dims[d] for d in n.kernel_spatial_dimensions),
        window_strides or [1] * rank,
        padding or [(0, 0)] * rank,
        lhs_dilation or [1] * rank,
        rhs_dilation or [1] * rank,
        window_reversal or [False] * rank,
        strict=True,
    )
    window = tuple(
        WindowDim(size, int(stride), int(low), int(high), int(base), int(dilation), bool(reverse))
        for size, stride, (low, high), base, dilation, reverse in fields
    )
    labels = ConvDims(
        n.input_batch_dimension,
        n.input_feature_dimension,
        ints(n.input_spatial_dimensions),
        n.kernel_input_feature_dimension,
        n.kernel_output_feature_dimension,
        ints(n.kernel_spatial_dimensions),
        n.output_batch_dimension,
        n.output_feature_dimension,
        ints(n.output_spatial_dimensions),
    )
    attrs: dict[str, Any] = {"window": window} if window else {}
    attrs["dim_labels"] = labels
    for name, count in (("feature", feature_group_count), ("batch", batch_group_count)):
        attrs |= {f"{name}_group_count": int(count)} if count != 1 else {}
    open_shape = Shape(_result_type(lhs, rhs, preferred_element_type))
    return add("convolution", [lhs, rhs], open_shape, **attrs, **precision(precision_config))


def Fft(operand: XlaOp, fft_type: FftType, fft_length: Sequence[int]) -> XlaOp:
    """Over the last dimensions, as many as fft_length has."""
    return add("fft", [operand], fft_type=fft_type.name, fft_length=ints(fft_length))
