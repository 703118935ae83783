"""What a module keeps of its proto, and what is refused."""

import time

import numpy as np
import pytest

from haloc.errors import HloParseError, InvalidArgumentError, UnimplementedError
from haloc.formats.hlo_proto import (
    literal_from_bytes,
    literal_to_bytes,
    parse_hlo_module_proto,
    serialize_hlo_module,
    shape_from_bytes,
    shape_to_bytes,
    sharding_from_bytes,
    sharding_to_bytes,
)
from haloc.formats.hlo_text import parse_module, parse_shape, to_text
from haloc.formats.proto import UNKNOWN, decode, encode
from haloc.ir import dtype as dt
from haloc.ir.literal import Literal, tuple_literal
from haloc.ir.shape import Layout, Shape
from haloc.ir.sharding import parse_sharding

TEXT = """HloModule m, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

ENTRY e {
  a = f32[4]{0} parameter(0)
  b = f32[4]{0} negate(a)
  ROOT c = f32[4]{0} add(a, b), metadata={op_name="sum"}
}
"""
STRANGE = b"\xa2\x9c\x01\x02hi"
"""Field 2500, which no message has."""


def message_of(text: str = TEXT):
    return decode("HloModuleProto", serialize_hlo_module(parse_module(text)))


def read(message):
    return parse_hlo_module_proto(encode("HloModuleProto", message))


def test_ids_are_numbered_as_xla_numbers_them():
    message = message_of(
        "HloModule m\nadd {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
        " ROOT z = f32[] add(x, y)\n}\n"
        "ENTRY e {\n a = f32[4] parameter(0)\n zero = f32[] constant(0)\n"
        " ROOT r = f32[] reduce(a, zero), dimensions={0}, to_apply=add\n}"
    )
    add, entry = message["computations"]
    assert [i["id"] for i in add["instructions"]] == [(1 << 32) + k for k in (1, 2, 3)]
    assert (add["id"], entry["id"], message["entry_computation_id"]) == (1, 2, 2)
    root = entry["instructions"][2]
    assert root["operand_ids"] == [(2 << 32) + 1, (2 << 32) + 2]
    assert root["called_computation_ids"] == [1]
    assert entry["root_id"] == root["id"] == (2 << 32) + 3
    assert entry["program_shape"]["parameter_names"] == ["a"]


def test_unknown_and_unmodelled_fields_survive():
    message = message_of()
    message[UNKNOWN] = STRANGE
    message["device_type"] = "tpu"
    computation = message["computations"][0]
    computation[UNKNOWN] = STRANGE
    last = computation["instructions"][2]
    last[UNKNOWN] = STRANGE
    last["delta"] = 7
    last["metadata"] |= {UNKNOWN: STRANGE, "metadata_payload": {"id": 3}}
    module = read(message)
    assert module.entry.root.metadata == {"op_name": "sum"}
    assert decode("HloModuleProto", serialize_hlo_module(module)) == message
    copy = module.clone()
    assert decode("HloModuleProto", serialize_hlo_module(copy)) == message


def test_names_become_fit_for_text_and_unique():
    message = message_of()
    for instruction, name in zip(message["computations"][0]["instructions"], ("a b", "3", "a b")):
        instruction["name"] = name
    module = read(message)
    assert [i.name for i in module.entry.instructions] == ["a_b", "_3", "a_b.1"]
    parse_module(to_text(module))


def test_a_schedule_orders_instructions():
    text = TEXT.replace("m,", "m, is_scheduled=true,").replace("negate", "negate")
    message = message_of(text.replace("  b = ", "  x = f32[4]{0} sine(a)\n  b = "))
    computation = message["computations"][0]
    ids = [i["id"] for i in computation["instructions"]]
    order = [ids[0], ids[2], ids[1], ids[3]]
    message["schedule"] = {"sequences": {1: {"instruction_ids": order}}}
    module = read(message)
    assert [i.name for i in module.entry.instructions] == ["a", "b", "x", "c"]
    assert module.header["is_scheduled"]
    for wrong in (order[::-1], order[1:], [*order, order[0]], [0]):
        message["schedule"] = {"sequences": {1: {"instruction_ids": wrong}}}
        with pytest.raises(HloParseError, match="schedule"):
            read(message)


def change(path, value):
    message = message_of()
    holder = message
    for key in path[:-1]:
        holder = holder[key]
    if value is None:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return message


BODY = ("computations", 0)
ROOT = (*BODY, "instructions", 2)


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ((*ROOT, "opcode"), "addd", "instruction 'c': unknown opcode 'addd'; did you mean 'add'?"),
        ((*ROOT, "shape"), None, "instruction 'c': it has no shape"),
        ((*ROOT, "operand_ids"), [7, 8], "instruction 'c': its operand 7 does not stand before it"),
        ((*ROOT, "operand_ids"), [], "instruction 'c': add takes 2 operands (lhs, rhs), given 0"),
        ((*ROOT, "id"), (1 << 32) + 1, "its id 4294967297 is that of 'a'"),
        ((*ROOT, "control_predecessor_ids"), [5], "its control predecessor 5 is not in its"),
        ((*ROOT, "shape", "element_type"), 99, "unknown PrimitiveType 99"),
        ((*ROOT, "shape", "dimensions"), [-4], "negative dimensions [-4]"),
        ((*ROOT, "shape", "layout", "minor_to_major"), [3], "layout [3] is not a permutation"),
        ((*ROOT, "sharding"), {"type": 9}, "unknown OpSharding.Type 9"),
        ((*BODY, "root_id"), 3, "computation 'e' has no instruction 3, which is its root"),
        ((*BODY, "instructions", 0, "parameter_number"), 1, "parameters with the numbers [1]"),
        (("entry_computation_id",), 5, "the module has no computation 5, which is its entry"),
        (("host_program_shape", "parameters"), [], "host_program_shape differs from the entry"),
        (("host_program_shape", "result"), None, "a program shape has no result"),
        (("computations",), [], "the module has no computation 1"),
    ],
)
def test_what_is_no_module(path, value, fault):
    with pytest.raises(InvalidArgumentError) as error:
        read(change(path, value))
    assert fault in error.value.message


def test_calls_of_nothing_and_of_oneself():
    text = (
        "HloModule m\nf {\n x = f32[] parameter(0)\n ROOT y = f32[] negate(x)\n}\n"
        "ENTRY e {\n a = f32[] parameter(0)\n ROOT r = f32[] call(a), to_apply=f\n}"
    )
    message = message_of(text)
    call = message["computations"][1]["instructions"][1]
    call["called_computation_ids"] = [9]
    with pytest.raises(HloParseError, match="instruction 'r': it calls computation 9, which"):
        read(message)
    call["called_computation_ids"] = [2]
    with pytest.raises(InvalidArgumentError, match="recursive call: e -> e"):
        read(message)


def test_attributes_without_a_proto_form_are_named():
    module = parse_module(TEXT)
    module.entry.root.attrs["colour"] = 3
    with pytest.raises(UnimplementedError, match="add 'c': colour=3 has no proto form"):
        serialize_hlo_module(module)


def test_a_missing_attribute_is_named():
    gte = parse_module(
        "HloModule m\nENTRY e {\n a = (f32[]) parameter(0)\n"
        " ROOT g = f32[] get-tuple-element(a), index=0\n}"
    )
    del gte.entry.root.attrs["index"]
    with pytest.raises(InvalidArgumentError, match="get-tuple-element 'g': attribute index is"):
        serialize_hlo_module(gte)


# --- Shapes, shardings, literals ---------------------------------------------------------------


def test_shape_bytes_are_jaxlibs():
    shape = parse_shape("f32[2]{0}")
    data = bytes.fromhex("100b 1a0102 2a060a0100800101 320100")
    assert shape_to_bytes(shape) == data and shape_from_bytes(data) == shape


@pytest.mark.parametrize(
    "text",
    [
        "pred[]",
        "f32[4,<=8]{0,1}",
        "bf16[?,2]{1,0}",
        "(s4[3]{0:E(4)}, (), token[], (u8[0]{0}))",
        "f32[4,4]{1,0:T(8,128)(2,*)L(4)S(5)SC(0:2,3)M(6)}",
        "f32[4,4]{1,0:D(D,C+~)#(u32)*(u8)}",
        "b(f32[4]{0})",
        "opaque[]",
    ],
)
def test_shapes_round_trip(text):
    shape = parse_shape(text)
    assert shape_from_bytes(shape_to_bytes(shape)) == shape


@pytest.mark.parametrize(
    "text",
    [
        "{replicated}",
        "{manual}",
        "{unreduced}",
        "{maximal device=3}",
        "{devices=[2,2]0,1,2,3}",
        "{devices=[2,2]<=[4] shard_like 3}",
        "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
        "{devices=[1,2,2,2]<=[8] last_tile_dims={manual, replicated}}",
        "{mesh['a'=2,'b'=4,'c'=2], [{'a', ?}, {'b':(1)2}], replicated={'c'}}",
        "{mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)), [{'a'}, {}], unreduced={'b'}}",
        "{mesh['a'=2,'b'=2], device_ids=(0,2,1,3), [{}, {}], manual={'b'}}",
        "{maximal_mesh[device_id=1]}",
        '{{replicated}, {devices=[2]<=[2] metadata={op_name="x" source_line=3}}}',
        '{replicated metadata={{op_name="x"}, {op_name="y"}}}',
        "{}",
    ],
)
def test_shardings_round_trip(text):
    sharding = parse_sharding(text)
    again = sharding_from_bytes(sharding_to_bytes(sharding))
    assert again == sharding and str(again) == str(sharding)


def test_sharding_bytes_are_jaxlibs():
    tiled = bytes.fromhex("0803 1a020201 22020001")
    assert sharding_from_bytes(tiled) == parse_sharding("{devices=[2,1]0,1}")
    assert sharding_to_bytes(parse_sharding("{devices=[2,1]0,1}")) == tiled
    assert sharding_to_bytes(parse_sharding("{devices=[2,2]<=[4]}")) == bytes.fromhex(
        "0803 1a020202 4a0104 520100"
    )


@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=str)
def test_literals_of_every_type_round_trip(dtype):
    rng = np.random.default_rng(3)
    raw = rng.integers(0, 256, 24 * dtype.byte_size, dtype=np.uint8)
    if dtype.is_pred:
        raw &= 1
    if dtype.bits < 8:
        raw = raw & np.uint8((1 << dtype.bits) - 1)
    flat = raw.astype(dtype.numpy) if dtype.bits < 8 and dtype.is_integer else raw.view(dtype.numpy)
    for dims, order in (((24,), (0,)), ((2, 3, 4), (0, 2, 1)), ((2, 0, 5), (2, 1, 0))):
        values = flat[: int(np.prod(dims))].reshape(dims)
        literal = Literal(Shape(dtype, dims, Layout(order)), values)
        assert literal_from_bytes(literal_to_bytes(literal)) == literal
    scalar = Literal(Shape(dtype), flat[5])
    assert literal_from_bytes(literal_to_bytes(scalar)) == scalar


def test_tuple_literals_round_trip():
    one = Literal.of(np.float32(2))
    nested = tuple_literal(one, tuple_literal(Literal.of(np.arange(3)), one), tuple_literal())
    assert literal_from_bytes(literal_to_bytes(nested)) == nested


def test_literals_of_the_wrong_size():
    data = encode("LiteralProto", {"shape": shape_to_bytes(parse_shape("f32[3]")), "f32s": [1, 2]})
    with pytest.raises(HloParseError, match=r"shape f32\[3\] has 2 elements in field f32s"):
        literal_from_bytes(data)
    huge = shape_to_bytes(Shape(dt.F32, (1 << 40, 1 << 40)))
    with pytest.raises(HloParseError, match="has 0 elements"):
        literal_from_bytes(encode("LiteralProto", {"shape": huge}))


def test_large_modules_are_fast():
    body = "".join(
        f"  x{i} = f32[64,64]{{1,0}} add(x{i - 1}, x{max(0, i - 3)}), "
        f'metadata={{op_name="jit(f)/layer_{i}" stack_frame_id={i % 50}}}\n'
        for i in range(1, 5000)
    )
    text = f"HloModule m\nENTRY e {{\n  x0 = f32[64,64]{{1,0}} parameter(0)\n{body}}}\n"
    module = parse_module(text)
    start = time.process_time()
    parse_hlo_module_proto(serialize_hlo_module(module))
    assert time.process_time() - start < 3
