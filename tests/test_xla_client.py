"""The module's own names, clients, devices and shapes; options as `xla_bridge` makes them."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

from haloc import xla_bridge, xla_client
from haloc.errors import NotFoundError, UnimplementedError


def test_every_exported_name_exists() -> None:
    assert [n for n in xla_client.__all__ if not hasattr(xla_client, n)] == []
    assert len(set(xla_client.__all__)) == len(xla_client.__all__)


def test_importing_it_loads_no_compiler() -> None:
    script = "import sys; from haloc import xla_client; sys.exit('llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


class TestClient:
    def test_what_it_says(self) -> None:
        client = xla_client.make_cpu_client()
        assert client.platform == "cpu"
        assert client.platform_version.startswith("haloc ")
        assert client.runtime_type == "haloc"
        assert (client.device_count(), client.local_device_count()) == (1, 1)
        assert (client.process_index(), client.host_id(), client.task_id()) == (0, 0, 0)
        assert client.devices()[0] is client.local_devices()[0]
        assert str(client.get_default_layout(np.dtype("f4"), (2, 3), client.devices()[0])) == (
            "{1,0}"
        )

    def test_device_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert xla_client.make_cpu_client(num_devices=3).device_count() == 3
        monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
        assert xla_client.make_cpu_client().device_count() == 4
        assert xla_client.make_cpu_client(num_devices=2).device_count() == 2

    def test_ids_of_another_node(self) -> None:
        client = xla_client.make_cpu_client(node_id=1, num_devices=2)
        assert [d.id for d in client.devices()] == [2048, 2049]
        assert [d.local_hardware_id for d in client.devices()] == [0, 1]
        assert str(client.devices()[0]) == "TFRT_CPU_2048"
        assert client.process_index() == 1
        assert client.device_from_local_hardware_id(1).id == 2049

    @pytest.mark.parametrize(
        ("name", "value"), [("num_nodes", 2), ("collectives", object()), ("distributed_client", 1)]
    )
    def test_several_processes_are_refused_by_name(self, name: str, value: object) -> None:
        with pytest.raises(UnimplementedError, match=name):
            xla_client.make_cpu_client(**{name: value})


class TestDevice:
    def test_what_it_says(self) -> None:
        device = xla_client.make_cpu_client(num_devices=2).devices()[1]
        assert (repr(device), str(device)) == ("CpuDevice(id=1)", "TFRT_CPU_1")
        assert (device.platform, device.device_kind) == ("cpu", "cpu")
        assert (device.host_id, device.process_index, device.task_id) == (0, 0, 0)
        assert device.memory_stats()["bytes_in_use"] == 0

    def test_memories(self) -> None:
        device = xla_client.make_cpu_client(num_devices=2).devices()[1]
        memories = device.addressable_memories()
        assert [m.kind for m in memories] == ["device", "pinned_host", "unpinned_host"]
        assert [repr(m) for m in memories] == ["CPU_DEVICE_3", "PINNED_HOST_4", "UNPINNED_HOST_5"]
        assert device.memory("pinned_host") is memories[1]
        assert device.default_memory() is memories[0]
        assert memories[0].addressable_by_devices() == [device]

    def test_device_list(self) -> None:
        devices = tuple(xla_client.make_cpu_client(num_devices=3).devices())
        listed = xla_client.DeviceList(devices)
        assert len(listed) == 3
        assert listed[1:] == devices[1:]
        assert listed == xla_client.DeviceList(devices)
        assert hash(listed) == hash(xla_client.DeviceList(devices))
        assert str(listed) == repr(devices)
        assert listed.memory_kinds == ("device", "pinned_host", "unpinned_host")
        assert listed.process_indices == {0}

    def test_a_device_list_is_taken_for_compilation(self) -> None:
        client = xla_client.make_cpu_client()
        listed = xla_client.DeviceList(tuple(client.devices()))
        text = "HloModule m\nENTRY e { ROOT c = f32[] constant(1) }"
        assert float(client.compile_and_load(text, listed).execute([])[0]) == 1


class TestShape:
    def test_from_text(self) -> None:
        shape = xla_client.Shape("f32[2,3]")
        assert str(shape) == "f32[2,3]{1,0}"
        assert (shape.dimensions(), shape.rank()) == ((2, 3), 2)
        assert shape.layout() == xla_client.Layout((1, 0))
        assert shape.numpy_dtype() == np.float32
        assert shape.xla_element_type() is xla_client.PrimitiveType.F32
        assert shape == xla_client.Shape("f32[2,3]{1,0}")
        assert shape != xla_client.Shape("f32[2,3]{0,1}")

    def test_tuples(self) -> None:
        shape = xla_client.Shape.tuple_shape(
            [xla_client.Shape("s8[4]"), xla_client.Shape.scalar_shape(np.dtype("f8"))]
        )
        assert str(shape) == "(s8[4]{0}, f64[])"
        assert shape.is_tuple()
        assert [str(s) for s in shape.tuple_shapes()] == ["s8[4]{0}", "f64[]"]
        assert shape.leaf_count() == 2

    def test_array_shape(self) -> None:
        shape = xla_client.Shape.array_shape(xla_client.PrimitiveType.BF16, (2, 3), (0, 1))
        assert str(shape) == "bf16[2,3]{0,1}"

    def test_primitive_types_have_xlas_numbers(self) -> None:
        types = xla_client.PrimitiveType
        assert (types.PRED, types.F32, types.BF16, types.TUPLE) == (1, 11, 16, 13)
        assert (types.OPAQUE_TYPE, types.F8E4M3FN, types.F4E2M1FN) == (14, 20, 32)
        assert xla_client.dtype_to_etype(np.dtype("c16")) is types.C128


class TestGetCompileOptions:
    def test_defaults(self) -> None:
        options = xla_bridge.get_compile_options(1, 1)
        build = options.executable_build_options
        assert build.use_spmd_partitioning
        assert not build.use_shardy_partitioner
        assert options.profile_version == -1
        assert options.env_option_overrides == []
        assert build.debug_options.xla_detailed_logging
        client = xla_client.make_interpreter_client()
        text = "HloModule m\nENTRY e { ROOT c = f32[] constant(1) }"
        client.compile_and_load(text, client.devices(), options)

    def test_overrides(self) -> None:
        options = xla_bridge.get_compile_options(
            1,
            1,
            env_options_overrides={
                "exec_time_optimization_effort": 0.5,
                "xla_backend_optimization_level": "1",
            },
        )
        assert options.executable_build_options.exec_time_optimization_effort == 0.5
        assert options.env_option_overrides == [("xla_backend_optimization_level", "1")]

    def test_assignments(self) -> None:
        device = xla_client.make_cpu_client().devices()[0]
        options = xla_bridge.get_compile_options(1, 1, device_assignment=[device])
        assert options.device_assignment is not None
        assert options.device_assignment.ids.tolist() == [[0]]

    @pytest.mark.parametrize(
        ("counts", "assignment", "message"),
        [
            (
                (3, 1),
                [[0], [1]],
                "device_assignment does not match num_replicas: [[0]\n [1]] vs 3.",
            ),
            ((2, 3), [[0, 1], [2, 3]], "does not match num_partitions: [[0 1]\n [2 3]] vs 3."),
            ((2, 3), [0, 1], "device_assignment does not match num_replicas"),
        ],
    )
    def test_assignments_must_fit(
        self, counts: tuple[int, int], assignment: list, message: str
    ) -> None:
        with pytest.raises(ValueError, match=re.escape(message)):
            xla_bridge.get_compile_options(*counts, device_assignment=assignment)

    def test_one_dimension_is_of_one_partition(self) -> None:
        with pytest.raises(ValueError, match="does not match num_replicas"):
            xla_bridge.get_compile_options(1, 2, device_assignment=[0, 1])

    def test_meshes_are_for_automatic_partitioning(self) -> None:
        mesh = {"auto_spmd_partitioning_mesh_shape": [2], "auto_spmd_partitioning_mesh_ids": [0, 1]}
        build = xla_bridge.get_compile_options(1, 1, **mesh).executable_build_options
        assert build.auto_spmd_partitioning_mesh_shape == []
        options = xla_bridge.get_compile_options(1, 1, use_auto_spmd_partitioning=True, **mesh)
        build = options.executable_build_options
        assert build.auto_spmd_partitioning_mesh_shape == [2]
        assert build.auto_spmd_partitioning_mesh_ids == [0, 1]

    def test_a_profile_is_bytes(self) -> None:
        options = xla_bridge.get_compile_options(1, 1, fdo_profile=b"abc", detailed_logging=False)
        assert options.executable_build_options.fdo_profile == b"abc"
        assert not options.executable_build_options.debug_options.xla_detailed_logging

    def test_the_path_that_jax_had(self) -> None:
        from haloc.lib import xla_bridge as bridge  # noqa: PLC0415
        from haloc.lib import xla_client as client  # noqa: PLC0415

        assert bridge.get_compile_options is xla_bridge.get_compile_options
        assert client.make_cpu_client is xla_client.make_cpu_client

    def test_backends(self) -> None:
        assert xla_bridge.get_backend() is xla_bridge.get_backend("cpu")
        assert xla_bridge.get_backend("interpreter").platform == "interpreter"
        with pytest.raises(NotFoundError, match="no backend named 'tpu'; there are: cpu"):
            xla_bridge.get_backend("tpu")
