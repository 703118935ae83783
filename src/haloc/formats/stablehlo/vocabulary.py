"""The names of all ops the readers know, by dialect."""

from __future__ import annotations

_STABLEHLO = """
abs add after_all all_gather all_reduce all_to_all and atan2 batch_norm_grad batch_norm_inference
batch_norm_training bitcast_convert broadcast broadcast_in_dim case cbrt ceil cholesky clamp
collective_broadcast collective_permute compare complex composite concatenate constant convert
convolution cosine count_leading_zeros create_token cross-replica-sum custom_call divide dot
dot_general dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota dynamic_pad
dynamic_reshape dynamic_slice dynamic_update_slice einsum exponential exponential_minus_one fft
floor gather get_dimension_size get_tuple_element if imag infeed iota is_finite log log_plus_one
logistic map maximum minimum multiply negate not optimization_barrier or outfeed pad partition_id
popcnt power real real_dynamic_slice recv reduce reduce_precision reduce_scatter reduce_window
remainder replica_id reshape return reverse rng rng_bit_generator round_nearest_afz
round_nearest_even rsqrt scatter select select_and_scatter send set_dimension_size shift_left
shift_right_arithmetic shift_right_logical sign sine slice sort sqrt subtract tan tanh
torch_index_select trace transpose triangular_solve tuple unary_einsum uniform_dequantize
uniform_quantize while xor async_start async_done
"""
_CHLO = """
_asin_acos_kernel acos acosh asin asinh atan atanh bessel_i1e broadcast_add broadcast_and
broadcast_atan2 broadcast_compare broadcast_complex broadcast_divide broadcast_maximum
broadcast_minimum broadcast_multiply broadcast_next_after broadcast_or broadcast_polygamma
broadcast_power broadcast_remainder broadcast_select broadcast_shift_left
broadcast_shift_right_arithmetic broadcast_shift_right_logical broadcast_subtract broadcast_xor
broadcast_zeta conj constant constant_like cosh digamma erf erf_inv erfc is_inf is_neg_inf
is_pos_inf lgamma mulhi next_after polygamma ragged_dot scaled_dot scan sinh square tan top_k zeta
"""
_SDY = """
mesh sharding_constraint sharding_group manual_computation reshard return propagation_barrier
named_computation data_flow_edge constant all_gather all_slice all_to_all all_reduce
collective_permute reduce_scatter
"""

OP_NAMES: frozenset[str] = frozenset(
    [f"stablehlo.{name}" for name in _STABLEHLO.split()]
    + [f"chlo.{name}" for name in _CHLO.split()]
    + [f"sdy.{name}" for name in _SDY.split()]
    + ["func.func", "func.call", "func.return", "builtin.module", "arith.constant"]
    + ["builtin.unrealized_conversion_cast", "shape.shape_of", "tensor.cast"]
)
"""Every op by its full name. Generic form takes any name; what cannot be converted says so then."""
