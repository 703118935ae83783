"""How the types of each op are written in pretty form; ops that are not here have generic form.

The printer chooses by these rows; the reader takes any of the forms for any op.
"""

from __future__ import annotations

from typing import Final

SAME: Final = "one type for operands and results, where they are one; else (operands) -> results"
FUNCTION: Final = "(operands) -> results"
RESULT: Final = "the result's type"
OPERANDS: Final = "the operands' types"
ARROW: Final = "operands -> results"
SELECT: Final = "the types of the predicate and of the values"

_SAME = """
abs add after_all and atan2 cbrt ceil cholesky clamp convert cosine count_leading_zeros divide
exponential
exponential_minus_one floor is_finite log log_plus_one logistic maximum minimum multiply negate not
or popcnt power real imag reduce_precision remainder reverse round_nearest_afz round_nearest_even
rsqrt shift_left shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh xor
"""
_FUNCTION = """
bitcast_convert broadcast broadcast_in_dim concatenate dot dynamic_broadcast_in_dim
dynamic_iota dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice einsum fft
get_dimension_size pad real_dynamic_slice reshape rng rng_bit_generator set_dimension_size
transpose unary_einsum uniform_quantize uniform_dequantize
"""
_CHLO_ARROW = """
acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc is_inf is_neg_inf
is_pos_inf lgamma mulhi next_after polygamma sinh square tan zeta
"""
_CHLO_FUNCTION = """
broadcast_add broadcast_and broadcast_atan2 broadcast_compare broadcast_complex broadcast_divide
broadcast_maximum broadcast_minimum broadcast_multiply broadcast_next_after broadcast_or
broadcast_polygamma broadcast_power broadcast_remainder broadcast_select broadcast_shift_left
broadcast_shift_right_arithmetic broadcast_shift_right_logical broadcast_subtract broadcast_xor
broadcast_zeta
"""

TYPE_STYLES: dict[str, str] = {
    **{f"stablehlo.{name}": SAME for name in _SAME.split()},
    **{f"stablehlo.{name}": FUNCTION for name in _FUNCTION.split()},
    **{f"chlo.{name}": ARROW for name in _CHLO_ARROW.split()},
    **{f"chlo.{name}": FUNCTION for name in _CHLO_FUNCTION.split()},
    "stablehlo.complex": RESULT,
    "stablehlo.iota": RESULT,
    "stablehlo.create_token": RESULT,
    "stablehlo.partition_id": RESULT,
    "stablehlo.replica_id": RESULT,
    "stablehlo.tuple": RESULT,
    "stablehlo.optimization_barrier": OPERANDS,
    "stablehlo.return": OPERANDS,
    "stablehlo.trace": OPERANDS,
    "func.return": OPERANDS,
    "sdy.return": OPERANDS,
    "stablehlo.select": SELECT,
}
"""By op; the values say what is written behind the colon."""
