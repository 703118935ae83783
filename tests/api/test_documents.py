"""The examples of xla_client's documents run as printed, but for the import line.

Those of `jax.xla_computation` wait for the tracing of Python functions.
"""

from __future__ import annotations

import contextlib
import io
import re

import pytest

from haloc.errors import UnimplementedError

BASIC = '''
from haloc import xla_client
import numpy as np

# Create XLA client and get device
client = xla_client.make_cpu_client()
device = client.local_devices()[0]

# Simple HLO computation (add two arrays)
hlo_text = """
HloModule add_module

ENTRY add_computation {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  ROOT add = f32[3] add(x, y)
}
"""

# Compile the computation
executable = client.compile_and_load(
    hlo_text,
    executable_devices=[device]
)

# Prepare input data
a = np.array([1.0, 2.0, 3.0], dtype=np.float32)
b = np.array([4.0, 5.0, 6.0], dtype=np.float32)

# Create device buffers
buffer_a = client.buffer_from_pyval(a, device=device)
buffer_b = client.buffer_from_pyval(b, device=device)

# Execute the computation
result_buffers = executable.execute([buffer_a, buffer_b])
result = np.array(result_buffers[0])

print(f"Result: {result}")  # [5.0, 7.0, 9.0]
'''

OPTIONS = """
client = xla_client.make_cpu_client()
devices = client.local_devices()

# Create compilation options
compile_options = xla_client.CompileOptions()
compile_options.num_replicas = 1
compile_options.num_partitions = 1

# Build options with debug settings
build_options = xla_client.ExecutableBuildOptions()
build_options.debug_options.xla_backend_optimization_level = 2
build_options.debug_options.xla_dump_hlo_as_text = True
compile_options.executable_build_options = build_options

# Compile with options
executable = client.compile_and_load(
    hlo_text,
    executable_devices=devices[:1],
    compile_options=compile_options
)

# Get compilation info
stats = executable.get_compiled_memory_stats()
print(f"Generated code size: {stats.generated_code_size_in_bytes} bytes")
print(f"Argument size: {stats.argument_size_in_bytes} bytes")
"""

ARRAYS = """
from haloc import xla_client
import numpy as np

client = xla_client.make_cpu_client()
devices = client.local_devices()

# Create array data
data = np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32)

# Place on device
buffer = client.buffer_from_pyval(data, device=devices[0])

# Check array properties
print(f"Array shape: {buffer.shape}")
print(f"Array dtype: {buffer.dtype}")
print(f"On-device size: {buffer.on_device_size_in_bytes()} bytes")

# Wait for completion
buffer.block_until_ready()
print(f"Array is ready: {buffer.is_ready()}")
"""

READINESS = """
from haloc import xla_client
import numpy as np

client = xla_client.make_cpu_client()
devices = client.local_devices()

# Create multiple arrays
arrays = [
    client.buffer_from_pyval(np.array([1.0, 2.0]), devices[0]),
    client.buffer_from_pyval(np.array([3.0, 4.0]), devices[0]),
    client.buffer_from_pyval(np.array([5.0, 6.0]), devices[0])
]

# Wait for all arrays to be ready
xla_client.batched_block_until_ready(arrays)
print("All arrays are ready")

for i, arr in enumerate(arrays):
    print(f"Array {i}: ready={arr.is_ready()}")
"""

SET_UP = """
from haloc import xla_client

# Create a CPU client
cpu_client = xla_client.make_cpu_client(asynchronous=True)
print(f"CPU devices: {cpu_client.local_devices()}")

# Create a GPU client (if available)
try:
    gpu_client = xla_client.make_gpu_client(platform_name='cuda')
    print(f"GPU devices: {gpu_client.local_devices()}")
except Exception as e:
    print(f"GPU not available: {e}")
"""

SHARDED = '''
from haloc import xla_client
import numpy as np

client = xla_client.make_cpu_client()
devices = client.local_devices()

if len(devices) >= 2:
    # HLO for element-wise operation across devices
    hlo_sharded = """
    HloModule sharded_add

    ENTRY computation {
      x = f32[2] parameter(0)
      y = f32[2] parameter(1)
      ROOT add = f32[2] add(x, y)
    }
    """

    # Compile for multiple devices
    executable = client.compile_and_load(
        hlo_sharded,
        executable_devices=devices[:2]
    )

    # Prepare sharded inputs (one shard per device)
    shard1_a = client.buffer_from_pyval(np.array([1.0, 2.0], dtype=np.float32), devices[0])
    shard1_b = client.buffer_from_pyval(np.array([3.0, 4.0], dtype=np.float32), devices[0])

    shard2_a = client.buffer_from_pyval(np.array([5.0, 6.0], dtype=np.float32), devices[1])
    shard2_b = client.buffer_from_pyval(np.array([7.0, 8.0], dtype=np.float32), devices[1])

    # Execute with sharded inputs
    sharded_args = [[shard1_a, shard1_b], [shard2_a, shard2_b]]
    results = executable.execute_sharded(sharded_args)

    # Get results from each device
    output_arrays = results.disassemble_into_single_device_arrays()
    for i, device_output in enumerate(output_arrays):
        result = np.array(device_output[0])
        print(f"Device {i} result: {result}")
'''

SERIALIZATION = """
from haloc import xla_client

client = xla_client.make_cpu_client()
device = client.local_devices()[0]

# Compile executable
executable = client.compile_and_load(hlo_text, [device])

# Serialize for storage/transfer
serialized = client.serialize_executable(executable)
print(f"Serialized size: {len(serialized)} bytes")

# Deserialize executable
restored_executable = client.deserialize_executable(
    serialized,
    executable_devices=[device],
    options=None
)

# Use restored executable
result = restored_executable.execute([buffer_a, buffer_b])
"""

DISTRIBUTED = """
from haloc import xla_client

# Start distributed runtime service on coordinator
service = xla_client.get_distributed_runtime_service(
    address="localhost:1234",
    num_nodes=2,
    heartbeat_timeout=60000
)

# Connect distributed client on each node
dist_client = xla_client.get_distributed_runtime_client(
    address="localhost:1234",
    node_id=0,  # Different for each node
    init_timeout=30000
)

# Create client with distributed support
client = xla_client.make_cpu_client(
    distributed_client=dist_client,
    node_id=0,
    num_nodes=2
)
"""


def run(*scripts: str) -> tuple[str, dict[str, object]]:
    """What the scripts print, run one after the other in one namespace, and that namespace."""
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()) as out:
        for script in scripts:
            exec(script, names)
    return out.getvalue(), names


def test_basic_compilation_and_execution() -> None:
    assert run(BASIC)[0] == "Result: [5. 7. 9.]\n"


def test_compilation_with_options() -> None:
    out, _ = run(BASIC, OPTIONS)
    assert "*** Begin module_" in out
    assert re.search(r"Generated code size: [1-9]\d* bytes\nArgument size: 24 bytes\n", out)


def test_sharded_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(SHARDED)[0] == ""  # one device
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    assert run(SHARDED)[0] == "Device 0 result: [4. 6.]\nDevice 1 result: [12. 14.]\n"


def test_executable_serialization() -> None:
    # It uses arrays of its client that it does not make.
    made, used = SERIALIZATION.split("# Use restored executable")
    buffers = "buffer_a, buffer_b = (client.buffer_from_pyval(x) for x in (a, b))"
    out, names = run(BASIC, made, buffers, used)
    assert re.search(r"Serialized size: [1-9]\d+ bytes\n", out)
    assert str(names["result"]) == "[Array([5., 7., 9.], dtype=float32)]"


def test_array_placement() -> None:
    assert run(ARRAYS)[0] == (
        "Array shape: (2, 2)\nArray dtype: float32\nOn-device size: 16 bytes\n"
        "Array is ready: True\n"
    )


def test_batched_readiness() -> None:
    assert run(READINESS)[0] == (
        "All arrays are ready\nArray 0: ready=True\nArray 1: ready=True\nArray 2: ready=True\n"
    )


def test_client_set_up_without_a_gpu() -> None:
    out, _ = run(SET_UP)
    assert out.startswith("CPU devices: [CpuDevice(id=0)]\nGPU not available: ")


def test_distributed_setup_says_what_is_missing() -> None:
    with pytest.raises(
        UnimplementedError, match=r"get_distributed_runtime_service: .* one process"
    ):
        run(DISTRIBUTED)
