"""VHLO's ops: which properties each has, and how they are named and grouped in StableHLO.

VHLO writes every property of an op, in alphabetical order and without names, and flattens
StableHLO's structured attributes ("dot_dimension_numbers") into one property per field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from haloc.formats.stablehlo.mlir import (
    UNIT,
    DenseElements,
    Enum,
    Float,
    Function,
    Integer,
    RankedTensor,
    Scalar,
    Struct,
    SymbolRef,
)

# --- Properties -----------------------------------------------------------------------------------

_GATHER_1 = "collapsed_slice_dims index_vector_dim offset_dims start_index_map"
_GATHER_2 = f"{_GATHER_1} operand_batching_dims start_indices_batching_dims"
_SCATTER_1 = "index_vector_dim inserted_window_dims scatter_dims_to_operand_dims update_window_dims"
_SCATTER_2 = f"{_SCATTER_1} input_batching_dims scatter_indices_batching_dims"
_DOT = (
    "lhs_batching_dimensions lhs_contracting_dimensions rhs_batching_dimensions"
    " rhs_contracting_dimensions"
)
_DOT_ALGORITHM = (
    "accumulation_type allow_imprecise_accumulation lhs_component_count lhs_precision_type"
    " num_primitive_operations rhs_component_count rhs_precision_type"
)
_CONV_NUMBERS = (
    "input_batch_dimension input_feature_dimension input_spatial_dimensions"
    " kernel_input_feature_dimension kernel_output_feature_dimension kernel_spatial_dimensions"
    " output_batch_dimension output_feature_dimension output_spatial_dimensions"
)
_DYNAMIC_CONV = (
    f"{_CONV_NUMBERS} batch_group_count feature_group_count lhs_dilation precision_config"
    " rhs_dilation window_reversal window_strides"
)
_CHANNEL = "channel_id channel_type is_host_transfer"

_PROPERTIES = {
    "all_gather": "all_gather_dim channel_id replica_groups use_global_device_ids",
    "all_reduce": "channel_id replica_groups use_global_device_ids",
    "all_to_all": "channel_id concat_dimension replica_groups split_count split_dimension",
    "batch_norm_grad": "epsilon feature_index",
    "batch_norm_inference": "epsilon feature_index",
    "batch_norm_training": "epsilon feature_index",
    "broadcast": "broadcast_sizes",
    "broadcast_in_dim": "broadcast_dimensions",
    "call": "callee",
    "cholesky": "lower",
    "collective_broadcast": "channel_id replica_groups",
    "collective_permute": "channel_id source_target_pairs",
    "compare": "compare_type comparison_direction",
    "composite": "composite_attributes decomposition name version",
    "concatenate": "dimension",
    "constant": "value",
    "convolution": f"{_DYNAMIC_CONV} padding",
    "cross-replica-sum": "replica_groups",
    "custom_call": "api_version backend_config call_target_name called_computations"
    " has_side_effect operand_layouts output_operand_aliases result_layouts",
    "dot": "precision_config",
    "dot_general_v1": f"{_DOT} precision_config",
    "dot_general": f"{_DOT} {_DOT_ALGORITHM} precision_config",
    "dynamic_broadcast_in_dim": "broadcast_dimensions known_expanding_dimensions"
    " known_nonexpanding_dimensions",
    "dynamic_conv_v1": f"{_DYNAMIC_CONV} padding",
    "dynamic_conv": _DYNAMIC_CONV,
    "dynamic_gather_v1": f"{_GATHER_1} indices_are_sorted",
    "dynamic_gather": f"{_GATHER_2} indices_are_sorted",
    "dynamic_iota": "iota_dimension",
    "dynamic_slice": "slice_sizes",
    "einsum": "einsum_config",
    "fft": "fft_length fft_type",
    "func": "arg_attrs function_type res_attrs sym_name sym_visibility",
    "gather_v1": f"{_GATHER_1} indices_are_sorted slice_sizes",
    "gather": f"{_GATHER_2} indices_are_sorted slice_sizes",
    "get_dimension_size": "dimension",
    "get_tuple_element": "index",
    "infeed": "infeed_config layout",
    "iota": "iota_dimension",
    "map": "dimensions",
    "outfeed": "outfeed_config",
    "pad": "edge_padding_high edge_padding_low interior_padding",
    "recv_v1": _CHANNEL,
    "recv": f"{_CHANNEL} source_target_pairs",
    "reduce": "dimensions",
    "reduce_precision": "exponent_bits mantissa_bits",
    "reduce_scatter": "channel_id replica_groups scatter_dimension use_global_device_ids",
    "reduce_window": "base_dilations padding window_dilations window_dimensions window_strides",
    "reverse": "dimensions",
    "rng": "rng_distribution",
    "rng_bit_generator": "rng_algorithm",
    "scatter_v1": f"{_SCATTER_1} indices_are_sorted unique_indices",
    "scatter": f"{_SCATTER_2} indices_are_sorted unique_indices",
    "select_and_scatter": "padding window_dimensions window_strides",
    "send_v1": _CHANNEL,
    "send": f"{_CHANNEL} source_target_pairs",
    "set_dimension_size": "dimension",
    "slice": "limit_indices start_indices strides",
    "sort": "dimension is_stable",
    "torch_index_select": "batch_dims dim",
    "transpose": "permutation",
    "triangular_solve": "left_side lower transpose_a unit_diagonal",
    "unary_einsum": "einsum_config",
}
_WITH_ACCURACY = (
    "cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan"
    " tanh"
)
_PLAIN = (
    "abs add after_all and async_done async_start atan2 bitcast_convert case ceil clamp complex"
    " convert count_leading_zeros create_token divide dynamic_pad dynamic_reshape"
    " dynamic_update_slice floor if imag is_finite maximum minimum multiply negate not"
    " optimization_barrier or partition_id popcnt power real real_dynamic_slice remainder"
    " replica_id reshape return round_nearest_afz round_nearest_even select shift_left"
    " shift_right_arithmetic shift_right_logical sign subtract tuple uniform_dequantize"
    " uniform_quantize while xor"
)
_NEWER = "all_gather all_reduce all_to_all composite"
"""Ops whose second version has the properties of the first."""

PROPERTIES: dict[str, tuple[str, ...]] = {}
"""The properties of each op, "vhlo.add_v1", in the order they are written."""


def _fill_properties() -> None:
    for name in _PLAIN.split():
        PROPERTIES[f"vhlo.{name}_v1"] = ()
    for name in _WITH_ACCURACY.split():
        PROPERTIES[f"vhlo.{name}_v1"] = ()
        PROPERTIES[f"vhlo.{name}_v2"] = ("result_accuracy",)
    for name, listed in _PROPERTIES.items():
        names = tuple(sorted(listed.split()))
        if name.endswith("_v1"):
            PROPERTIES[f"vhlo.{name}"] = names
        elif f"{name}_v1" in _PROPERTIES:
            PROPERTIES[f"vhlo.{name}_v2"] = names
        else:
            PROPERTIES[f"vhlo.{name}_v1"] = names
            if name in _NEWER.split():
                PROPERTIES[f"vhlo.{name}_v2"] = names


_fill_properties()

_KINDS: dict[Any, str] = {
    DenseElements: "base_dilations broadcast_dimensions broadcast_sizes collapsed_slice_dims"
    " dimensions edge_padding_high edge_padding_low fft_length input_batching_dims"
    " input_spatial_dimensions inserted_window_dims interior_padding kernel_spatial_dimensions"
    " known_expanding_dimensions known_nonexpanding_dimensions lhs_batching_dimensions"
    " lhs_contracting_dimensions lhs_dilation limit_indices offset_dims operand_batching_dims"
    " output_spatial_dimensions padding permutation rhs_batching_dimensions"
    " rhs_contracting_dimensions rhs_dilation scatter_dims_to_operand_dims"
    " scatter_indices_batching_dims slice_sizes source_target_pairs start_index_map start_indices"
    " start_indices_batching_dims strides update_window_dims value window_dilations"
    " window_dimensions window_reversal window_strides",
    Integer: "all_gather_dim api_version batch_dims batch_group_count channel_id channel_type"
    " concat_dimension dim dimension exponent_bits feature_group_count feature_index index"
    " index_vector_dim input_batch_dimension input_feature_dimension iota_dimension"
    " kernel_input_feature_dimension kernel_output_feature_dimension mantissa_bits"
    " output_batch_dimension output_feature_dimension scatter_dimension split_count"
    " split_dimension version lhs_component_count num_primitive_operations rhs_component_count",
    bool: "has_side_effect indices_are_sorted is_host_transfer is_stable left_side lower"
    " unique_indices unit_diagonal use_global_device_ids allow_imprecise_accumulation",
    str: "call_target_name callee decomposition einsum_config infeed_config name outfeed_config"
    " sym_name sym_visibility",
    tuple: "arg_attrs called_computations layout operand_layouts output_operand_aliases"
    " precision_config res_attrs result_layouts",
    Enum: "compare_type comparison_direction fft_type rng_algorithm rng_distribution transpose_a",
    Float: "epsilon",
    Function: "function_type",
    Struct: "result_accuracy",
    dict: "composite_attributes",
    (DenseElements, Struct): "replica_groups",
    (str, dict): "backend_config",
    (Scalar, RankedTensor): "accumulation_type lhs_precision_type rhs_precision_type",
}
KIND_OF: dict[str, Any] = {n: kind for kind, names in _KINDS.items() for n in names.split()}
"""The Python type of each property, to refuse a file that has another."""

# --- Names and groups -----------------------------------------------------------------------------

OPTIONAL = frozenset(_DOT_ALGORITHM.split())
"""Properties that may be absent."""

Attributes: TypeAlias = dict[str, Any]


def stablehlo_name(vhlo_name: str, is_function_body: bool) -> str:
    """ "vhlo.add_v1" to "stablehlo.add"; functions, calls and their returns are of "func"."""
    name = vhlo_name.removeprefix("vhlo.").rpartition("_v")[0]
    if name in ("func", "call") or (name == "return" and is_function_body):
        return f"func.{name}"
    return f"stablehlo.{name}"


def to_stablehlo(name: str, attributes: Attributes) -> Attributes:
    """The attributes of an op as StableHLO groups them; defaults are left out as in text.

    name: "stablehlo.dot_general". Raises ValueError saying what does not fit.
    """
    regroup = _REGROUP.get(name)
    if regroup is not None:
        regroup(attributes)
    for key, value in list(attributes.items()):
        if key in _DEFAULTS and _DEFAULTS[key](value):
            del attributes[key]
    return attributes


def _ints(value: Any) -> tuple[int, ...]:
    if value.array.dtype.kind not in "iu" or value.array.ndim != 1:
        raise ValueError(f"found elements of {value.type}, expected a list of i64")
    return tuple(value.array.tolist())


def _plain(value: Any) -> Any:
    """An attribute's value as a field of a Struct."""
    if isinstance(value, DenseElements):
        return _ints(value)
    return value.value if isinstance(value, Integer) else value


def _group(attributes: Attributes, key: str, struct: str, names: Iterable[str]) -> None:
    """Move the named attributes into one Struct; empty lists are left out as in text."""
    fields = {n: _plain(attributes.pop(n)) for n in names if n in attributes}
    attributes[key] = Struct(f"stablehlo.{struct}", fields)


def _dot_general(attributes: Attributes) -> None:
    _group(attributes, "dot_dimension_numbers", "dot", _DOT.split())
    if "accumulation_type" in attributes:
        _group(attributes, "algorithm", "dot_algorithm", _DOT_ALGORITHM.split())


def _convolution(attributes: Attributes) -> None:
    _group(attributes, "dimension_numbers", "conv", _CONV_NUMBERS.split())


def _gather(attributes: Attributes) -> None:
    _group(attributes, "dimension_numbers", "gather", _GATHER_2.split())


def _scatter(attributes: Attributes) -> None:
    _group(attributes, "scatter_dimension_numbers", "scatter", _SCATTER_2.split())


def _collective(attributes: Attributes) -> None:
    """channel_id becomes a channel handle, of type 0 as jaxlib has it; id 0 stands for none."""
    channel = attributes.pop("channel_id", None)
    if channel is not None and channel.value:
        fields = {"handle": channel.value, "type": 0}
        attributes["channel_handle"] = Struct("stablehlo.channel_handle", fields)
    if attributes.pop("use_global_device_ids", False):
        attributes["use_global_device_ids"] = UNIT


def _point_to_point(attributes: Attributes) -> None:
    fields = {"handle": attributes.pop("channel_id").value}
    fields["type"] = attributes.pop("channel_type").value
    attributes["channel_handle"] = Struct("stablehlo.channel_handle", fields)
    pairs = attributes.get("source_target_pairs")
    if pairs is not None and not pairs.array.size:
        del attributes["source_target_pairs"]


def _cholesky(attributes: Attributes) -> None:
    if not attributes["lower"]:  # the default here; triangular_solve has none
        del attributes["lower"]


def _symbol(key: str) -> Callable[[Attributes], None]:
    def regroup(attributes: Attributes) -> None:
        attributes[key] = SymbolRef(attributes[key])

    return regroup


def _custom_call(attributes: Attributes) -> None:
    called = attributes.get("called_computations", ())
    if not all(isinstance(name, str) for name in called):
        raise ValueError("called_computations holds something other than names")
    attributes["called_computations"] = tuple([SymbolRef(name) for name in called])
    if not attributes.get("operand_layouts") and not attributes.get("result_layouts"):
        attributes.pop("operand_layouts", None)
        attributes.pop("result_layouts", None)


def _function(attributes: Attributes) -> None:
    for key in ("arg_attrs", "res_attrs"):
        listed = attributes.get(key, ())
        if not all(isinstance(each, dict) for each in listed):
            raise ValueError(f"{key} holds something other than dictionaries")
        if not any(listed):
            attributes.pop(key, None)


_REGROUP: dict[str, Callable[[Attributes], None]] = {
    "func.func": _function,
    "func.call": _symbol("callee"),
    "stablehlo.all_gather": _collective,
    "stablehlo.all_reduce": _collective,
    "stablehlo.all_to_all": _collective,
    "stablehlo.cholesky": _cholesky,
    "stablehlo.collective_broadcast": _collective,
    "stablehlo.collective_permute": _collective,
    "stablehlo.composite": _symbol("decomposition"),
    "stablehlo.convolution": _convolution,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dynamic_conv": _convolution,
    "stablehlo.dynamic_gather": _gather,
    "stablehlo.gather": _gather,
    "stablehlo.recv": _point_to_point,
    "stablehlo.reduce_scatter": _collective,
    "stablehlo.scatter": _scatter,
    "stablehlo.send": _point_to_point,
}


def _all(wanted: int) -> Callable[[Any], bool]:
    """Whether every element is `wanted`."""
    return lambda value: isinstance(value, DenseElements) and bool((value.array == wanted).all())


_DEFAULT_PRECISION = Enum("precision", "DEFAULT")

_DEFAULTS: dict[str, Callable[[Any], bool]] = {
    "api_version": lambda value: value.value == 1,
    "backend_config": lambda value: value == "",
    "base_dilations": _all(1),
    "called_computations": lambda value: not value,
    "compare_type": lambda value: value.value == "NOTYPE",
    "composite_attributes": lambda value: not value,
    "has_side_effect": lambda value: not value,
    "indices_are_sorted": lambda value: not value,
    "infeed_config": lambda value: value == "",
    "is_host_transfer": lambda value: not value,
    "is_stable": lambda value: not value,
    "known_expanding_dimensions": lambda value: not value.array.size,
    "known_nonexpanding_dimensions": lambda value: not value.array.size,
    "layout": lambda value: not value,
    "lhs_dilation": _all(1),
    "outfeed_config": lambda value: value == "",
    "output_operand_aliases": lambda value: not value,
    "padding": _all(0),
    "precision_config": lambda value: all(v == _DEFAULT_PRECISION for v in value),
    "result_accuracy": lambda value: value.fields["mode"].value == "DEFAULT",
    "rhs_dilation": _all(1),
    "sym_visibility": lambda value: value == "",
    "unique_indices": lambda value: not value,
    "window_dilations": _all(1),
    "window_reversal": _all(0),
    "window_strides": _all(1),
}
"""When an attribute that VHLO spells out says nothing."""
