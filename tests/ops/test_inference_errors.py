"""Wrong operands and attributes: one clear line that cites the broken constraint."""

# ruff: noqa: E501  (one case a line)
from __future__ import annotations

import pytest

from haloc.errors import VerificationError
from haloc.formats.hlo_text import parse_shape
from tests.ops.run_op import instruction_of

GATHER = {
    "offset_dims": (1,),
    "collapsed_slice_dims": (0,),
    "start_index_map": (0,),
    "index_vector_dim": 1,
    "slice_sizes": (1, 3),
}
"""A right gather of rows of f32[4,3] at s32[5,1]."""

BATCHED = {
    "offset_dims": (),
    "collapsed_slice_dims": (1,),
    "start_index_map": (1,),
    "operand_batching_dims": (0,),
    "start_indices_batching_dims": (0,),
    "index_vector_dim": 1,
    "slice_sizes": (1, 1),
}
"""A right gather of f32[4,3] at s32[4,1], one number a row."""

ROWS = "f32[4,3] s32[5,1]"
SAME = "f32[4,3] s32[4,1]"

CASES = [
    # opcode, operands, attributes, result or "", what the message must say
    ("add", "f32[2] f32[3]", {}, "", "lhs f32[2] and rhs f32[3] must have the same dimensions   (add_c1)"),
    ("add", "f32[2] s32[2]", {}, "", "rhs is of type s32, lhs of type f32; they must be the same   (add_c1)"),
    ("add", "f32[2]", {}, "", "takes 2 operands (lhs, rhs), 1 given"),
    ("add", "f32[2] token[]", {}, "", "rhs must be an array, got token[]"),
    ("tanh", "f32[] f32[]", {}, "", "takes 1 operand (operand), 2 given"),
    ("tanh", "s32[2]", {}, "", "operand must be of float or complex type, got s32   (tanh_i1)"),
    ("subtract", "pred[] pred[]", {}, "", "signed integer, unsigned integer, float or complex type, got pred"),
    ("not", "f32[]", {}, "", "must be of pred, signed integer or unsigned integer type, got f32   (not_i1)"),
    ("abs", "u8[]", {}, "", "must be of signed integer, float or complex type, got u8   (abs_i1)"),
    ("complex", "f16[] f16[]", {}, "", "lhs must be of f32 or f64 type, got f16   (complex_i1)"),
    ("compare", "f32[] s32[]", {"direction": "EQ"}, "", "(compare_c1)"),
    ("compare", "f32[2] f32[3]", {"direction": "EQ"}, "", "(compare_c2)"),
    ("compare", "s32[] s32[]", {"direction": "EQ", "type": "FLOAT"}, "",
     "type=FLOAT does not fit operands of type s32; wanted SIGNED   (compare_c3)"),
    ("compare", "c64[] c64[]", {"direction": "LT"}, "", "direction=LT is not defined on c64"),
    ("compare", "f32[] f32[]", {}, "", "attribute direction is missing"),
    ("select", "f32[2] f32[2] f32[2]", {}, "", "pred must be of pred type, got f32   (select_i1)"),
    ("select", "pred[3] f32[2] f32[2]", {}, "", "on_true f32[2] and pred pred[3]"),
    ("select", "pred[] f32[2] s32[2]", {}, "", "(select_c2)"),
    ("clamp", "f32[3] f32[2] f32[]", {}, "", "operand f32[2] and min f32[3]"),
    ("clamp", "f32[] f32[2] s32[]", {}, "", "max is of type s32, operand of type f32"),
    ("broadcast", "f32[2]", {"dimensions": (0, 1)}, "f32[2,2]", "dimensions has 2 entries, wanted 1   (broadcast_in_dim_c2)"),
    ("broadcast", "f32[2]", {"dimensions": (2,)}, "f32[2,2]", "dimensions={2} names dimensions outside [0, 2)"),
    ("broadcast", "f32[2,2]", {"dimensions": (1, 1)}, "f32[2,2]", "dimensions={1,1} has duplicates   (broadcast_in_dim_c4)"),
    ("broadcast", "f32[3]", {"dimensions": (0,)}, "f32[2,2]",
     "dimension 0 of the operand f32[3] has size 3, dimension 0 of the result f32[2,2] has 2"),
    ("reshape", "f32[6]", {}, "f32[4]", "the operand f32[6] has 6 elements, the result f32[4] 4   (reshape_c2)"),
    ("transpose", "f32[4,8]", {"dimensions": (0, 0)}, "",
     "dimensions={0,0} is not a permutation of the 2 dimensions of f32[4,8]   (transpose_c2)"),
    ("slice", "f32[4]", {"slice": ((0, 5, 1),)}, "", "[0:5] of dimension 0 is not a range within its size 4   (slice_c3)"),
    ("slice", "f32[4]", {"slice": ((3, 2, 1),)}, "", "(slice_c3)"),
    ("slice", "f32[4]", {"slice": ((0, 2, 0),)}, "", "the stride of dimension 0 is 0, wanted at least 1   (slice_c4)"),
    ("slice", "f32[4]", {"slice": ()}, "", "slice has 0 entries, wanted 1   (slice_c2)"),
    ("reverse", "f32[4]", {"dimensions": (0, 0)}, "", "(reverse_c2)"),
    ("reverse", "f32[4]", {"dimensions": (-1,)}, "", "(reverse_c3)"),
    ("concatenate", "f32[2,3] f32[3,3]", {"dimensions": 1}, "", "differ in a dimension other than 1   (concatenate_c2)"),
    ("concatenate", "f32[2] s32[2]", {"dimensions": 0}, "", "inputs[1] is of type s32, inputs[0] of type f32"),
    ("concatenate", "f32[2]", {"dimensions": 1}, "", "(concatenate_c4)"),
    ("concatenate", "", {"dimensions": 0}, "", "takes at least 1 operand, 0 given"),
    ("pad", "f32[2] f32[2]", {"padding": ((0, 0, 0),)}, "", "padding_value must be a scalar, got f32[2]"),
    ("pad", "f32[2] s32[]", {"padding": ((0, 0, 0),)}, "", "(pad_c1)"),
    ("pad", "f32[2] f32[]", {"padding": ()}, "", "padding has 0 entries, wanted 1   (pad_c2)"),
    ("pad", "f32[2] f32[]", {"padding": ((0, 0, -1),)}, "", "the interior padding of dimension 0 is -1"),
    ("pad", "f32[2] f32[]", {"padding": ((-2, -1, 0),)}, "", "padding -2_-1_0 of dimension 0 (size 2) leaves -1"),
    ("iota", "", {"iota_dimension": 1}, "f32[2]", "iota_dimension={1} names dimensions outside [0, 1)   (iota_c1)"),
    ("iota", "", {"iota_dimension": 0}, "pred[2]", "got pred[2]{0}"),
    ("bitcast-convert", "u16[4]", {}, "f32[4]", "the last dimension must be 2, got u16[4]"),
    ("bitcast-convert", "pred[4]", {}, "u8[4]", "the bits of pred are not those of u8"),
    ("reduce-precision", "f32[]", {"exponent_bits": 0, "mantissa_bits": 1}, "", "exponent_bits=0, wanted at least 1"),
    ("dynamic-slice", "f32[4] s32[] s32[]", {"dynamic_slice_sizes": (2,)}, "",
     "2 start indices given, wanted 1, one a dimension   (dynamic_slice_c2)"),
    ("dynamic-slice", "f32[4] f32[]", {"dynamic_slice_sizes": (2,)}, "", "start_indices[0] must be of"),
    ("dynamic-slice", "f32[4,4] s32[] s64[]", {"dynamic_slice_sizes": (2, 2)}, "", "(dynamic_slice_c3)"),
    ("dynamic-slice", "f32[4] s32[]", {"dynamic_slice_sizes": (5,)}, "", "is 5, wanted 0 to 4, the size of f32[4]"),
    ("dynamic-update-slice", "f32[4] f32[5] s32[]", {}, "", "(dynamic_update_slice_c6)"),
    ("dynamic-update-slice", "f32[4] s32[2] s32[]", {}, "", "(dynamic_update_slice_c2)"),
    ("get-tuple-element", "f32[]", {"index": 0}, "", "operand must be a tuple, got f32[]"),
    ("get-tuple-element", "(f32[])", {"index": 1}, "", "index=1, but the operand (f32[]) has 1 elements"),
    ("after-all", "f32[]", {}, "", "operand 0 must be a token, got f32[]"),
    ("get-dimension-size", "f32[2]", {"dimensions": 1}, "", "(get_dimension_size_c1)"),
    ("constant", "", {}, "f32[]", "has no value"),
    ("stochastic-convert", "f32[2] u16[2]", {}, "s8[2]", "random must be u32 for an operand of type f32, got u16"),
    ("gather", ROWS, GATHER | {"offset_dims": (0, 1)}, "", "(gather_c1)"),
    ("gather", ROWS, GATHER | {"index_vector_dim": 3}, "", "index_vector_dim=3 is not in [0, 2]   (gather_c2)"),
    ("gather", ROWS, GATHER | {"start_index_map": (0, 1)}, "", "start_index_map has 2 entries, wanted 1   (gather_c3)"),
    ("gather", ROWS, GATHER | {"offset_dims": (2,)}, "", "(gather_c5)"),
    ("gather", ROWS, GATHER | {"collapsed_slice_dims": (2,)}, "", "(gather_c8)"),
    ("gather", ROWS, GATHER | {"slice_sizes": (2, 3)}, "", "slice_sizes of dimension 0 is 2, wanted at most 1   (gather_c9)"),
    ("gather", ROWS, GATHER | {"start_index_map": (2,)}, "", "(gather_c19)"),
    ("gather", ROWS, GATHER | {"slice_sizes": (1,)}, "", "(gather_c20)"),
    ("gather", ROWS, GATHER | {"slice_sizes": (1, 4)}, "", "slice_sizes of dimension 1 is 4, wanted 0 to 3   (gather_c21)"),
    ("gather", SAME, BATCHED | {"collapsed_slice_dims": (0,)}, "", "(gather_c6)"),
    ("gather", SAME, BATCHED | {"start_indices_batching_dims": (2,)}, "", "(gather_c14)"),
    ("gather", SAME, BATCHED | {"start_indices_batching_dims": (1,)}, "", "(gather_c15)"),
    ("gather", SAME, BATCHED | {"start_indices_batching_dims": ()}, "", "(gather_c16)"),
    ("gather", ROWS, BATCHED, "", "batching dimension 0 of the operand has size 4, dimension 0 of start_indices 5"),
    ("gather", SAME, BATCHED | {"start_index_map": (0,)}, "", "(gather_c18)"),
    ("gather", "f32[4,3] f32[5,1]", GATHER, "", "start_indices must be of"),
]  # fmt: skip


def shapes_of(text: str) -> list:
    return [parse_shape(word) for word in text.split()]


@pytest.mark.parametrize(("opcode", "operands", "attrs", "result", "says"), CASES)
def test_wrong_programs_are_told_what_is_wrong(opcode, operands, attrs, result, says):
    shape = parse_shape(result) if result else None
    with pytest.raises(VerificationError) as caught:
        instruction_of(opcode, shapes_of(operands), shape, **attrs)
    text = str(caught.value)
    assert text.startswith(f"INVALID_ARGUMENT: {opcode}: ")
    assert says in text
    assert "\n" not in text


RIGHT = [
    ("gather", ROWS, GATHER, "", "f32[5,3]"),
    ("gather", SAME, BATCHED, "", "f32[4]"),
    ("bitcast-convert", "u32[4]", {}, "f16[4,2]", "f16[4,2]"),
    ("add", "f32[?,8] f32[4,8]", {}, "", "f32[4,8]"),
    ("add", "f32[<=4,8] f32[<=4,8]", {}, "", "f32[<=4,8]"),
    ("negate", "f32[?,<=9]", {}, "", "f32[?,<=9]"),
    ("transpose", "f32[<=4,8]", {"dimensions": (1, 0)}, "", "f32[8,<=4]"),
    ("compare", "bf16[<=4] bf16[<=4]", {"direction": "LT"}, "", "pred[<=4]"),
    ("pad", "f32[3] f32[]", {"padding": ((1, -1, 2),)}, "", "f32[7]"),
    ("pad", "f32[0] f32[]", {"padding": ((1, 1, 5),)}, "", "f32[2]"),
    ("dynamic-slice", "f32[4,5] s32[2]", {"dynamic_slice_sizes": (1, 2)}, "", "f32[1,2]"),
    ("select", "pred[] f32[2] f32[2]", {}, "", "f32[2]"),
    ("clamp", "f32[] f32[2] f32[2]", {}, "", "f32[2]"),
    ("slice", "f32[10]", {"slice": ((1, 8, 3),)}, "", "f32[3]"),
]


@pytest.mark.parametrize(("opcode", "operands", "attrs", "result", "wanted"), RIGHT)
def test_inferred_shapes(opcode, operands, attrs, result, wanted):
    shape = parse_shape(result) if result else None
    inferred = instruction_of(opcode, shapes_of(operands), shape, **attrs).shape
    assert inferred.to_string(include_layout=False) == wanted
