"""Programs compiled for topologies, without a client, and loaded by one."""

import os
import subprocess
import sys

import numpy as np
import pytest

from haloc import xla_client
from haloc.errors import FailedPreconditionError, HloError, InvalidArgumentError
from haloc.jax.plugin import api_capsule
from haloc.pjrt.client import CApiTopology
from tests.pjrt.test_client import ADD, SUM, ramp


@pytest.fixture
def topology():
    return xla_client.make_c_api_device_topology(api_capsule(), num_devices=2)


def test_a_program_without_a_client(topology, client):
    devices = topology._make_compile_only_devices()
    assert [d.id for d in devices] == [0, 1]
    executable = devices[1].client.compile(ADD, devices[1:])
    assert executable.num_outputs == 2
    assert executable.cost_analysis()["flops"] == 4
    loaded = client.load(executable)
    assert loaded.local_devices() == client.devices()[1:]
    x = client.buffer_from_pyval(ramp(), client.devices()[1])
    assert loaded.execute([x, x])[0].tolist() == [0, 2, 4, 6]
    del executable
    assert loaded.execute([x, x])[0].tolist() == [0, 2, 4, 6]


def test_a_client_compiles_first_and_loads_later(client):
    executable = client.compile(SUM, client.devices())
    assert (executable.num_replicas, executable.num_outputs) == (2, 1)
    loaded = client.load(executable)
    xs = [client.buffer_from_pyval(ramp(0, 2), d) for d in client.devices()]
    ys = [client.buffer_from_pyval(np.float32(1), d) for d in client.devices()]
    results = loaded.execute_sharded([xs, ys]).disassemble_into_single_device_arrays()
    assert [a.tolist() for a in results[0]] == [[0, 2], [0, 2]]


def test_what_was_serialized_without_a_client(topology, client):
    (device, _) = topology.devices()
    data = topology.compile(ADD, [device]).serialize()
    x = client.buffer_from_pyval(ramp())
    executable = client.deserialize_executable(data, client.devices())
    assert executable.execute([x, x])[0].tolist() == [0, 2, 4, 6]


def test_topologies_are_serialized(topology):
    again = CApiTopology.deserialize(topology.plugin, topology.serialize())
    assert again.fingerprint == topology.fingerprint
    assert [str(d) for d in again.devices()] == ["haloc:0", "haloc:1"]
    with pytest.raises(InvalidArgumentError, match="no topology that haloc has serialised"):
        CApiTopology.deserialize(topology.plugin, b"nothing")
    other = topology.serialize().replace(b"linux", b"plan9")
    with pytest.raises(FailedPreconditionError, match="is of another machine"):
        CApiTopology.deserialize(topology.plugin, other)


def test_topologies_that_are_not_there(topology, plugin_name):
    with pytest.raises(InvalidArgumentError, match="topology 'v5e': haloc's topologies have no"):
        xla_client.make_c_api_device_topology(api_capsule(), "v5e")
    with pytest.raises(InvalidArgumentError, match="option 'cores' is not known"):
        xla_client.make_c_api_device_topology(api_capsule(), cores=2)
    small = xla_client.make_c_api_client(plugin_name)
    with pytest.raises(InvalidArgumentError, match="No matching device found for device_id 1"):
        small.load(topology.compile(ADD, topology.devices()[1:]))


def test_default_device_assignment(client):
    assert client.get_default_device_assignment(2).ids.tolist() == [[0], [1]]
    assert client.get_default_device_assignment(1, 2).ids.tolist() == [[0, 1]]
    with pytest.raises(InvalidArgumentError, match="the client has 2"):
        client.get_default_device_assignment(3)


def test_peak_of_memory_is_counted_anew(client):
    device = client.devices()[0]
    del_me = client.buffer_from_pyval(np.zeros(1 << 20, np.uint8))
    del_me.delete()
    before = device.memory_stats()["peak_bytes_in_use"]
    client.plugin.call("Device_ClearMemoryStats", device=device.address)
    assert device.memory_stats()["peak_bytes_in_use"] < before


HOLDING = """
import ctypes, threading, sys, haloc
from haloc import xla_client
from haloc.pjrt.client.plugin import FUNCTION
from haloc.pjrt.abi import ARGS
from haloc.jax.plugin import api_capsule
from haloc.pjrt.client.program import Program
from tests.pjrt.test_client import ADD
topology = xla_client.make_c_api_device_topology(api_capsule())
plugin = topology.plugin
program = Program(plugin, ADD, None, topology.devices())
args = ARGS["Compile"].sized(topology=topology.address, **program.fields())
libc = ctypes.PyDLL(None)
thread = ctypes.c_uint64()
address = plugin._address_of("Compile")
result = ctypes.c_void_p()
# PyDLL: this thread keeps the GIL while the other one, which has none, compiles.
libc.pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(address),
                    ctypes.c_void_p(ctypes.addressof(args)))
libc.pthread_join(thread, ctypes.byref(result))
print(plugin.error(result.value) if result.value else "compiled")
"""


@pytest.mark.nightly  # waits until the plugin gives up
def test_a_caller_that_keeps_pythons_lock_gets_an_error():
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(["src", *sys.path]))
    done = subprocess.run(
        [sys.executable, "-c", HOLDING],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.startswith("UNAVAILABLE: the caller keeps Python's lock"), done.stderr


def test_a_thread_that_is_not_pythons_compiles(client):
    topology = client.topology()
    executable = topology.compile(ADD, client.devices()[:1])
    assert isinstance(executable.fingerprint, bytes)
    with pytest.raises(HloError, match="frob"):
        topology.compile("module { func.func @main() { frob } }")
