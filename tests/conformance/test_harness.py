"""JAX's primitive harnesses: a sample in every run, all of them nightly.

What differs from jaxlib is exactly what harness_differences.txt lists: nothing more, nothing less.
"""

import pytest

from tests.conformance.harness import (
    HARNESSES,
    MODES,
    differences,
    expected_differences,
    groups,
    names_of,
    sample,
)

# JAX's own deprecations, and NumPy's overflows while a harness makes its arguments.
pytestmark = pytest.mark.filterwarnings("ignore")

SAMPLE = [
    ("x32" if number % 2 and name in names_of("x32") else "x64", name)
    for number, name in enumerate(sample(150))
]
SPECIAL_SAMPLE = [
    "abs_shape_complex64_20_20_",
    "acosh_shape_complex64_20_20_",
    "atan2_dtypes_lhs_bfloat16_20_20_rhs_bfloat16_20_20_",
    "cbrt_shape_float32_20_20_",
    "ceil_shape_float32_20_20_",
    "clamp_broadcasting_min_float32_2_3_operand_float32_2_3_max_float32_2_3_",
    "convert_element_type_dtypes_to_dtypes_shape_int16_100_100_olddtype_int16_newdtype_uint16",
    "digamma_shape_float16_20_20_",
    "div_dtypes_lhs_complex64_2_rhs_complex64_2_",
    "erf_inv_shape_bfloat16_20_20_",
    "expm1_shape_complex64_20_20_",
    "ge_dtypes_lhs_float16_rhs_float16_",
    "integer_pow_dtypes_shape_complex64_20_30_y_2",
    "lgamma_shape_float32_20_20_",
    "log1p_shape_float32_20_20_",
    "logistic_shape_bfloat16_20_20_",
    "max_dtypes_lhs_float16_20_20_rhs_float16_20_20_",
    "mul_dtypes_lhs_complex64_20_20_rhs_complex64_20_20_",
    "pow_dtypes_lhs_float16_20_30_rhs_float16_20_30_",
    "reduce_precision_in_float16_out_float32_",
    "rem_dtypes_lhs_float16_2_rhs_float16_2_",
    "round_dtypes_shape_float16_100_100_roundingmethod_0",
    "rsqrt_shape_bfloat16_20_20_",
    "shift_left_dtypes_lhs_uint16_20_20_rhs_uint16_20_20_",
    "sin_shape_complex64_20_20_",
    "tanh_shape_float16_20_20_",
]
EXPECTED = expected_differences()


def expected_of(mode: str, names: list[str]) -> dict:
    return {k: reason for k, reason in EXPECTED.items() if k[0] == mode and k[2] in names}


def check(mode: str, names: list[str]) -> int:
    """How many of the harnesses were asked."""
    found: dict = {}
    asked = 0
    for name in names:
        told = differences(mode, name)
        asked += told is not None
        found |= told or {}
    expected = expected_of(mode, names)
    new = {k: v for k, v in found.items() if k not in expected}
    assert not new, "\n".join(f"{' '.join(k)}: {v}" for k, v in new.items())
    gone = [" ".join(k) for k in expected if k not in found]
    assert not gone, f"these agree now; remove them from harness_differences.txt: {gone}"
    return asked


@pytest.mark.parametrize(("mode", "name"), SAMPLE, ids=[f"{m}-{n[:80]}" for m, n in SAMPLE])
def test_sample(mode, name):
    assert check(mode, [name]) == 1


@pytest.mark.parametrize("name", SPECIAL_SAMPLE)
def test_sample_of_special_values(name):
    assert check("special", [name]) == 1


@pytest.mark.nightly
@pytest.mark.parametrize(("mode", "group"), [(mode, g) for mode in MODES for g in groups(mode)])
def test_group(mode, group):
    names = groups(mode)[group]
    asked = check(mode, names)
    assert mode == "special" or asked == len(names)


def test_sample_has_all_groups():
    asked = {HARNESSES[name].group_name for _, name in SAMPLE}
    assert len(asked) > 120
