"""CompileOptions, ExecutableBuildOptions, DebugOptions: defaults, checks, what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.xla_client import (
    CompileOptions,
    DeviceAssignment,
    ExecutableBuildOptions,
    Shape,
    make_cpu_client,
    make_interpreter_client,
)
from tests.runtime.programs import ADD


def load(options: CompileOptions, num_devices: int = 1) -> Any:
    client = make_interpreter_client(num_devices=num_devices)
    return client.compile_and_load(ADD, client.devices()[:1], options)


def test_defaults() -> None:
    options = CompileOptions()
    assert options.argument_layouts is None
    assert (options.num_replicas, options.num_partitions) == (1, 1)
    assert options.device_assignment is None
    assert options.env_option_overrides == []
    assert options.profile_version == 0
    assert not options.compile_portable_executable
    assert not options.parameter_is_tupled_arguments
    build = options.executable_build_options
    assert build.fdo_profile == b""
    assert build.result_layout is None
    assert not build.use_spmd_partitioning
    assert build.auto_spmd_partitioning_mesh_shape == []
    debug = build.debug_options
    assert debug.xla_backend_optimization_level == 3
    assert debug.xla_cpu_fast_math_honor_nans is True
    assert debug.xla_dump_max_hlo_modules == -1
    assert debug.xla_gpu_cuda_data_dir == "./cuda_sdk_lib"


def test_counts_are_the_build_options() -> None:
    options = CompileOptions()
    options.num_replicas = 2
    assert options.executable_build_options.num_replicas == 2
    options.tuple_arguments = True
    assert options.parameter_is_tupled_arguments


def test_build_options_can_be_assigned() -> None:
    build = ExecutableBuildOptions()
    build.debug_options.xla_backend_optimization_level = 2
    options = CompileOptions()
    options.executable_build_options = build
    assert options.flags().xla_backend_optimization_level == 2
    assert repr(build).startswith("ExecutableBuildOptions{device_ordinal=-1, result_layout=nullopt")


def test_overrides_win_over_debug_options() -> None:
    options = CompileOptions()
    options.executable_build_options.debug_options.xla_backend_optimization_level = 2
    options.env_option_overrides = [("xla_backend_optimization_level", "1")]
    assert options.flags().xla_backend_optimization_level == 1


@pytest.mark.parametrize("name", ["xla_dump_hlo_as_html", "xla_cpu_use_thunk_runtime_x"])
def test_overrides_that_haloc_does_not_act_on(name: str) -> None:
    options = CompileOptions()
    options.env_option_overrides = [(name, True)]
    known = name == "xla_dump_hlo_as_html"
    wanted = UnimplementedError if known else InvalidArgumentError
    with pytest.raises(wanted, match=name):
        options.flags()


def test_overrides_that_are_defaults_are_taken() -> None:
    options = CompileOptions()
    options.env_option_overrides = [("xla_cpu_multi_thread_eigen", True)]
    load(options)
    options.env_option_overrides = [("xla_cpu_multi_thread_eigen", False)]
    with pytest.raises(UnimplementedError, match="xla_cpu_multi_thread_eigen=False: haloc does"):
        load(options)


def test_the_device_count_of_xla_flags_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the client that acts on it, when it is made."""
    debug = ExecutableBuildOptions().debug_options
    assert debug.xla_force_host_platform_device_count == 1
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
    debug = ExecutableBuildOptions().debug_options
    assert debug.xla_force_host_platform_device_count == 4


def test_debug_options_start_from_xla_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
    debug = CompileOptions().executable_build_options.debug_options
    assert debug.xla_backend_optimization_level == 0


def test_pickle() -> None:
    options = CompileOptions()
    options.num_partitions = 3
    options.executable_build_options.debug_options.xla_dump_to = "x"
    copy = pickle.loads(pickle.dumps(options))
    assert copy.num_partitions == 3
    assert copy.executable_build_options.debug_options.xla_dump_to == "x"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("xla_cpu_enable_xprof_traceme", True),
        ("xla_dump_fusion_visualization", True),
        ("xla_dump_hlo_as_html", True),
        ("xla_dump_hlo_as_url", True),
        ("xla_dump_hlo_snapshots", True),
        ("xla_dump_module_metadata", True),
        ("xla_gpu_cuda_data_dir", "/usr/local/cuda"),
        ("xla_gpu_enable_fast_min_max", True),
        ("xla_test_all_input_layouts", True),
    ],
)
def test_debug_options_not_acted_on_are_refused_by_name(name: str, value: object) -> None:
    debug = ExecutableBuildOptions().debug_options
    with pytest.raises(UnimplementedError, match=f"DebugOptions.{name}="):
        setattr(debug, name, value)
    setattr(debug, name, getattr(debug, name))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("use_auto_spmd_partitioning", True),
        ("exec_time_optimization_effort", 0.5),
        ("memory_fitting_level", 1),
    ],
)
def test_build_options_not_acted_on_are_refused_by_name(name: str, value: object) -> None:
    options = CompileOptions()
    setattr(options.executable_build_options, name, value)
    with pytest.raises(UnimplementedError, match=f"{name}={value}"):
        load(options)


def test_partitions_need_spmd() -> None:
    options = CompileOptions()
    options.num_partitions = 2
    with pytest.raises(InvalidArgumentError, match="num_partitions=2 but SPMD partitioning not"):
        load(options)


def test_a_portable_executable_runs_where_it_is_told() -> None:
    client = make_cpu_client(num_devices=3)
    options = CompileOptions()
    options.compile_portable_executable = True
    executable = client.compile_and_load(ADD, client.devices()[:1], options)
    for device in client.devices():
        array = client.buffer_from_pyval(np.float32([1, 2, 3]), device)
        (result,) = executable.execute([array, array], device=device)
        assert result.device is device
        assert np.asarray(result).tolist() == [2, 4, 6]
    other = make_cpu_client().devices()[0]
    with pytest.raises(InvalidArgumentError, match="the executable is loaded on"):
        executable.execute([array, array], device=other)
    bound = client.compile_and_load(ADD, client.devices()[:1])
    with pytest.raises(InvalidArgumentError, match="the executable is loaded on"):
        bound.execute([array, array], device=client.devices()[1])
    options.num_replicas = 2
    with pytest.raises(InvalidArgumentError, match="2 replicas and 1 partitions: a portable"):
        client.compile_and_load(ADD, client.devices(), options)


def test_fdo_profile_is_refused() -> None:
    options = CompileOptions()
    options.executable_build_options.fdo_profile = b"x"
    with pytest.raises(UnimplementedError, match="fdo_profile"):
        load(options)
    with pytest.raises(UnimplementedError, match="compilation_environments"):
        options.executable_build_options.compilation_environments_from_serialized_proto(b"x")


def test_a_device_assignment_chooses_the_device() -> None:
    options = CompileOptions()
    options.device_assignment = DeviceAssignment.create(np.array([[1]]))
    executable = load(options, num_devices=2)
    assert [d.id for d in executable.local_devices()] == [1]


def test_row_major_layouts_are_accepted() -> None:
    options = CompileOptions()
    options.argument_layouts = [Shape("f32[3]{0}"), Shape("f32[3]")]
    options.executable_build_options.result_layout = Shape("f32[3]{0}")
    load(options)


def test_tupled_arguments() -> None:
    client = make_cpu_client()
    options = CompileOptions()
    options.tuple_arguments = True
    for _ in range(2):  # compiled, and from the cache
        executable = client.compile_and_load(ADD, client.devices(), options)
        array = client.buffer_from_pyval(np.float32([1, 2, 3]))
        assert np.asarray(executable.execute([array, array])[0]).tolist() == [2, 4, 6]
        (module,) = executable.hlo_modules()
        assert "(f32[3], f32[3]) parameter(0)" in module.to_string().replace("{0}", "")
        assert len(executable.get_parameter_layouts()) == 2


def test_a_tuple_is_not_tupled_again() -> None:
    client = make_cpu_client()
    options = CompileOptions()
    options.parameter_is_tupled_arguments = True
    text = """HloModule m, input_output_alias={ {}: (0, {1}, may-alias) }
    ENTRY e {
      p = (f32[2], f32[2]) parameter(0)
      x = f32[2] get-tuple-element(p), index=0
      y = f32[2] get-tuple-element(p), index=1
      ROOT s = f32[2] subtract(x, y)
    }"""
    executable = client.compile_and_load(text, client.devices(), options)
    arrays = [client.buffer_from_pyval(np.float32([k, 9])) for k in (5, 1)]
    assert np.asarray(executable.execute(arrays)[0]).tolist() == [4, 0]
    assert arrays[1].is_deleted() and not arrays[0].is_deleted()


def test_tupled_arguments_may_be_donated() -> None:
    client = make_cpu_client()
    options = CompileOptions()
    options.tuple_arguments = True
    text = """HloModule m, input_output_alias={ {}: (1, {}, may-alias) },
      entry_computation_layout={(f32[2]{0}, f32[2]{0})->f32[2]{0}}
    ENTRY e {
      x = f32[2] parameter(0)
      y = f32[2] parameter(1)
      ROOT s = f32[2] subtract(x, y)
    }"""
    text = text.replace("},\n      entry", "}, entry")
    executable = client.compile_and_load(text, client.devices(), options)
    arrays = [client.buffer_from_pyval(np.float32([k, 9])) for k in (5, 1)]
    assert np.asarray(executable.execute(arrays)[0]).tolist() == [4, 0]
    assert arrays[1].is_deleted() and not arrays[0].is_deleted()


def test_layouts_must_fit() -> None:
    options = CompileOptions()
    options.argument_layouts = [Shape("f32[3]")]
    with pytest.raises(InvalidArgumentError, match="specify 1 argument layouts, but computation"):
        load(options)
    options.argument_layouts = [Shape("f32[3]"), Shape("f32[4]")]
    with pytest.raises(InvalidArgumentError, match=r"argument_layouts\[1\] is f32\[4\]"):
        load(options)


def test_device_assignment_says_itself() -> None:
    assignment = DeviceAssignment.create(np.array([[0, 1], [2, 3]]))
    assert (assignment.replica_count(), assignment.computation_count()) == (2, 2)
    assert assignment.serialize().hex() == "080210021a040a0200021a040a020103"
    assert repr(assignment) == (
        "DeviceAssignment{replica_count=2, computation_count=2, "
        "Computation0{0 2} Computation1{1 3}}"
    )
