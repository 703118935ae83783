"""The wire format: bytes to messages and back, what is unknown, what is broken."""

import time

import jaxlib.xla_client
import numpy as np
import pytest

from haloc.errors import HloParseError, InternalError, InvalidArgumentError
from haloc.formats.proto import UNKNOWN, decode, encode
from haloc.formats.proto.arrays import decode_packed, encode_packed
from haloc.formats.proto.table import message_type


def test_numbers_as_the_wire_format_writes_them():
    message = {"id": 150, "name": "n", "root_id": -1, "is_fusion_computation": True}
    data = encode("HloComputationProto", message)
    assert data == b"\x0a\x01n\x28\x96\x01\x30" + b"\xff" * 9 + b"\x01" + b"\x38\x01"
    assert decode("HloComputationProto", data) == message


def test_fields_stand_in_their_order():
    data = encode("HloComputationProto", {"id": 1, "name": "n"})
    assert data == encode("HloComputationProto", {"name": "n", "id": 1}) == b"\x0a\x01n\x28\x01"


def test_zeros_are_not_written_but_where_presence_counts():
    assert encode("HloInstructionProto", {"id": 0, "name": "", "is_stable": False}) == b""
    assert encode("DebugOptions", {"xla_cpu_enable_fast_math": False}) == b"\x98\x06\x00"
    assert decode("DebugOptions", b"\x98\x06\x00") == {"xla_cpu_enable_fast_math": False}
    assert decode("HloInstructionProto", b"\x98\x02\x00") == {}


def test_minus_zero_is_not_zero():
    data = encode("HloInstructionProto", {"epsilon": -0.0})
    assert data == b"\xc5\x01\x00\x00\x00\x80"
    assert str(decode("HloInstructionProto", data)["epsilon"]) == "-0.0"


def test_repeated_numbers_are_read_packed_or_not():
    one_by_one = b"\x18\x03\x18\x04"
    assert decode("ShapeProto", one_by_one) == {"dimensions": [3, 4]}
    assert encode("ShapeProto", {"dimensions": [3, 4]}) == b"\x1a\x02\x03\x04"
    assert decode("ShapeProto", b"\x1a\x02\x03\x04" + one_by_one) == {"dimensions": [3, 4, 3, 4]}


def test_arrays_are_numpy():
    message = decode(
        "LiteralProto", b"\x42\x08" + np.float32([1.5, -2]).tobytes() + b"\x22\x01\x07"
    )
    assert message["f32s"].dtype == np.float32 and list(message["f32s"]) == [1.5, -2]
    assert message["s32s"].dtype == np.int32 and list(message["s32s"]) == [7]


def test_last_value_of_a_field_counts_and_messages_merge():
    assert decode("HloComputationProto", b"\x28\x01\x28\x02") == {"id": 2}
    twice = b"\x22\x04\x1a\x02p0" + b"\x22\x04\x1a\x02p1"
    wanted = {"program_shape": {"parameter_names": ["p0", "p1"]}}
    assert decode("HloComputationProto", twice) == wanted
    kept = decode("HloComputationProto", twice, frozenset({"ProgramShapeProto"}))
    assert decode("ProgramShapeProto", kept["program_shape"]) == wanted["program_shape"]


def test_maps_are_dicts_sorted_when_written():
    data = encode("FrontendAttributes", {"map": {"b": "2", "a": ""}})
    assert data == b"\x0a\x05\x0a\x01a\x12\x00\x0a\x06\x0a\x01b\x12\x012"
    assert decode("FrontendAttributes", data) == {"map": {"a": "", "b": "2"}}
    assert decode("FrontendAttributes", b"\x0a\x00") == {"map": {"": ""}}


def test_unknown_fields_survive():
    strange = (
        b"\xa0\x9c\x01\x05" + b"\xaa\x9c\x01\x02hi" + b"\xad\x9c\x01abcd" + b"\xa9\x9c\x01abcdefgh"
    )
    group = b"\xa3\x9c\x01\x08\x01\xa4\x9c\x01"
    message = decode("HloModuleProto", strange + b"\x0a\x01m" + group)
    assert message == {"name": "m", UNKNOWN: strange + group}
    assert encode("HloModuleProto", message) == b"\x0a\x01m" + strange + group


def test_a_field_of_another_wire_type_is_unknown():
    assert decode("HloModuleProto", b"\x08\x05") == {UNKNOWN: b"\x08\x05"}


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"\x0a\x05ab", "HloModuleProto: byte 0: name has 5 bytes, but 2 bytes are left"),
        (b"\x0a\x01m\x28\x80", "byte 4: a number ends behind its message"),
        (b"\x28" + b"\xff" * 11, "byte 1: a number of over 10 bytes"),
        (b"\x0a\x02\xff\xfe", "byte 2: text that is not UTF-8 (invalid start byte)"),
        (b"\x00\x01", "field number 0"),
        (b"\x0e", "byte 0: tag 14 is of no field (wire type 6)"),
        (
            b"\x1a\x02\x0a\x05",
            "HloComputationProto: byte 2: name has 5 bytes, but 0 bytes are left",
        ),
        (b"\xa3\x9c\x01\x08\x01", "group 2500 is not closed"),
        (b"\xad\x9c\x01ab", "field 2501 has 4 bytes, but 2 bytes are left"),
    ],
)
def test_broken_messages(data, fault):
    with pytest.raises(HloParseError) as error:
        decode("HloModuleProto", data)
    assert fault in error.value.message


def test_nesting_is_bounded():
    data = b""
    for _ in range(200):
        data = b"\x22" + encode("HloModuleProto", {}) + _sized(data)
    with pytest.raises(HloParseError, match="nested deeper than 100"):
        decode("ShapeProto", data)


def _sized(data: bytes) -> bytes:
    return encode("Payload", {"value": data})[1:] if data else b"\x00"


def test_values_that_do_not_fit():
    with pytest.raises(InvalidArgumentError, match=r"HloModuleProto.id cannot be 'x'"):
        encode("HloModuleProto", {"id": "x"})
    with pytest.raises(InvalidArgumentError, match=r"exponent_bits cannot be 4294967296"):
        encode("HloInstructionProto", {"exponent_bits": 1 << 32})
    with pytest.raises(InternalError, match="no field 'colour'"):
        encode("HloModuleProto", {"colour": 1})
    with pytest.raises(InternalError, match="no table"):
        message_type("NoSuchProto")


@pytest.mark.parametrize("kind", ["int32", "int64", "uint32", "uint64"])
def test_packed_integers_of_any_size(kind):
    dtype = np.dtype(kind)
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    powers = np.array([1 << b for b in range(limits.bits - 1)], dtype)
    edges = np.array([0, 1, 127, 128, limits.min, limits.max], dtype)
    wide = rng.integers(limits.min, limits.max, 40_000, dtype=dtype, endpoint=True)
    for values in (powers, powers - 1, edges, wide, edges[:0], edges[:2]):
        data = encode_packed(values, kind)
        assert np.array_equal(decode_packed(data, kind), values)
        field = {"int32": "s32s", "int64": "s64s", "uint32": "u32s", "uint64": "u64s"}[kind]
        singly = b"".join(
            message_type("LiteralProto").by_name[field].tag + encode_packed(values[i : i + 1], kind)
            for i in range(min(values.size, 200))
        )
        found = decode("LiteralProto", singly).get(field, edges[:0])
        assert np.array_equal(found, values[:200])


@pytest.mark.parametrize("data", [b"\x80", b"\x01\x80", b"\x80" * 10 + b"\x01"])
def test_broken_packed_numbers(data):
    with pytest.raises(HloParseError):
        decode_packed(data, "int32")
    with pytest.raises(HloParseError, match="LiteralProto: byte 2: s32s"):
        decode("LiteralProto", b"\x22" + bytes([len(data)]) + data)


def test_default_compile_options_of_jaxlib_are_known_to_the_last_byte():
    data = jaxlib.xla_client.CompileOptions().SerializeAsString()
    message = decode("CompileOptionsProto", data)
    assert _unknown(message) == b""
    assert encode("CompileOptionsProto", message) == data


def _unknown(message) -> bytes:
    inner = (v for v in message.values() if isinstance(v, dict))
    return message.get(UNKNOWN, b"") + b"".join(map(_unknown, inner))


def test_large_arrays_are_fast():
    values = np.arange(-500_000, 500_000, dtype=np.int32)
    start = time.process_time()
    data = encode("LiteralProto", {"s32s": values})
    assert np.array_equal(decode("LiteralProto", data)["s32s"], values)
    assert time.process_time() - start < 3
