"""The verifier: exact messages for what breaks an op's constraints or the module's structure."""

import pytest

from haloc.errors import VerificationError
from haloc.formats.hlo_text import parse_module
from haloc.ir.dtype import F32
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape
from haloc.verifier import MAX_FAULTS, verify

REGIONS = """
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y)
}
less {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = pred[] compare(x, y), direction=LT
}
same {
  ROOT x = f32[4] parameter(0)
}
one {
  ROOT x = s32[] parameter(0)
}
"""


def fault_of(module: HloModule) -> str:
    with pytest.raises(VerificationError) as error:
        verify(module)
    return error.value.message


def fault(entry: str) -> str:
    """The first line of the error for an entry of these instructions."""
    text = "HloModule m\n" + REGIONS + "\nENTRY e {\n" + entry + "\n}\n"
    return fault_of(parse_module(text)).split("\n")[0]


INSTRUCTIONS = [
    # reduce
    (
        "reduce(a, z, z), dimensions={0}, to_apply=add",
        "reduce: takes as many initial values as inputs, given 3 operands   (reduce_c3)",
    ),
    (
        "reduce(a, b, z, z), dimensions={0}, to_apply=add",
        "reduce: input 1 is f32[4], but input 0 is f32[4,8]: inputs must have the same dimensions"
        "   (reduce_c1)",
    ),
    (
        "reduce(a, i), dimensions={0}, to_apply=add",
        "reduce: initial value 0 is s32[], wanted f32[]   (reduce_c2)",
    ),
    (
        "reduce(a, z), dimensions={2}, to_apply=add",
        "reduce: dimensions={2}: dimension 2 is out of range for rank 2   (reduce_c4)",
    ),
    (
        "reduce(a, z), dimensions={0,0}, to_apply=add",
        "reduce: dimensions={0,0} names a dimension twice   (reduce_c5)",
    ),
    (
        "reduce(a, z), dimensions={0}, to_apply=one",
        "reduce: to_apply one has signature (s32[]) -> s32[], wanted (f32[], f32[]) -> ..."
        "   (reduce_c6)",
    ),
    (
        "reduce(a, z), dimensions={0}, to_apply=less",
        "reduce: to_apply less returns pred[], wanted f32[]   (reduce_c6)",
    ),
    # map
    (
        "map(b, b), dimensions={}, to_apply=add",
        "map: dimensions={} must name all dimensions of f32[4], in order   (map_c2)",
    ),
    # windows
    (
        "reduce-window(a, z), window={size=2}, to_apply=add",
        "reduce-window: window has 1 dimensions, wanted 2   (reduce_window_c4)",
    ),
    (
        "reduce-window(a, z), window={size=2x2 stride=0x1}, to_apply=add",
        "reduce-window: window stride of dimension 0 is 0, wanted at least 1   (reduce_window_c7)",
    ),
    (
        "select-and-scatter(a, b, z), window={size=2x2}, select=less, scatter=add",
        "select-and-scatter: source is f32[4], wanted f32[3,7]: one element for each position of "
        "the window   (select_and_scatter_c2)",
    ),
    # dot
    (
        "dot(a, a), lhs_contracting_dims={0}, rhs_contracting_dims={1}",
        "dot: lhs_contracting_dims={0}, rhs_contracting_dims={1}: dimension 0 of f32[4,8] and "
        "dimension 1 of f32[4,8] differ in size   (dot_general_c10)",
    ),
    (
        "dot(a, a), lhs_contracting_dims={0,1}, rhs_contracting_dims={1}",
        "dot: lhs_contracting_dims={0,1}, rhs_contracting_dims={1} differ in number"
        "   (dot_general_c2)",
    ),
    (
        "dot(a, a), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={0}, "
        "rhs_contracting_dims={1}",
        "dot: lhs_batch_dims={0} and lhs_contracting_dims={0} share a dimension   (dot_general_c3)",
    ),
    (
        "dot(b, v), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "dot: element types f32, s32 -> f32 are not of one kind (pred, integer, float or complex), "
        "nor the result of a later one   (dot_general_c13)",
    ),
    (
        "dot(a, b), lhs_contracting_dims={5}, rhs_contracting_dims={0}",
        "dot: lhs_contracting_dims={5}: dimension 5 is out of range for rank 2   (dot_general_c6)",
    ),
    # convolution
    (
        "convolution(a, b), dim_labels=bf_io->bf",
        "convolution: lhs f32[4,8] and rhs f32[4] must have the same rank, at least 2"
        "   (convolution_c1)",
    ),
    (
        "convolution(a, a), dim_labels=bf_io->bf",
        "convolution: the rhs input feature dimension is 4, wanted 8: the lhs feature dimension, "
        "8, over feature_group_count=1   (convolution_c14)",
    ),
    (
        "convolution(a, a), dim_labels=bf_oi->bf, feature_group_count=3",
        "convolution: the lhs feature dimension, 8, is not a multiple of feature_group_count=3"
        "   (convolution_c11)",
    ),
    (
        "convolution(a, a), dim_labels=bf_oi->bf, feature_group_count=2, batch_group_count=2",
        "convolution: feature_group_count=2 and batch_group_count=2 must not both be more than 1"
        "   (convolution_c23)",
    ),
    # scatter
    (
        "scatter(b, v, b), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0,0}, index_vector_dim=1, to_apply=add",
        "scatter: scatter_dims_to_operand_dims={0,0} names a dimension twice   (scatter_c20)",
    ),
    (
        "scatter(b, v, a), update_window_dims={1}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
        "scatter: update_window_dims={1} has 1 entries, wanted 0: rank 1 less "
        "inserted_window_dims and input_batching_dims   (scatter_c2)",
    ),
    (
        "scatter(b, b, b), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
        "scatter: indices are f32[4], wanted integers",
    ),
    # sort, topk, fft
    (
        "sort(b), dimensions={1}, to_apply=less",
        "sort: dimensions={1} is out of range for f32[4]   (sort_c4)",
    ),
    (
        "sort(b, v), dimensions={0}, to_apply=less",
        "sort: to_apply less has signature (f32[], f32[]) -> pred[], wanted "
        "(f32[], f32[], s32[], s32[]) -> pred[]   (sort_c5)",
    ),
    ("topk(b), k=5, largest=true", "topk: k=5 is out of range for the last dimension of f32[4]"),
    (
        "fft(b), fft_type=FFT, fft_length={4}",
        "fft: FFT of f32[4], wanted element type c64 or c128   (fft_c2)",
    ),
    (
        "fft(b), fft_type=RFFT, fft_length={5}",
        "fft: RFFT with fft_length={5} of f32[4], wanted trailing dimensions {5}   (fft_c4)",
    ),
    # control
    (
        "while(b), condition=same, body=same",
        "while: condition same has signature (f32[4]) -> f32[4], wanted (f32[4]) -> pred[]"
        "   (while_c1)",
    ),
    (
        "conditional(z, b, b), branch_computations={same, same}",
        "conditional: the branch index is f32[], wanted s32[]",
    ),
    (
        "conditional(i, b), branch_computations={same, same}",
        "conditional: 2 branches take 3 operands, given 2   (case_c1)",
    ),
    (
        "conditional(i, b, v), branch_computations={same, same}",
        "conditional: branch 1 same has signature (f32[4]) -> f32[4], wanted (s32[4]) -> f32[4]"
        "   (case_c3)",
    ),
    (
        "call(v), to_apply=same",
        "call: to_apply same has signature (f32[4]) -> f32[4], wanted (s32[4]) -> ...",
    ),
    # linear algebra, rng
    ("cholesky(a), lower=true", "cholesky: a is f32[4,8], wanted square matrices   (cholesky_c3)"),
    (
        "triangular-solve(s, a), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
        "triangular-solve: b is f32[4,8], wanted batch dimensions [] and dimension -2 8, from a "
        "f32[8,8]   (triangular_solve_c3)",
    ),
    (
        "rng-bit-generator(b), algorithm=rng_philox",
        "rng-bit-generator: initial_state is f32[4], wanted u64[2] or u64[3]"
        "   (rng_bit_generator_c2)",
    ),
    (
        "rng(z, i), distribution=rng_uniform",
        "rng: b is s32[], wanted f32[]   (rng_c1)",
    ),
    (
        "batch-norm-training(a, b, b), epsilon=0.1, feature_index=1",
        "batch-norm-training: operand 1 is f32[4], wanted f32[8]   (batch_norm_training_c2)",
    ),
    (
        'custom-call(b), custom_call_target="x", operand_layout_constraints={s32[4]{0}}',
        "custom-call: operand 0 is f32[4], but its layout constraint says s32[4]",
    ),
    # the shape, the operands, the attributes
    ("add(b, b)", "add: the shape is f32[9], but operands and attributes give f32[4]"),
]


@pytest.mark.parametrize(("instruction", "message"), INSTRUCTIONS)
def test_faults_of_instructions(instruction, message):
    entry = f"""  a = f32[4,8] parameter(0)
  b = f32[4] parameter(1)
  z = f32[] parameter(2)
  i = s32[] parameter(3)
  v = s32[4] parameter(4)
  s = f32[8,8] parameter(5)
  ROOT r = f32[9] {instruction}"""
    assert fault(entry) == message


def graph() -> tuple[HloModule, HloComputation, HloInstruction, HloInstruction]:
    """A module with negate(parameter)."""
    module = HloModule("m")
    entry = module.add_computation("main", entry=True)
    shape = Shape(F32, (4,))
    x = entry.add(HloInstruction("parameter", shape, (), {"parameter_number": 0}, "x"))
    y = entry.add(HloInstruction("negate", shape, (x,), name="y"))
    entry.root = y
    return module, entry, x, y


AT_Y = (
    "  ROOT %y = f32[4]{0} negate(%x)\n  operand 0: %x = f32[4]{0} parameter(0)\n  in ENTRY %main"
)


def test_a_good_module_passes():
    verify(graph()[0])


def test_operand_count():
    module, _, x, y = graph()
    y.set_operands((x, x))
    assert fault_of(module) == (
        "negate: takes 1 operand (operand), given 2\n"
        "  ROOT %y = f32[4]{0} negate(%x, %x)\n"
        "  operand 0: %x = f32[4]{0} parameter(0)\n"
        "  operand 1: %x = f32[4]{0} parameter(0)\n"
        "  in ENTRY %main"
    )


def test_unknown_opcode():
    module, _, _, y = graph()
    y.opcode = "nagate"
    assert fault_of(module).startswith("unknown opcode nagate\n  ROOT %y = f32[4]{0} nagate(%x)\n")


def test_unknown_attribute():
    module, _, _, y = graph()
    y.attrs["color"] = "red"
    assert fault_of(module).startswith("negate: has no attribute color")


def test_missing_attribute():
    module, entry, x, _ = graph()
    entry.root = entry.add(HloInstruction("concatenate", x.shape, (x,)))
    assert fault_of(module).startswith("concatenate: attribute dimensions is missing\n")


def test_an_attribute_of_the_wrong_python_type_does_not_break_the_report():
    module, _, _, y = graph()
    y.opcode, y.attrs = "sort", {"dimensions": 3, "to_apply": module.entry}
    assert "sort: dimensions={3} is out of range for f32[4]   (sort_c4)" in fault_of(module)


def test_users_that_do_not_match():
    module, _, x, y = graph()
    x.users = {}
    assert fault_of(module) == (
        "users are {}, but the operands of main say {y}\n"
        "  %x = f32[4]{0} parameter(0)\n  in ENTRY %main"
    )
    x.users = {y: 2}
    assert fault_of(module).startswith("users are {y x2}, but the operands of main say {y}")


def test_order():
    module, entry, x, y = graph()
    entry._instructions = {y: None, x: None}
    assert fault_of(module) == "operand x stands after its user\n" + AT_Y


def test_an_operand_of_another_computation():
    module, _, x, y = graph()
    other = module.add_computation("other")
    far = other.add(HloInstruction("parameter", x.shape, (), {"parameter_number": 0}, "far"))
    other.root = far
    y.set_operand(0, far)
    message = fault_of(module)
    assert "operand far is not in computation main" in message
    assert "users are {y}, but the operands of other say {}" in message


def test_parameters_are_numbered_from_zero():
    module, _, x, _ = graph()
    x.attrs["parameter_number"] = 2
    assert (
        fault_of(module) == "computation main has parameters numbered 2, wanted 0 to 0, each once"
    )


def test_no_root_and_no_entry():
    module, entry, _, _ = graph()
    entry.root = None
    assert fault_of(module) == "computation main has no root among its instructions"
    module.entry = None
    assert "module m has no entry computation" in fault_of(module)


def test_recursion():
    module, entry, _, y = graph()
    y.opcode, y.attrs = "call", {"to_apply": entry}
    assert fault_of(module) == "recursive call: main -> main"


def test_a_callee_outside_the_module():
    module, _, _, y = graph()
    other = graph()[1]
    other.name = "elsewhere"
    y.opcode, y.attrs = "call", {"to_apply": other}
    first = fault_of(module).split("\n")[0]
    assert first == "call: computation elsewhere, which it calls, is not in module m"


def test_entry_layout():
    module, _, x, _ = graph()
    module.header["entry_computation_layout"] = ((Shape(F32, (5,)), x.shape), Shape(F32))
    assert fault_of(module) == (
        "3 faults in module m\n"
        "entry_computation_layout has 2 parameters, but main has 1\n"
        "entry_computation_layout says parameter 0 is f32[5], but it is f32[4]\n"
        "entry_computation_layout says the result is f32[], but the root is f32[4]"
    )


def test_aliasing():
    module, *_ = graph()
    module.header["input_output_alias"] = (((), 3, (), "may-alias"),)
    assert fault_of(module) == "input_output_alias names parameter 3 of 1"
    module.header["input_output_alias"] = (((1,), 0, (), "may-alias"),)
    assert fault_of(module) == "input_output_alias: the result has no member {1}"


def test_all_faults_are_reported_with_their_sources():
    text = """HloModule m
ENTRY e {
  a = f32[4] parameter(0)
  b = f32[5] negate(a), metadata={source_file="f.py" source_line=7}
  ROOT c = f32[4] dot(b, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}
"""
    assert fault_of(parse_module(text)) == (
        "2 faults in module m\n"
        "negate: the shape is f32[5], but operands and attributes give f32[4]\n"
        "  f.py:7   %b = f32[5]{0} negate(%a)\n"
        "  operand 0: %a = f32[4]{0} parameter(0)\n"
        "  in ENTRY %e\n"
        "dot: the shape is f32[4], but operands and attributes give f32[]\n"
        "  ROOT %c = f32[4]{0} dot(%b, %b), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
        "  operand 0: %b = f32[5]{0} negate(%a)\n"
        "  operand 1: %b = f32[5]{0} negate(%a)\n"
        "  in ENTRY %e"
    )


def test_very_many_faults_are_counted():
    module, entry, x, _ = graph()
    for _ in range(MAX_FAULTS + 6):
        entry.add(HloInstruction("negate", Shape(F32, (5,)), (x,)))
    message = fault_of(module)
    assert message.startswith("26 faults in module m\n") and message.endswith("\n... and 6 more")


def test_layouts_do_not_count():
    text = """HloModule m
ENTRY e {
  a = f32[4,8]{0,1} parameter(0)
  ROOT b = f32[4,8]{1,0} negate(a)
}
"""
    verify(parse_module(text))


def test_two_results_cannot_have_one_parameter():
    module = parse_module(
        """HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (0, {}, may-alias) }
        ENTRY e { a = f32[4] parameter(0)
          b = f32[4] negate(a)
          ROOT t = (f32[4], f32[4]) tuple(a, b) }"""
    )
    assert fault_of(module) == "input_output_alias gives parameter 0 {} to two results"


def test_statistics_are_carried():
    verify(
        parse_module(
            """HloModule m
            ENTRY e { a = f32[4] parameter(0)
              ROOT b = f32[4] negate(a), statistics={visualizing_index=0,stat-0=33.3} }"""
        )
    )
