"""Modules and computations: names, order, entry, fragments, async sugar, header, comments."""

import jaxlib._hlo
import numpy as np
import pytest

from haloc.formats.hlo_text import PrintOptions, instruction_to_text, parse_module, to_text
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape
from haloc.ops.example import ExampleGraph
from haloc.ops.table import OPS
from tests.formats.compare import differences


def test_names_are_unique_in_the_module():
    module = parse_module(
        "x { a = f32[4] parameter(0)\n ROOT r = f32[4] negate(a) }\n"
        "ENTRY y { a = f32[4] parameter(0)\n ROOT r = f32[4] call(a), to_apply=x }"
    )
    assert [i.name for c in module.computations.values() for i in c.instructions] == (
        ["a", "r", "a.1", "r.1"]
    )
    assert module.entry.root.operands[0].name == "a.1"


def test_callees_may_come_later_and_print_first():
    module = parse_module(
        "ENTRY e { a = f32[4] parameter(0)\n ROOT r = f32[4] call(a), to_apply=y }\n"
        "y { b = f32[4] parameter(0)\n ROOT s = f32[4] abs(b) }"
    )
    assert list(module.computations) == ["e", "y"]
    text = to_text(module)
    assert text.index("y (b") < text.index("ENTRY e")
    assert module.entry.name == "e"
    jaxlib._hlo.hlo_module_from_text(text)


def test_the_last_computation_is_the_entry_unless_one_says_so():
    one = "x { ROOT a = f32[4] parameter(0) }\n"
    two = "y { ROOT b = f32[4] parameter(0) }\n"
    assert parse_module(one + two).entry.name == "y"
    assert parse_module("ENTRY " + one + two).entry.name == "x"
    assert parse_module(one).name == "module_x"


def test_a_fragment_is_a_list_of_instructions():
    module = parse_module("a = f32[4] parameter(0)\nb = f32[4] negate(a)\n")
    assert module.entry.name == "main"
    assert module.entry.root.name == "b"


def test_a_fragment_makes_parameters_of_operands_with_shapes():
    module = parse_module("%r = f32[4] add(f32[4]{0} %x, f32[4] %y)")
    assert [(p.name, str(p.shape)) for p in module.entry.parameters] == [
        ("x", "f32[4]{0}"),
        ("y", "f32[4]{0}"),
    ]
    assert module.entry.root.opcode == "add"


def test_nested_operands_become_instructions():
    module = parse_module(
        "ENTRY e { ROOT r = add(f32[4] parameter(0), f32[4] negate(f32[4] parameter(1))) }"
    )
    assert [i.name for i in module.entry.instructions] == (
        ["parameter.anon", "parameter.anon.1", "negate.anon", "r"]
    )


def test_shapes_can_be_left_out_where_the_op_decides_them():
    module = parse_module(
        "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = add(a, b) }\n"
        "ENTRY e { x = f32[2,3] parameter(0)\n z = f32[] constant(0)\n"
        " s = reduce(x, z), dimensions={1}, to_apply=add\n"
        " d = dot(s, s), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
        " ROOT t = tuple(d, s) }"
    )
    assert str(module.entry.root.shape) == "(f32[], f32[2]{0})"


def test_comments_percent_signs_and_blanks_do_not_count():
    plain = parse_module("ENTRY e { a = f32[2,3] parameter(0)\n ROOT b = f32[2,3] negate(a) }")
    other = parse_module(
        "// a program\nENTRY %e\n{ %a = /*here*/ f32[2,3] {1,0} parameter( 0 ) // p\n"
        "ROOT %b=f32[ 2 , 3 ]negate( f32[2,3] %a ) }"
    )
    assert differences(plain, other) == []


def test_comment_signs_in_strings_are_text():
    module = parse_module(
        'ENTRY e { a = f32[] parameter(0), metadata={op_name="a/*b//c"}, '
        'backend_config={"u":"//"} }'
    )
    assert module.entry.root.metadata == {"op_name": "a/*b//c"}
    assert module.entry.root.backend_config == '{"u":"//"}'


@pytest.mark.parametrize(
    "value", ['a"b\\c\n\t\r', "naïve 名", "\x00\x7f", "{not json", '{"k": "}"}']
)
def test_strings_survive(value):
    module = HloModule("m")
    computation = module.add_computation("e", entry=True)
    computation.root = computation.add(
        HloInstruction("custom-call", Shape(OPS_F32), (), {"custom_call_target": value}, "c")
    )
    computation.root.backend_config = value
    computation.root.frontend_attributes = {"k": value}
    computation.root.metadata = {"op_name": value}
    text = to_text(module)
    again = parse_module(text).entry.root
    assert again.attrs["custom_call_target"] == value
    assert again.backend_config == value
    assert again.frontend_attributes == {"k": value}
    assert again.metadata == {"op_name": value}
    jaxlib._hlo.hlo_module_from_text(text)


OPS_F32 = parse_module("a = f32[] parameter(0)").entry.root.shape.dtype


def test_async_sugar_makes_the_wrapped_computation():
    text = (
        "ENTRY e { param_0 = f32[4] parameter(0)\n"
        ' s = ((f32[4]), f32[4], u32[]) negate-start(param_0), async_execution_thread="host"\n'
        " ROOT d = f32[4] negate-done(s) }"
    )
    module = parse_module(text)
    start = module.entry.instructions[1]
    called = start.attrs["calls"]
    assert isinstance(called, HloComputation)
    assert (start.opcode, called.execution_thread) == ("async-start", "host")
    assert [i.opcode for i in called.instructions] == ["parameter", "negate"]
    assert module.entry.instructions[0].name == "param_0"
    assert list(module.post_order()) == [called, module.entry]
    assert to_text(module).count("{\n") == 1
    assert differences(parse_module(to_text(module)), module) == []


def test_async_start_of_several_ops_prints_in_full():
    text = (
        "ac { a = f32[4] parameter(0)\n n = f32[4] negate(a)\n ROOT r = f32[4] abs(n) }\n"
        "ENTRY e { p = f32[4] parameter(0)\n"
        " s = ((f32[4]), f32[4], u32[]) async-start(p), calls=ac\n"
        " ROOT d = f32[4] async-done(s) }"
    )
    module = parse_module(text)
    assert "async-start(p), calls=ac" in to_text(module)
    assert differences(parse_module(to_text(module)), module) == []


def test_header_is_parsed():
    header = parse_module(
        "HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {1}, must-alias), "
        "{1}: (1, {}) }, buffer_donor={ (0, {}) }, replica_count=2, num_partitions=4, "
        "allow_spmd_sharding_propagation_to_parameters={true,false}, other_thing={a={b=3},c}\n"
        "ENTRY e { ROOT p = f32[4] parameter(0) }"
    ).header
    assert header == {
        "is_scheduled": True,
        "input_output_alias": (((0,), 0, (1,), "must-alias"), ((1,), 1, (), "may-alias")),
        "buffer_donor": ((0, ()),),
        "replica_count": 2,
        "num_partitions": 4,
        "allow_spmd_sharding_propagation_to_parameters": (True, False),
        "other_thing": "{a={b=3},c}",
    }


def test_tables_are_kept_and_left_out_with_metadata():
    text = (
        'HloModule m\n\nFileNames\n1 "f.py"\n\nFunctionNames\n1 "main"\n\nFileLocations\n'
        "1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=2}\n\n"
        "StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n\n\n"
        'ENTRY e { ROOT p = f32[4] parameter(0), metadata={op_name="x" stack_frame_id=1} }'
    )
    module = parse_module(text)
    assert module.tables["FileNames"] == ['1 "f.py"']
    printed = to_text(module)
    assert differences(parse_module(printed), module) == []
    assert "stack_frame_id=1" in jaxlib._hlo.hlo_module_from_text(printed).to_string()
    assert "File" not in to_text(module, PrintOptions(print_metadata=False))


def test_short_form():
    module = parse_module(
        'ENTRY e { p = f32[2,8] parameter(0), metadata={op_name="x"}\n'
        " ROOT c = f32[2,8] constant({...}) }"
    )
    assert instruction_to_text(module.entry.root, PrintOptions.short()) == (
        "ROOT c = f32[2,8] constant({...})"
    )
    assert "op_name" not in to_text(module, PrintOptions.short())


@pytest.mark.parametrize("opcode", sorted(OPS))
def test_examples_of_every_row_round_trip_and_are_xla_text(opcode):
    for seed in range(3):
        graph = ExampleGraph(np.random.default_rng(seed))
        OPS[opcode].example(graph)
        text = to_text(graph.module)
        again = parse_module(text)
        assert to_text(again) == text
        if not opcode.startswith("async"):  # sugar leaves out the names in the computation
            assert differences(again, graph.module) == []
        if "padding=\n" not in text:  # the empty padding of a scalar, which XLA cannot read
            jaxlib._hlo.hlo_module_from_text(text)


def test_reserved_words_are_names_behind_a_percent_sign():
    text = (
        "%manual { %inf = f32[] parameter(0)\n ROOT %nan = f32[] negate(%inf) }\n"
        "ENTRY e { %true = f32[] parameter(0)\n %ROOT = f32[] negate(%true)\n"
        " ROOT %x = f32[] call(%true), to_apply=%manual, control-predecessors={%ROOT} }"
    )
    module = parse_module(text)
    printed = to_text(module)
    assert "call(%true), to_apply=%manual, control-predecessors={%ROOT}" in printed
    assert differences(parse_module(printed), module) == []
    jaxlib._hlo.hlo_module_from_text(printed)


def test_types_can_be_names():
    """XLA refuses them, even behind `%`."""
    module = parse_module("ENTRY e { %s1 = f32[] parameter(0)\n ROOT u1 = f32[] negate(s1) }")
    assert [i.name for i in module.entry.instructions] == ["s1", "u1"]
    assert differences(parse_module(to_text(module)), module) == []


def test_sugar_is_not_used_where_it_would_lose_something():
    text = (
        'ac { a = f32[4] parameter(0)\n ROOT r = f32[4] custom-call(a), custom_call_target="f", '
        'backend_config="keep" }\n'
        "ENTRY e { p = f32[4] parameter(0)\n"
        " s = ((f32[4]), f32[4], u32[]) async-start(p), calls=ac\n"
        " ROOT d = f32[4] async-done(s), calls=ac }"
    )
    module = parse_module(text)
    assert 'backend_config="keep"' in to_text(module)
    assert differences(parse_module(to_text(module)), module) == []
