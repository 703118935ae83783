"""HloProto, HloSnapshot, HloModuleProtoWithConfig, and telling them apart."""

import numpy as np
import pytest

from haloc.errors import HloParseError
from haloc.formats.hlo_proto import (
    HloModuleProtoWithConfig,
    HloProto,
    HloSnapshot,
    parse_any_proto,
    proto_kind,
    serialize_hlo_module,
)
from haloc.formats.hlo_text import parse_module
from haloc.formats.proto import UNKNOWN, decode, encode
from haloc.ir.literal import Literal
from tests.formats.compare import differences

TEXT = (
    "HloModule m, entry_computation_layout={(f32[2]{0})->f32[2]{0}}\n"
    "ENTRY e {\n a = f32[2]{0} parameter(0)\n ROOT r = f32[2]{0} negate(a)\n}"
)


def module():
    return parse_module(TEXT)


def test_hlo_proto_keeps_what_the_compiler_wrote():
    assignment = {"buffer_allocations": [{"size": 8, "maybe_live_out": True}]}
    data = HloProto(module(), {"buffer_assignment": assignment, UNKNOWN: b"\x38\x01"}).serialize()
    found = HloProto.parse(data)
    assert found.rest == {"buffer_assignment": assignment, UNKNOWN: b"\x38\x01"}
    assert differences(found.module, module()) == []
    assert found.serialize() == data


def test_snapshot():
    argument = Literal.of(np.float32([1, 2]))
    given = HloSnapshot(HloProto(module()), [argument], Literal.of(np.float32([-1, -2])), "cpu")
    data = given.serialize()
    found = HloSnapshot.parse(data)
    assert found.arguments == [argument] and found.result == given.result
    assert found.execution_platform == "cpu" and found.module.name == "m"
    assert found.serialize() == data
    assert HloSnapshot.parse(HloSnapshot(HloProto(module())).serialize()).result is None


def test_config_is_the_header():
    given = module()
    header = {
        "replica_count": 2,
        "num_partitions": 4,
        "alias_passthrough_params": True,
        "allow_spmd_sharding_propagation_to_output": (True,),
    }
    given.header |= header
    data = HloModuleProtoWithConfig(given, {"seed": 7, "device_type": "cpu"}).serialize()
    found = HloModuleProtoWithConfig.parse(data)
    assert found.config == {"seed": 7, "device_type": "cpu"}
    assert differences(found.module, given) == []
    assert found.serialize() == data
    config = decode("HloModuleProtoWithConfig", data)["config"]
    assert config["replica_count"] == 2 and "entry_computation_layout" in config
    plain = HloModuleProtoWithConfig(module()).serialize()
    config = decode("HloModuleProtoWithConfig", plain)["config"]
    assert config["replica_count"] == config["num_partitions"] == 1
    assert "replica_count" not in HloModuleProtoWithConfig.parse(plain).module.header


CONTAINERS = {
    "HloModuleProto": lambda: serialize_hlo_module(module()),
    "HloProto": lambda: HloProto(module()).serialize(),
    "HloModuleProtoWithConfig": lambda: HloModuleProtoWithConfig(module()).serialize(),
    "HloSnapshot": lambda: HloSnapshot(HloProto(module())).serialize(),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_kinds_are_told_apart(kind):
    data = CONTAINERS[kind]()
    assert proto_kind(data) == kind
    assert parse_any_proto(data).name == "m"
    assert proto_kind(data[:-1]) in ("", kind)


@pytest.mark.parametrize(
    "data", [b"", b"HloModule m", b"\x0a\x01m", b"ML\xefR", encode("HloModuleProto", {"id": 3})]
)
def test_other_data_is_no_proto(data):
    assert proto_kind(data) == ""
    with pytest.raises(HloParseError):
        parse_any_proto(data)


def test_a_container_without_its_module():
    for container in (HloProto, HloSnapshot, HloModuleProtoWithConfig):
        with pytest.raises(HloParseError, match="without its"):
            container.parse(b"")
