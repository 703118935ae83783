"""Result sizes of StableHLO ops from their operands' sizes, for ops whose own are dynamic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from haloc.formats.stablehlo.mlir import DenseElements, MlirOp, RankedTensor

Dims: TypeAlias = tuple[int, ...]
Rule: TypeAlias = Callable[[MlirOp, Sequence[Dims]], Sequence[Dims]]


def _ints(op: MlirOp, name: str, default: int, rank: int) -> list[int]:
    """A list attribute, or `default` in every place."""
    value = op.attributes.get(name)
    if not isinstance(value, DenseElements):
        return [default] * rank
    return value.array.ravel().tolist()


def _integer(op: MlirOp, name: str, default: int = 0) -> int:
    value: Any = op.attributes.get(name)
    return default if value is None else value.value


def _field(op: MlirOp, attribute: str, name: str, default: Any = ()) -> Any:
    return op.attributes[attribute].fields.get(name, default)  # type: ignore[union-attr]


def _like_first(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    return [dims[0]] * len(op.results)


def _like_each(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    return dims[: len(op.results)]


def _transpose(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    return [tuple([dims[0][p] for p in _ints(op, "permutation", 0, len(dims[0]))])]


def _concatenate(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    axis = _integer(op, "dimension")
    total = sum(d[axis] for d in dims)
    return [(*dims[0][:axis], total, *dims[0][axis + 1 :])]


def _slice(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    rank = len(dims[0])
    start, limit = _ints(op, "start_indices", 0, rank), _ints(op, "limit_indices", 0, rank)
    strides = _ints(op, "strides", 1, rank)
    return [tuple([-(-(b - a) // s) for a, b, s in zip(start, limit, strides, strict=True)])]


def _pad(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    rank = len(dims[0])
    low, high, interior = (
        _ints(op, n, 0, rank) for n in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    sizes = zip(dims[0], low, high, interior, strict=True)
    return [tuple([d + a + b + i * max(d - 1, 0) for d, a, b, i in sizes])]


def _dynamic_slice(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    return [tuple(_ints(op, "slice_sizes", 0, 0))]


def _dot_general(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    lhs, rhs = dims
    key = "dot_dimension_numbers"
    batch = _field(op, key, "lhs_batching_dimensions")
    left = {*batch, *_field(op, key, "lhs_contracting_dimensions")}
    right = {
        *_field(op, key, "rhs_batching_dimensions"),
        *_field(op, key, "rhs_contracting_dimensions"),
    }
    rest = [d for i, d in enumerate(lhs) if i not in left]
    rest += [d for i, d in enumerate(rhs) if i not in right]
    return [(*[lhs[b] for b in batch], *rest)]


def _dot(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    return [(*dims[0][:-1], *dims[1][1:])]


def _windowed(size: int, window: int, stride: int, low: int, high: int, base: int, dil: int) -> int:
    """How many places a window has along one dimension."""
    padded = (max(size - 1, 0) * base + 1 if size else 0) + low + high
    span = (window - 1) * dil + 1
    return 0 if padded < span or not size + low + high else (padded - span) // stride + 1


def _convolution(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    key = "dimension_numbers"
    lhs, rhs = dims[:2]
    spatial_in = _field(op, key, "input_spatial_dimensions")
    spatial_kernel = _field(op, key, "kernel_spatial_dimensions")
    spatial_out = _field(op, key, "output_spatial_dimensions")
    rank = len(spatial_in)
    strides, base = _ints(op, "window_strides", 1, rank), _ints(op, "lhs_dilation", 1, rank)
    dilation, pads = _ints(op, "rhs_dilation", 1, rank), _ints(op, "padding", 0, 2 * rank)
    out = [0] * len(lhs)
    batch = lhs[_field(op, key, "input_batch_dimension", 0)]
    out[_field(op, key, "output_batch_dimension", 0)] = batch // _integer(
        op, "batch_group_count", 1
    )
    out[_field(op, key, "output_feature_dimension", 0)] = rhs[
        _field(op, key, "kernel_output_feature_dimension", 0)
    ]
    for i in range(rank):
        out[spatial_out[i]] = _windowed(
            lhs[spatial_in[i]],
            rhs[spatial_kernel[i]],
            strides[i],
            pads[2 * i],
            pads[2 * i + 1],
            base[i],
            dilation[i],
        )
    return [tuple(out)]


def _reduce(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    gone = set(_ints(op, "dimensions", 0, 0))
    kept = tuple([d for i, d in enumerate(dims[0]) if i not in gone])
    return [kept] * len(op.results)


def _reduce_window(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    rank = len(dims[0])
    pads = _ints(op, "padding", 0, 2 * rank)
    lists = [
        _ints(op, "window_dimensions", 1, rank),
        _ints(op, "window_strides", 1, rank),
        pads[0::2],
        pads[1::2],
        _ints(op, "base_dilations", 1, rank),
        _ints(op, "window_dilations", 1, rank),
    ]
    sizes = tuple([_windowed(*each) for each in zip(dims[0], *lists, strict=True)])
    return [sizes] * len(op.results)


def _gather(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    key = "dimension_numbers"
    sizes = _ints(op, "slice_sizes", 0, 0)
    gone = {*_field(op, key, "collapsed_slice_dims"), *_field(op, key, "operand_batching_dims")}
    window = iter([s for i, s in enumerate(sizes) if i not in gone])
    vector = _field(op, key, "index_vector_dim", 0)
    batch = iter([d for i, d in enumerate(dims[1]) if i != vector])
    offsets = set(_field(op, key, "offset_dims"))
    rank = len(sizes) - len(gone) + len(dims[1]) - (vector < len(dims[1]))
    return [tuple([next(window) if i in offsets else next(batch) for i in range(rank)])]


def _fft(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    lengths = _ints(op, "fft_length", 0, 0)
    kind = op.attributes["fft_type"].value  # type: ignore[union-attr]
    last = lengths[-1] // 2 + 1 if kind == "RFFT" else lengths[-1]
    return [(*dims[0][:-1], last)]


def _batch_norm(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    feature = (dims[0][_integer(op, "feature_index")],)
    return [dims[0], feature, feature][: len(op.results)]


def _all_gather(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    axis, size = _integer(op, "all_gather_dim"), _group_size(op)
    return [(*d[:axis], d[axis] * size, *d[axis + 1 :]) for d in dims]


def _reduce_scatter(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    axis, size = _integer(op, "scatter_dimension"), _group_size(op)
    return [(*d[:axis], d[axis] // size, *d[axis + 1 :]) for d in dims]


def _group_size(op: MlirOp) -> int:
    groups = op.attributes["replica_groups"]
    return groups.array.shape[-1]  # type: ignore[union-attr]


def _bitcast_convert(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    """The last dimension holds the parts of wider elements."""
    source, result = op.operands[0].type, op.results[0].type
    assert isinstance(source, RankedTensor) and isinstance(result, RankedTensor)
    extra = len(result.dims) - len(source.dims)
    if extra <= 0:
        return [dims[0][: len(result.dims)]]
    return [(*dims[0], *[-1 if d is None else d for d in result.dims[-extra:]])]


def _top_k(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims]:
    return [(*dims[0][:-1], _integer(op, "k"))] * 2


_RULES: dict[str, Rule] = {
    "chlo.top_k": _top_k,
    "sdy.sharding_constraint": _like_first,
    "stablehlo.all_gather": _all_gather,
    "stablehlo.all_reduce": _like_each,
    "stablehlo.batch_norm_grad": _batch_norm,
    "stablehlo.batch_norm_inference": _batch_norm,
    "stablehlo.batch_norm_training": _batch_norm,
    "stablehlo.bitcast_convert": _bitcast_convert,
    "stablehlo.cholesky": _like_first,
    "stablehlo.collective_broadcast": _like_first,
    "stablehlo.collective_permute": _like_first,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.convolution": _convolution,
    "stablehlo.dot": _dot,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _like_first,
    "stablehlo.fft": _fft,
    "stablehlo.gather": _gather,
    "stablehlo.optimization_barrier": _like_each,
    "stablehlo.pad": _pad,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_precision": _like_first,
    "stablehlo.reduce_scatter": _reduce_scatter,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.reverse": _like_first,
    "stablehlo.scatter": _like_each,
    "stablehlo.select_and_scatter": _like_first,
    "stablehlo.slice": _slice,
    "stablehlo.sort": _like_each,
    "stablehlo.transpose": _transpose,
    "stablehlo.triangular_solve": lambda op, dims: [dims[1]],
    "stablehlo.while": _like_each,
}

_ELEMENTWISE = (
    "abs add and atan2 cbrt ceil clamp compare complex convert cosine count_leading_zeros"
    " divide exponential exponential_minus_one floor imag is_finite log log_plus_one logistic"
    " map maximum minimum multiply negate not or popcnt power real remainder"
    " round_nearest_afz round_nearest_even rsqrt select shift_left shift_right_arithmetic"
    " shift_right_logical sign sine sqrt subtract tan tanh uniform_dequantize uniform_quantize"
    " xor"
)
_CHLO_OTHER = frozenset(("chlo.dynamic_reshape", "chlo.constant", "chlo.ragged_dot", "chlo.scan"))


def result_dims(op: MlirOp, dims: Sequence[Dims]) -> Sequence[Dims] | None:
    """The sizes of each result from those of each operand; None for an op without a rule."""
    rule = _RULES.get(op.name)
    if rule is not None:
        return rule(op, dims)
    dialect, _, name = op.name.partition(".")
    is_elementwise = name in _ELEMENTWISE.split() if dialect == "stablehlo" else dialect == "chlo"
    if not is_elementwise or op.name in _CHLO_OTHER or not dims:
        return None
    if name.startswith("broadcast_"):
        return [np.broadcast_shapes(*dims)] * len(op.results)
    # Scalars may stand among arrays: clamp's bounds, select's condition.
    return [max(dims, key=len)] * len(op.results)
