"""Compile options, shardings, shapes and modules as the protos jaxlib reads and writes."""

import pickle
import random

import jaxlib.xla_client as theirs
import numpy as np
import pytest

from haloc import xla_client
from haloc.errors import (
    HloError,
    HloParseError,
    InternalError,
    InvalidArgumentError,
    UnimplementedError,
)
from haloc.formats.proto import UNKNOWN, decode, encode
from haloc.runtime.compile_options import check_supported
from tests.formats.hlo_proto.test_fuzz import mutated


def changed_options(module):
    options = module.CompileOptions()
    options.num_replicas = 2
    options.parameter_is_tupled_arguments = True
    options.profile_version = 7
    options.device_assignment = module.DeviceAssignment.create(np.array([[0, 1], [2, 3]]))
    options.argument_layouts = [module.Shape.array_shape(np.dtype("float32"), (2, 3))]
    options.env_option_overrides = [
        *[("a", 3), ("b", True), ("c", "x"), ("d", 1.5), ("e", False), ("f", 0), ("g", "")],
    ]
    build = options.executable_build_options
    build.result_layout = module.Shape.array_shape(np.dtype("int8"), (4,))
    build.fdo_profile = b"\xff\x00"
    build.use_spmd_partitioning = True
    build.optimization_level = 29
    build.exec_time_optimization_effort = 0.3
    build.allow_spmd_sharding_propagation_to_output = [True, False]
    build.auto_spmd_partitioning_mesh_shape = [2, 1]
    build.debug_options.xla_dump_to = "/tmp/x"
    build.debug_options.xla_disable_hlo_passes = "dce,cse"
    return options


@pytest.mark.parametrize("make", [lambda m: m.CompileOptions(), changed_options])
def test_jaxlibs_options_are_written_back_byte_for_byte(make):
    data = make(theirs).SerializeAsString()
    ours = xla_client.CompileOptions.ParseFromString(data)
    assert ours.SerializeAsString() == data
    assert pickle.loads(pickle.dumps(ours)).SerializeAsString() == data


def test_every_attribute_is_read():
    read = xla_client.CompileOptions.ParseFromString(changed_options(theirs).SerializeAsString())
    given = changed_options(xla_client)
    for name in ("num_replicas", "parameter_is_tupled_arguments", "profile_version"):
        assert getattr(read, name) == getattr(given, name)
    assert sorted(read.env_option_overrides) == sorted(given.env_option_overrides)
    assert [str(s) for s in read.argument_layouts] == ["f32[2,3]{1,0}"]
    assert np.array_equal(read.device_assignment.ids, [[0, 1], [2, 3]])
    build = read.executable_build_options
    assert str(build.result_layout) == "s8[4]{0}" and build.fdo_profile == b"\xff\x00"
    assert build.exec_time_optimization_effort == 0.3 and build.optimization_level == 29
    assert build.allow_spmd_sharding_propagation_to_output == [True, False]
    assert build.debug_options.xla_disable_hlo_passes == "dce,cse"
    assert build.debug_options == given.executable_build_options.debug_options


@pytest.mark.parametrize("make", [lambda m: m.CompileOptions(), changed_options])
def test_jaxlib_reads_ours(make):
    read = theirs.CompileOptions.ParseFromString(make(xla_client).SerializeAsString())
    wanted = make(theirs)
    assert read.num_replicas == wanted.num_replicas
    assert sorted(read.env_option_overrides) == sorted(wanted.env_option_overrides)
    assert str(read.argument_layouts) == str(wanted.argument_layouts)
    ours = decode("CompileOptionsProto", make(xla_client).SerializeAsString())
    whole = decode("CompileOptionsProto", wanted.SerializeAsString())
    assert {k: v for k, v in ours.items() if k != "executable_build_options"} == {
        k: v for k, v in whole.items() if k != "executable_build_options"
    }
    build, their_build = ours["executable_build_options"], whole["executable_build_options"]
    debug, their_debug = build.pop("debug_options"), their_build.pop("debug_options")
    assert build == their_build
    # The other flags have the defaults of jaxlib 0.7.1, as `tests/api` compares.
    acted_on = xla_client.DebugOptions().field_values()
    assert {k: v for k, v in debug.items() if k in acted_on and their_debug.get(k, v) != v} == {}


def test_no_options_at_all():
    options = xla_client.CompileOptions.ParseFromString(b"")
    assert options.num_replicas == 0
    wanted = theirs.CompileOptions.ParseFromString(b"").SerializeAsString()
    assert options.SerializeAsString() == wanted


def test_a_change_after_reading_is_written():
    options = xla_client.CompileOptions.ParseFromString(b"")
    options.executable_build_options.debug_options.xla_backend_optimization_level = 1
    again = xla_client.CompileOptions.ParseFromString(options.SerializeAsString())
    assert again.executable_build_options.debug_options.xla_backend_optimization_level == 1


def test_fields_of_other_versions_survive():
    strange = b"\xa2\x9c\x01\x02hi"
    message = {
        "compiler_variant": "v",
        "executable_build_options": {
            "slice_size": 3,
            "debug_options": {"xla_gpu_ftz": True, UNKNOWN: strange},
            UNKNOWN: strange,
        },
        UNKNOWN: strange,
    }
    data = encode("CompileOptionsProto", message)
    assert xla_client.CompileOptions.ParseFromString(data).SerializeAsString() == data


def test_options_that_haloc_does_not_act_on_are_refused_when_compiling():
    options = theirs.CompileOptions()
    read = xla_client.CompileOptions.ParseFromString(options.SerializeAsString())
    check_supported(read)
    options.executable_build_options.debug_options.xla_gpu_enable_fast_min_max = True
    read = xla_client.CompileOptions.ParseFromString(options.SerializeAsString())
    with pytest.raises(UnimplementedError, match="xla_gpu_enable_fast_min_max=True"):
        check_supported(read)


def test_broken_options():
    for data in (b"\x1a\x05a", b"\x3a\x03\x0a\x01a", b"\x1a\x04\x4a\x02\x10\x02"):
        with pytest.raises(HloParseError):
            xla_client.CompileOptions.ParseFromString(data)
    options = xla_client.CompileOptions()
    options.env_option_overrides = [("a", None)]
    with pytest.raises(InvalidArgumentError, match="a=None is NoneType"):
        options.SerializeAsString()
    options.env_option_overrides = []
    options.profile_version = 1 << 70
    with pytest.raises(InvalidArgumentError, match="profile_version"):
        options.SerializeAsString()


@pytest.mark.parametrize("ids", [[[0]], [[0, 1], [2, 3]], [[5], [6], [300]]])
def test_device_assignment_bytes_are_jaxlibs(ids):
    wanted = theirs.DeviceAssignment.create(np.array(ids)).serialize()
    assert xla_client.DeviceAssignment.create(np.array(ids)).serialize() == wanted


SHARDINGS = [
    "{replicated}",
    "{manual}",
    "{maximal device=1}",
    "{devices=[2,2]<=[4]}",
    "{devices=[2,1]0,1}",
    "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
    "{devices=[1,2,2,2]<=[8] last_tile_dims={manual, replicated}}",
    "{devices=[2,2]<=[4] shard_as 7}",
    "{{replicated}, {devices=[2]<=[2]}}",
]


@pytest.mark.parametrize("text", SHARDINGS)
def test_shardings_are_jaxlibs(text):
    wanted = theirs.HloSharding.from_string(text)
    ours = xla_client.HloSharding.from_string(text)
    data = wanted.to_proto().SerializeToString()
    assert ours.to_proto().SerializeToString() == data
    proto = xla_client.OpSharding()
    proto.ParseFromString(data)
    assert proto.SerializeToString() == proto.clone().SerializeToString() == data
    assert pickle.loads(pickle.dumps(proto)).SerializeToString() == data
    assert xla_client.HloSharding.from_proto(proto) == ours
    assert repr(ours) == repr(wanted) and pickle.loads(pickle.dumps(ours)) == ours
    if not ours.tuple_elements():  # XLA calls a tuple tiled.
        assert ours.is_tiled() == wanted.is_tiled()
    for name in ("is_replicated", "is_manual", "is_unknown", "is_maximal"):
        assert getattr(ours, name)() == getattr(wanted, name)(), name
    assert int(proto.type) == int(wanted.to_proto().type)
    assert list(map(int, proto.last_tile_dims)) == list(map(int, wanted.to_proto().last_tile_dims))
    if ours.is_tiled():
        for name in ("num_devices", "num_dimensions", "replicate_on_last_tile_dim"):
            assert getattr(ours, name)() == getattr(wanted, name)(), name
        for name in ("tile_assignment_dimensions", "tile_assignment_devices", "subgroup_types"):
            found, given = getattr(ours, name)(), getattr(wanted, name)()
            assert list(map(int, found)) == list(map(int, given)), name


def test_iota_tiles():
    for arguments in (((2, 2),), ((2, 1, 2), (2, 2), (1, 0)), ((4, 2), (2, 2, 2), (1, 0, 2))):
        wanted = theirs.HloSharding.iota_tile(*arguments)
        ours = xla_client.HloSharding.iota_tile(*arguments)
        assert repr(ours) == repr(wanted)
    with pytest.raises(InvalidArgumentError, match="`dims` should not be empty"):
        xla_client.HloSharding.iota_tile(())
    kinds = [xla_client.OpSharding.Type.MANUAL]
    assert repr(xla_client.HloSharding.iota_tile((2, 2), subgroup_types=kinds)) == repr(
        theirs.HloSharding.iota_tile((2, 2), subgroup_types=[theirs.OpSharding.Type.MANUAL])
    )


def test_a_tile_of_a_shape():
    sharding = xla_client.HloSharding.from_string("{devices=[2,2]<=[4]}")
    shape = xla_client.Shape.array_shape(np.dtype("float32"), (5, 8))
    assert str(sharding.tile(shape)) == "f32[3,4]{1,0}"


def test_broken_shardings():
    proto = xla_client.OpSharding()
    for data in (b"\x08\x63", b"\x1a\x05a", b"\x2a\x02\x08\x63"):
        with pytest.raises(HloError):
            proto.ParseFromString(data)
    proto.type = xla_client.OpSharding.Type.OTHER
    proto.tile_assignment_dimensions = [2, 2]
    with pytest.raises(InvalidArgumentError):
        xla_client.HloSharding.from_proto(proto)


def test_modules_and_shapes():
    text = "HloModule m\nENTRY e {\n a = f32[2]{0} parameter(0)\n ROOT r = f32[2]{0} negate(a)\n}"
    data = xla_client.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    module = xla_client.HloModule.from_serialized_hlo_module_proto(data)
    assert module.as_serialized_hlo_module_proto() == data and module.name == "m"
    assert "negate" in theirs.XlaComputation(data).as_hlo_text()
    shape = xla_client.Shape("f32[2]")
    assert shape.to_serialized_proto() == bytes.fromhex("100b1a01022a060a01008001013201 00")


def test_mutated_options_and_shardings_end_in_haloc_errors():
    options = changed_options(theirs).SerializeAsString()
    sharding = theirs.HloSharding.from_string(SHARDINGS[6]).to_proto().SerializeToString()
    for seed in range(400):
        rng = random.Random(seed)
        try:
            read = xla_client.CompileOptions.ParseFromString(mutated(options, rng))
            read.SerializeAsString()
        except HloError as error:
            assert not isinstance(error, InternalError), seed
        try:
            proto = xla_client.OpSharding()
            proto.ParseFromString(mutated(sharding, rng))
            repr(xla_client.HloSharding.from_proto(proto).to_proto())
        except HloError as error:
            assert not isinstance(error, InternalError), seed
