"""convolution: grouped, dilated, batch-grouped, reversed, with any dimension labels."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from haloc.ir.dtype import C64, F32, F64, S32
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import ConvDims, DimLabels, Int, WindowAttr, WindowDim
from haloc.ops.contraction import (
    PRECISION,
    check_contraction_types,
    matmul,
    narrow,
    wide_operands,
)
from haloc.ops.example import ExampleGraph
from haloc.ops.regions import text
from haloc.ops.rules import dynamic_flags
from haloc.ops.table import Attr, Cost, Evaluator, OpDef, Structure, attr, invalid, register
from haloc.ops.window import (
    check_window,
    random_window,
    taps,
    window_offsets,
    window_output_size,
    window_taps,
)


def _check_labels(instruction: HloInstruction, labels: ConvDims, rank: int) -> None:
    """The three label lists must each be a permutation of the dimensions."""
    for name, dims, number in (
        ("lhs", (labels.input_batch, labels.input_feature, *labels.input_spatial), 13),
        (
            "rhs",
            (labels.kernel_input_feature, labels.kernel_output_feature, *labels.kernel_spatial),
            18,
        ),
        ("output", (labels.output_batch, labels.output_feature, *labels.output_spatial), 20),
    ):
        if sorted(dims) != list(range(rank)):
            invalid(
                instruction,
                f"dim_labels of the {name} do not name each of its {rank} dimensions once",
                f"convolution_c{number}",
            )


def _check_groups(instruction: HloInstruction, lhs: Shape, rhs: Shape, labels: ConvDims) -> None:
    features, batches = (
        attr(instruction, "feature_group_count"),
        attr(instruction, "batch_group_count"),
    )
    batch, channels = lhs.dims[labels.input_batch], lhs.dims[labels.input_feature]
    inputs, outputs = (
        rhs.dims[labels.kernel_input_feature],
        rhs.dims[labels.kernel_output_feature],
    )
    if features < 1:
        invalid(
            instruction, f"feature_group_count={features}, wanted at least 1", "convolution_c21"
        )
    if batches < 1:
        invalid(instruction, f"batch_group_count={batches}, wanted at least 1", "convolution_c22")
    if features > 1 and batches > 1:
        invalid(
            instruction,
            f"feature_group_count={features} and batch_group_count={batches} "
            "must not both be more than 1",
            "convolution_c23",
        )
    for name, size, count_name, count, label in (
        ("the lhs batch", batch, "batch_group_count", batches, "c10"),
        ("the lhs feature", channels, "feature_group_count", features, "c11"),
        ("the rhs output feature", outputs, "batch_group_count", batches, "c15"),
        ("the rhs output feature", outputs, "feature_group_count", features, "c16"),
    ):
        if size % count:
            invalid(
                instruction,
                f"{name} dimension, {size}, is not a multiple of {count_name}={count}",
                f"convolution_{label}",
            )
    if inputs != channels // features:
        invalid(
            instruction,
            f"the rhs input feature dimension is {inputs}, wanted {channels // features}: "
            f"the lhs feature dimension, {channels}, over feature_group_count={features}",
            "convolution_c14",
        )


def _infer_convolution(instruction: HloInstruction) -> Shape:
    lhs, rhs = (o.shape for o in instruction.operands)
    labels: ConvDims = attr(instruction, "dim_labels")
    window = attr(instruction, "window")
    if lhs.rank != rhs.rank or lhs.rank < 2:
        invalid(
            instruction,
            f"lhs {text(lhs)} and rhs {text(rhs)} must have the same rank, at least 2",
            "convolution_c1",
        )
    check_window(instruction, window, lhs.rank - 2, "convolution")
    _check_labels(instruction, labels, lhs.rank)
    _check_groups(instruction, lhs, rhs, labels)
    for w, d in zip(window, labels.kernel_spatial):
        if w.size != rhs.dims[d]:
            invalid(
                instruction,
                f"window size {w.size} differs from dimension {d} of the rhs, {text(rhs)}",
                "convolution_c17",
            )
    dtype = check_contraction_types(instruction, lhs, rhs, "convolution_c27")
    flags, lhs_flags = [False] * lhs.rank, dynamic_flags(lhs)
    flags[labels.output_batch] = lhs_flags[labels.input_batch]
    flags[labels.output_feature] = dynamic_flags(rhs)[labels.kernel_output_feature]
    dims = [0] * lhs.rank
    dims[labels.output_batch] = lhs.dims[labels.input_batch] // attr(
        instruction, "batch_group_count"
    )
    dims[labels.output_feature] = rhs.dims[labels.kernel_output_feature]
    for out, d, w in zip(labels.output_spatial, labels.input_spatial, window):
        dims[out], flags[out] = window_output_size(lhs.dims[d], w), lhs_flags[d]
    return Shape(dtype, tuple(dims), None, tuple(flags))


def _evaluate_convolution(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    """For each offset in the window: gather a patch, multiply by that slice of the kernel, add.

    Both kinds of groups are a leading dimension g: lhs [g, n, c, spatial], rhs [g, o, c, spatial],
    output [g, n, o, spatial].
    """
    lhs, rhs = wide_operands(instruction, operands)
    wide = lhs.dtype
    labels: ConvDims = attr(instruction, "dim_labels")
    window: tuple[WindowDim, ...] = attr(instruction, "window")
    features, batches = (
        attr(instruction, "feature_group_count"),
        attr(instruction, "batch_group_count"),
    )
    groups = features * batches
    x = lhs.transpose(labels.input_batch, labels.input_feature, *labels.input_spatial)
    k = rhs.transpose(
        labels.kernel_output_feature, labels.kernel_input_feature, *labels.kernel_spatial
    )
    spatial = tuple(instruction.shape.dims[d] for d in labels.output_spatial)
    n, c, o = x.shape[0] // batches, k.shape[1], k.shape[0] // groups
    x = x.reshape(batches, n, features, c, *x.shape[2:]).swapaxes(1, 2)
    x = x.reshape(groups, n, c, *x.shape[4:])
    k = k.reshape(groups, 1, o, c, *k.shape[2:])
    total = np.zeros((groups, n, o, prod(spatial)), wide)
    for offset in window_offsets(window) if x.size and total.size else ():
        mesh, mask = window_taps(x.shape[3:], window, offset, spatial)
        # The patch reads where the window's reversal says; the kernel's own index is the offset.
        under: tuple[Any, ...] = (slice(None), slice(None), slice(None), *mesh)
        tap: tuple[Any, ...] = (..., *offset)
        patch = np.where(mask, x[under], 0).astype(wide)
        with np.errstate(all="ignore"):
            total = total + matmul(k[tap], patch.reshape(groups, n, c, prod(spatial)))
    out = total.reshape(groups, n, o, *spatial).swapaxes(0, 1).reshape(n, groups * o, *spatial)
    order = np.argsort((labels.output_batch, labels.output_feature, *labels.output_spatial))
    return narrow(out.transpose(order), instruction.shape.dtype)


def _convolution_cost(instruction: HloInstruction) -> Cost:
    """2 flops for each product that is not with padding or a dilation hole."""
    lhs, rhs = (o.shape for o in instruction.operands)
    labels: ConvDims = attr(instruction, "dim_labels")
    products = float(instruction.shape.dims[labels.output_batch])
    products *= instruction.shape.dims[labels.output_feature]
    products *= rhs.dims[labels.kernel_input_feature]
    spatial = zip(attr(instruction, "window"), labels.input_spatial, labels.output_spatial)
    for w, i, o in spatial:
        count = instruction.shape.dims[o]
        products *= sum(int(taps(lhs.dims[i], w, k, count)[1].sum()) for k in range(w.size))
    return Cost(flops=2 * products)


def _convolution_example(graph: ExampleGraph) -> HloInstruction:
    spatial = [int(s) for s in graph.rng.integers(2, 6, int(graph.rng.integers(0, 3)))]
    window = [
        replace(w, reversal=bool(graph.rng.random() < 0.3)) for w in random_window(graph, spatial)
    ]
    features, batches = graph.pick([(1, 1), (1, 1), (2, 1), (1, 2)])
    batch, c, o = (
        batches * int(graph.rng.integers(1, 3)),
        graph.pick([1, 2]),
        2 * graph.pick([1, 2]),
    )
    rank = len(spatial) + 2
    orders = [[int(d) for d in graph.rng.permutation(rank)] for _ in range(3)]
    (ib, if_, *isp), (ki, ko, *ks), (ob, of, *os) = orders
    labels = ConvDims(ib, if_, tuple(isp), ki, ko, tuple(ks), ob, of, tuple(os))
    counts = [window_output_size(s, w) for s, w in zip(spatial, window)]

    def dims(order: list[int], sizes: list[int]) -> tuple[int, ...]:
        return tuple(size for _, size in sorted(zip(order, sizes)))

    dtype = graph.pick([F32, F32, S32, F64, C64])
    return graph.add(
        "convolution",
        Shape(dtype, dims(orders[2], [batch // batches, o, *counts])),
        (
            graph.operand(dtype, dims(orders[0], [batch, c * features, *spatial])),
            graph.operand(dtype, dims(orders[1], [c, o, *(w.size for w in window)])),
        ),
        window=tuple(window),
        dim_labels=labels,
        feature_group_count=features,
        batch_group_count=batches,
    )


register(
    OpDef(
        opcode="convolution",
        operands=("lhs", "rhs"),
        attrs=(
            Attr("window", WindowAttr(), (), "window.dimensions"),
            Attr("dim_labels", DimLabels(), proto="convolution_dimension_numbers"),
            Attr("feature_group_count", Int(), 1),
            Attr("batch_group_count", Int(), 1),
            PRECISION,
        ),
        infer=_infer_convolution,
        evaluate=_evaluate_convolution,
        lower=Structure.CONTRACTION,
        cost=_convolution_cost,
        example=_convolution_example,
        spec="convolution",
    )
)
