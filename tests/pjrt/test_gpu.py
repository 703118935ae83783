"""GPU plugins: options, what to install, and NVIDIA's plugin where it is installed."""

import importlib.util
import os

import numpy as np
import pytest

from haloc import xla_client
from haloc.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from haloc.pjrt.abi.capsule import capsule_at
from haloc.pjrt.client import gpu, registry

HAS_CUDA_PLUGIN = bool(
    importlib.util.find_spec("jax_plugins") and importlib.util.find_spec("jax_plugins.xla_cuda13")
)

H100 = """gpu_device_info {
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: 233472
  threads_per_core_limit: 2048
  core_count: 132
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000
  l2_cache_size: 52428800
  clock_rate_ghz: 1.98
  device_memory_size: 84978434048
  shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 }
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 8 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""

PROGRAM = """HloModule both
ENTRY main {
  x = f32[128,256] parameter(0)
  y = f32[128,256] parameter(1)
  s = f32[128,256] add(x, y)
  t = f32[128,256] tanh(s)
  ROOT r = (f32[128,256], f32[128,256]) tuple(t, s)
}"""

DEFAULTS = {
    "platform_name": "cuda",
    "allocator": "default",
    "abort_collectives_on_failure": False,
    "use_tfrt_gpu_client": False,
}


@pytest.fixture
def environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("XLA_PYTHON_CLIENT_", "XLA_CLIENT_")):
            monkeypatch.delenv(name)

    def set_all(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(f"XLA_{name}", value)

    return set_all


@pytest.mark.parametrize(
    ("variables", "changes"),
    [
        ({}, {}),
        ({"PYTHON_CLIENT_ALLOCATOR": "BFC"}, {"allocator": "bfc"}),
        ({"CLIENT_MEM_FRACTION": ".5"}, {"memory_fraction": 0.5}),
        ({"PYTHON_CLIENT_MEM_FRACTION": ".25"}, {"memory_fraction": 0.25}),
        ({"PYTHON_CLIENT_PREALLOCATE": "false"}, {"preallocate": False}),
        ({"PYTHON_CLIENT_PREALLOCATE": "yes"}, {"preallocate": True}),
        ({"PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB": "3"}, {"collective_memory_size": 3145728}),
        (
            {"PYTHON_CLIENT_ABORT_COLLECTIVES_ON_FAILURE": "1"},
            {"abort_collectives_on_failure": True},
        ),
        ({"PYTHON_CLIENT_USE_TFRT_GPU_CLIENT": "1"}, {"use_tfrt_gpu_client": True}),
    ],
)
def test_options_of_the_environment(environment, variables, changes):
    environment(**variables)
    assert xla_client.generate_pjrt_gpu_plugin_options() == {**DEFAULTS, **changes}


def test_options_that_are_refused(environment):
    environment(PYTHON_CLIENT_ALLOCATOR="foo")
    with pytest.raises(ValueError, match='or "vmm", got "foo"'):
        xla_client.generate_pjrt_gpu_plugin_options()
    environment(PYTHON_CLIENT_ALLOCATOR="bfc", CLIENT_MEM_FRACTION="1")
    environment(PYTHON_CLIENT_MEM_FRACTION="1")
    with pytest.raises(ValueError, match="Remove the latter one, it is deprecated"):
        xla_client.generate_pjrt_gpu_plugin_options()


def test_no_plugin_says_what_to_install(monkeypatch):
    monkeypatch.setattr(registry, "_PLUGINS", {})
    monkeypatch.setattr(gpu, "_folders_of", lambda package: [])
    with pytest.raises(NotFoundError, match="for cuda is installed: pip install jax-cuda13-pjrt"):
        xla_client.make_gpu_client()
    with pytest.raises(NotFoundError, match="pip install jax-rocm7-pjrt"):
        xla_client.make_gpu_client(platform_name="rocm")
    with pytest.raises(InvalidArgumentError, match="platform_name='metal'"):
        xla_client.make_gpu_client(platform_name="metal")


@pytest.fixture(scope="module")
def plugin():
    if not xla_client.pjrt_plugin_loaded("cuda"):
        xla_client.load_pjrt_plugin_dynamically("cuda", gpu.find_gpu_plugin("cuda"))
    plugin = registry._plugin("cuda")
    if not plugin.is_initialized:
        plugin.initialize()
    return plugin


@pytest.mark.nightly
@pytest.mark.skipif(not HAS_CUDA_PLUGIN, reason="pip install jax-cuda13-pjrt==0.10.2")
class TestNvidiasPlugin:
    def test_what_it_says_of_itself(self, plugin):
        assert plugin.api_version >= (0, 112)
        assert plugin.attributes["xla_version"] == 2
        assert plugin.attributes["stablehlo_current_version"] >= [1, 17, 0]
        assert plugin.has_extension("Shardings") and plugin.has_extension("FFI")

    def test_a_client_runs_or_says_that_there_is_no_gpu(self, plugin):
        try:
            client = xla_client.make_gpu_client()
        except FailedPreconditionError as error:
            assert str(error) == "FAILED_PRECONDITION: No visible GPU devices."
            return
        check_client(client)

    def test_compiles_for_gpus_that_are_not_there(self, plugin):
        capsule = capsule_at(plugin.address)
        topology = xla_client.make_c_api_device_topology(
            capsule, target_config=H100, topology="1x1x1"
        )
        assert topology.platform == "cuda"
        (device,) = topology.devices()
        assert device.device_kind == "NVIDIA H100 80GB HBM3"
        assert device.core_count == 132
        executable = device.client.compile(PROGRAM, [device])
        assert [str(s) for s in executable.output_shapes()] == ["f32[128,256]{1,0}"] * 2
        assert executable.get_compiled_memory_stats().argument_size_in_bytes == 2 * 128 * 256 * 4
        assert len(executable.serialize()) > 1000
        form, _ = executable.optimized_program()
        assert form == "hlo_with_config"
        fused = executable.hlo_modules()[0].to_string()
        assert "kind=kLoop" in fused and fused.count(" fusion(") == 1

    def test_topologies_that_are_wrong(self, plugin):
        capsule = capsule_at(plugin.address)
        with pytest.raises(xla_client.XlaRuntimeError):
            xla_client.make_c_api_device_topology(capsule, target_config="what", topology="1x1x1")


def check_client(client):
    """A program on the first GPU gives what the host computes."""
    device = client.local_devices()[0]
    values = np.linspace(-2, 2, 128 * 256, dtype=np.float32).reshape(128, 256)
    executable = client.compile_and_load(PROGRAM, [device])
    x = client.buffer_from_pyval(values)
    tanh, total = executable.execute([x, x])
    np.testing.assert_array_equal(total, values + values)
    np.testing.assert_allclose(tanh, np.tanh(values + values), rtol=1e-5, atol=1e-6)
    again = client.deserialize_executable(executable.serialize(), [device])
    np.testing.assert_array_equal(again.execute([x, x])[1], total)
    assert device.memory_stats()["bytes_in_use"] > 0
