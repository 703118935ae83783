"""StableHLO, CHLO and func as their own dialects write them: MLIR's bytecode of a module in memory.

Unlike VHLO these are not versioned: the codes are those of jaxlib 0.10.2. Properties are written
in alphabetical order; those marked ? are optional.
"""

from __future__ import annotations

from typing import Any

from haloc.formats.stablehlo.bytecode import meshes
from haloc.formats.stablehlo.bytecode.builtin import DYNAMIC, Bounds
from haloc.formats.stablehlo.bytecode.cursor import ByteCursor
from haloc.formats.stablehlo.bytecode.entries import Decoder, Entries
from haloc.formats.stablehlo.bytecode.numbers import read_float
from haloc.formats.stablehlo.mlir import Enum, Struct, Token

ENUMS: dict[str, tuple[str, ...]] = {
    "custom_call_api_version": (
        "UNSPECIFIED",
        "ORIGINAL",
        "STATUS_RETURNING",
        "STATUS_RETURNING_UNIFIED",
        "TYPED_FFI",
    ),
    "comparison_direction": ("EQ", "NE", "GE", "GT", "LE", "LT"),
    "comparison_type": ("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"),
    "fft_type": ("FFT", "IFFT", "RFFT", "IRFFT"),
    "precision": ("DEFAULT", "HIGH", "HIGHEST"),
    "rng_algorithm": ("DEFAULT", "THREE_FRY", "PHILOX"),
    "rng_distribution": ("", "UNIFORM", "NORMAL"),
    "transpose": ("", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"),
    "result_accuracy_mode": ("DEFAULT", "HIGHEST", "TOLERANCE"),
}
"""Words by number; an empty one stands for a number that means nothing."""


def enum(kind: str) -> Decoder:
    names = ENUMS[kind]
    first = int(not names[0])
    values = [Enum(kind, name) for name in names]

    def read(cursor: ByteCursor, entries: Entries) -> Enum:
        number = cursor.varint(f"a {kind}")
        if number >= len(values) or not names[number]:
            cursor.fail(f"{kind} {number}, expected {first} to {len(values) - 1}")
        return values[number]

    return read


DIRECTION = enum("comparison_direction")
COMPARISON = enum("comparison_type")
FFT = enum("fft_type")
PRECISION = enum("precision")
ALGORITHM = enum("rng_algorithm")
DISTRIBUTION = enum("rng_distribution")
TRANSPOSE = enum("transpose")
ACCURACY = enum("result_accuracy_mode")


def _struct(name: str, fields: str) -> Decoder:
    """Numbers, and lists of numbers where the field's name is a plural."""
    names = fields.split()

    def read(cursor: ByteCursor, entries: Entries) -> Struct:
        values: dict[str, Any] = {}
        for field in names:
            is_list = field.endswith(("dimensions", "dims", "indices", "start_index_map"))
            values[field] = cursor.signed_list(field) if is_list else cursor.svarint(field)
        return Struct(f"stablehlo.{name}", values)

    return read


_SCATTER = _struct(
    "scatter",
    "update_window_dims inserted_window_dims input_batching_dims scatter_indices_batching_dims"
    " scatter_dims_to_operand_dims index_vector_dim",
)


def read_bounds(cursor: ByteCursor, entries: Entries) -> Bounds:
    return Bounds(None if b == DYNAMIC else b for b in cursor.signed_list("bounds"))


def read_accuracy(cursor: ByteCursor, entries: Entries) -> Struct:
    fields = {
        "atol": read_float(cursor, "f64"),
        "rtol": read_float(cursor, "f64"),
        "ulps": cursor.svarint("ulps"),
        "mode": entries.read_a(cursor, Enum, "a result accuracy mode"),
    }
    return Struct("stablehlo.result_accuracy", fields)


def _dot_algorithm(cursor: ByteCursor, entries: Entries) -> Struct:
    types = ("lhs_precision_type", "rhs_precision_type", "accumulation_type")
    numbers = ("lhs_component_count", "rhs_component_count", "num_primitive_operations")
    fields: dict[str, Any] = {name: entries.read_type(cursor) for name in types}
    fields |= {name: cursor.svarint(name) for name in numbers}
    fields["allow_imprecise_accumulation"] = bool(cursor.byte("allow_imprecise_accumulation"))
    return Struct("stablehlo.dot_algorithm", fields)


ATTRIBUTES: dict[int, Decoder] = {
    1: _struct("channel_handle", "handle type"),
    2: DIRECTION,
    3: COMPARISON,
    4: _struct(
        "conv",
        "input_batch_dimension input_feature_dimension input_spatial_dimensions"
        " kernel_input_feature_dimension kernel_output_feature_dimension"
        " kernel_spatial_dimensions output_batch_dimension output_feature_dimension"
        " output_spatial_dimensions",
    ),
    5: _struct(
        "dot",
        "lhs_batching_dimensions rhs_batching_dimensions lhs_contracting_dimensions"
        " rhs_contracting_dimensions",
    ),
    6: FFT,
    7: _struct(
        "gather",
        "offset_dims collapsed_slice_dims operand_batching_dims start_indices_batching_dims"
        " start_index_map index_vector_dim",
    ),
    8: PRECISION,
    9: ALGORITHM,
    10: DISTRIBUTION,
    11: _SCATTER,
    12: TRANSPOSE,
    13: read_bounds,
    14: _struct("output_operand_alias", "output_tuple_indices operand_index operand_tuple_indices"),
    15: _dot_algorithm,
    16: ACCURACY,
    17: read_accuracy,
    18: meshes.own_group_axes,
    19: meshes.sub_axis,
    20: meshes.axis,
    21: meshes.own_mesh_axis,
    22: meshes.own_mesh,
}
TYPES: dict[int, Decoder] = {0: lambda c, e: Token()}

CHLO_ATTRIBUTES: dict[int, Decoder] = {0: DIRECTION, 1: COMPARISON}

_CHANNEL = "channel_handle is_host_transfer? source_target_pairs?"
_DYNAMIC_CONV = (
    "batch_group_count dimension_numbers feature_group_count lhs_dilation? precision_config?"
    " rhs_dilation? window_reversal? window_strides?"
)
_STABLEHLO = {
    "all_gather": "all_gather_dim channel_handle? replica_groups use_global_device_ids?",
    "all_reduce": "channel_handle? replica_groups use_global_device_ids?",
    "all_to_all": "channel_handle? concat_dimension replica_groups split_count split_dimension",
    "batch_norm_grad": "epsilon feature_index",
    "batch_norm_inference": "epsilon feature_index",
    "batch_norm_training": "epsilon feature_index",
    "broadcast": "broadcast_sizes",
    "broadcast_in_dim": "broadcast_dimensions",
    "cholesky": "lower?",
    "collective_broadcast": "channel_handle? replica_groups",
    "collective_permute": "channel_handle? source_target_pairs",
    "compare": "compare_type? comparison_direction",
    "composite": "composite_attributes? decomposition name version?",
    "concatenate": "dimension",
    "constant": "value",
    "convolution": f"{_DYNAMIC_CONV} padding?",
    "cross-replica-sum": "replica_groups",
    "custom_call": "api_version? backend_config? call_target_name called_computations?"
    " has_side_effect? operand_layouts? output_operand_aliases? result_layouts?",
    "dot": "precision_config?",
    "dot_general": "algorithm? dot_dimension_numbers precision_config?",
    "dynamic_broadcast_in_dim": "broadcast_dimensions known_expanding_dimensions?"
    " known_nonexpanding_dimensions?",
    "dynamic_conv": _DYNAMIC_CONV,
    "dynamic_gather": "dimension_numbers indices_are_sorted?",
    "dynamic_iota": "iota_dimension",
    "dynamic_slice": "slice_sizes",
    "einsum": "einsum_config",
    "fft": "fft_length fft_type",
    "gather": "dimension_numbers indices_are_sorted? slice_sizes",
    "get_dimension_size": "dimension",
    "get_tuple_element": "index",
    "infeed": "infeed_config? layout?",
    "iota": "iota_dimension",
    "map": "dimensions",
    "outfeed": "outfeed_config?",
    "pad": "edge_padding_high edge_padding_low interior_padding",
    "recv": _CHANNEL,
    "reduce": "dimensions",
    "reduce_precision": "exponent_bits mantissa_bits",
    "reduce_scatter": "channel_handle? replica_groups scatter_dimension use_global_device_ids?",
    "reduce_window": "base_dilations? padding? window_dilations? window_dimensions window_strides?",
    "reverse": "dimensions",
    "rng": "rng_distribution",
    "rng_bit_generator": "rng_algorithm",
    "scatter": "indices_are_sorted? scatter_dimension_numbers unique_indices?",
    "select_and_scatter": "padding? window_dimensions? window_strides?",
    "send": _CHANNEL,
    "set_dimension_size": "dimension",
    "slice": "limit_indices start_indices strides",
    "sort": "dimension? is_stable?",
    "torch_index_select": "batch_dims dim",
    "transpose": "permutation",
    "triangular_solve": "left_side lower transpose_a unit_diagonal",
    "unary_einsum": "einsum_config",
}
_WITH_ACCURACY = (
    "cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan"
    " tanh"
)
_BROADCASTING = (
    "add and atan2 complex divide maximum minimum multiply next_after or polygamma power remainder"
    " shift_left shift_right_arithmetic shift_right_logical subtract xor zeta"
)
_OTHER = {
    "arith.constant": "value",
    "builtin.module": "sym_name? sym_visibility?",
    "chlo.broadcast_compare": "broadcast_dimensions? compare_type? comparison_direction",
    "chlo.constant": "value",
    "chlo.constant_like": "value",
    "chlo.top_k": "k",
    "func.call": "arg_attrs? callee no_inline? res_attrs?",
    "func.func": "arg_attrs? function_type no_inline? res_attrs? sym_name sym_visibility?",
}


def _table() -> dict[str, tuple[str, ...]]:
    listed = {f"stablehlo.{name}": names for name, names in _STABLEHLO.items()}
    listed |= {f"stablehlo.{name}": "result_accuracy?" for name in _WITH_ACCURACY.split()}
    listed |= {f"chlo.broadcast_{name}": "broadcast_dimensions?" for name in _BROADCASTING.split()}
    return {op: tuple(sorted(names.split())) for op, names in (listed | _OTHER).items()}


PROPERTIES: dict[str, tuple[str, ...]] = _table()
"""The properties of each op, in the order they are written."""
