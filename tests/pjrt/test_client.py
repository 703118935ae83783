"""A client of a plugin, driven through the C API: haloc drives haloc."""

import gc
import threading

import ml_dtypes
import numpy as np
import pytest

from haloc import xla_client
from haloc.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)

ADD = """HloModule add
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  s = f32[4] add(x, y)
  k = f32[] constant(3)
  ROOT r = (f32[4], f32[]) tuple(s, k)
}"""

NEGATE = """module @negate {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = stablehlo.negate %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}"""

IN_PLACE = """HloModule in_place, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT s = f32[4] add(x, y)
}"""

SUM = """HloModule sum, replica_count=2
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[2] parameter(0)
  y = f32[] parameter(1)
  t = f32[2] all-reduce(x), replica_groups={}, to_apply=add
  z = f32[2] broadcast(y), dimensions={}
  ROOT r = f32[2] multiply(t, z)
}"""

DTYPES = [
    np.bool_,
    np.int8,
    np.uint16,
    np.int64,
    np.float16,
    np.complex128,
    ml_dtypes.bfloat16,
    ml_dtypes.int4,
    ml_dtypes.float8_e4m3fn,
]


def ramp(start=0.0, count=4):
    return np.arange(start, start + count, dtype=np.float32)


@pytest.fixture(scope="module")
def add(client):
    return client.compile_and_load(ADD, client.devices()[:1])


# --- Devices --------------------------------------------------------------------------------------


def test_what_a_client_says_of_itself(client):
    assert client.platform == "haloc"
    assert client.platform_version.startswith("haloc ")
    assert client.process_index() == client.host_id() == client.task_id() == 0
    assert client.device_count() == client.local_device_count() == 2
    assert client.plugin.attributes["stablehlo_current_version"] == [1, 17, 0]
    assert "haloc_table, API 0.112" in repr(client)


def test_devices_and_memories_are_the_same_objects_each_time(client):
    first, second = client.devices()
    assert client.devices() == client.local_devices() == [first, second]
    assert (first.id, second.id) == (0, 1)
    assert client.device_from_id(1) is second
    assert client.device_from_local_hardware_id(1) is second
    assert first.default_memory() is first.addressable_memories()[0]
    assert first.memory("pinned_host").kind == "pinned_host"
    assert first.default_memory().addressable_by_devices() == [first]
    assert len(client.memories()) == 6
    assert first.memory_stats()["bytes_in_use"] >= 0
    assert str(first) == "haloc:0"
    with pytest.raises(InvalidArgumentError, match="Got memory kind: moon"):
        first.memory("moon")
    with pytest.raises(AttributeError, match="Unknown attribute coords"):
        _ = first.coords
    with pytest.raises(InvalidArgumentError, match="No matching device"):
        client.device_from_id(7)


# --- Arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("force_copy", [False, True])
def test_arrays_come_back_as_they_went(client, dtype, force_copy):
    value = np.arange(6).reshape(2, 3).astype(dtype)
    for sent in (value, value.T, value[:, ::-1], value[:0], value[0, 0]):
        array = client.buffer_from_pyval(sent, client.devices()[1], force_copy)
        assert array.shape == np.shape(sent)
        assert array.dtype == dtype
        assert array.device is client.devices()[1]
        np.testing.assert_array_equal(np.asarray(array), sent)
        assert not np.asarray(array).flags.writeable


def test_an_array_lives_until_it_is_deleted(client):
    array = client.buffer_from_pyval(ramp())
    assert array in client.live_arrays()
    assert array.block_until_ready() is array
    assert array.is_ready()
    assert array.on_device_size_in_bytes() == array.nbytes == 16
    assert array.is_on_cpu()
    assert array.unsafe_buffer_pointer() % 16 == 0
    assert repr(array) == "Array([0., 1., 2., 3.], dtype=float32)"
    array.delete()
    array.delete()
    assert array.is_deleted()
    assert all(a is not array for a in client.live_arrays())
    with pytest.raises(InvalidArgumentError, match="deleted or donated"):
        np.asarray(array)
    with pytest.raises(InvalidArgumentError, match="BlockHostUntilReady"):
        array.block_until_ready()


def test_arrays_nobody_has_are_freed(client):
    def in_use():
        gc.collect()
        return client.devices()[0].memory_stats()["bytes_in_use"]

    before = in_use()
    array = client.buffer_from_pyval(np.zeros(1 << 20, np.uint8))
    assert in_use() >= before + (1 << 20)
    del array
    assert in_use() == before


def test_copies_to_devices_and_memories(client):
    array = client.buffer_from_pyval(ramp())
    copy = array.copy_to_device(client.devices()[1])
    assert copy.device is client.devices()[1]
    pinned = copy.copy_to_memory(client.devices()[0].memory("pinned_host"))
    assert pinned.memory.kind == "pinned_host"
    array.delete()
    assert pinned.tolist() == [0, 1, 2, 3]
    direct = client.buffer_from_pyval(ramp(), client.devices()[1].memory("unpinned_host"))
    assert direct.memory.kind == "unpinned_host"


def test_events(client):
    event = client.buffer_from_pyval(ramp()).ready_event()
    told = threading.Event()
    errors = []
    event.on_ready(lambda error: (errors.append(error), told.set()))
    assert told.wait(5)
    assert errors == [None]
    assert event.is_ready()
    event.wait()


def test_foreign_devices_and_other_types(client):
    with pytest.raises(TypeError, match="not a CApiDevice"):
        client.buffer_from_pyval(ramp(), "cpu")
    with pytest.raises(InvalidArgumentError):
        client.buffer_from_pyval("text")


# --- Programs -------------------------------------------------------------------------------------


def test_hlo_runs(client, add):
    x, y = map(client.buffer_from_pyval, (ramp(), ramp(10)))
    total, three = add.execute([x, y])
    np.testing.assert_array_equal(total, ramp() + ramp(10))
    assert float(three) == 3
    results, token = add.execute_with_token([x, y])
    token.block_until_ready()
    assert results[0].tolist() == total.tolist()


@pytest.mark.parametrize("encode", [str, str.encode])
def test_stablehlo_is_passed_on(client, encode):
    executable = client.compile_and_load(encode(NEGATE), client.devices()[:1])
    (result,) = executable.execute([client.buffer_from_pyval(ramp())])
    assert result.tolist() == [-0.0, -1, -2, -3]


def test_on_another_device(client):
    other = client.devices()[1]
    executable = client.compile_and_load(NEGATE, [other])
    assert executable.local_devices() == [other]
    (result,) = executable.execute([client.buffer_from_pyval(ramp(), other)])
    assert result.device is other
    with pytest.raises(InvalidArgumentError, match="another device"):
        executable.execute([client.buffer_from_pyval(ramp())])


def test_what_an_executable_says_of_itself(client, add):
    assert add.name == "add"
    assert (add.num_replicas, add.num_partitions, add.num_outputs) == (1, 1, 2)
    assert [str(s) for s in add.output_shapes()] == ["f32[4]{0}", "f32[]"]
    assert add.get_output_memory_kinds() == [["device", "device"]]
    assert add.fingerprint.isdigit()
    assert add.cost_analysis()["flops"] == 4
    stats = add.get_compiled_memory_stats()
    assert stats.argument_size_in_bytes == 32
    assert stats.peak_memory_in_bytes >= 32 + 20
    assert add.size_of_generated_code_in_bytes() > 0
    assert add.local_logical_device_ids() == [(0, 0)]
    assert add.device_assignment()["computation_devices"] == [{"replica_device_ids": [0]}]
    options = xla_client.CompileOptions.ParseFromString(add.compile_options())
    assert options.device_assignment.ids.tolist() == [[0]]
    form, _ = add.optimized_program()
    assert form == "hlo_with_config"
    (module,) = add.hlo_modules()
    assert "add(%x, %y)" in module.to_string()


def test_serialized_and_read_back(client, add):
    again = client.deserialize_executable(client.serialize_executable(add), client.devices())
    x = client.buffer_from_pyval(ramp())
    assert again.execute([x, x])[0].tolist() == [0, 2, 4, 6]
    assert again.fingerprint == add.fingerprint
    with pytest.raises(InvalidArgumentError):
        client.deserialize_executable(b"nothing", client.devices())


def test_donation(client):
    executable = client.compile_and_load(IN_PLACE, client.devices()[:1])
    x, y = map(client.buffer_from_pyval, (ramp(), ramp()))
    (kept,) = executable.execute([x, y], keep=[0])
    assert not x.is_deleted()
    (result,) = executable.execute([x, y])
    assert x.is_deleted() and not y.is_deleted()
    assert result.tolist() == kept.tolist() == [0, 2, 4, 6]
    with pytest.raises(InvalidArgumentError, match="deleted or donated"):
        executable.execute([x, y])
    with pytest.raises(InvalidArgumentError, match="donate"):
        executable.execute([y, y])


@pytest.mark.parametrize("by_device", [False, True])
def test_replicas(client, by_device):
    executable = client.compile_and_load(SUM, client.devices())
    assert executable.local_logical_device_ids() == [(0, 0), (1, 0)]
    first, second = client.devices()
    xs = [client.buffer_from_pyval(ramp(n, 2), d) for n, d in ((0, first), (10, second))]
    ys = [client.buffer_from_pyval(np.float32(n), d) for n, d in ((1, first), (2, second))]
    arguments = [[xs[0], ys[0]], [xs[1], ys[1]]] if by_device else [xs, ys]
    results = executable.execute_sharded(arguments, with_tokens=True)
    results.consume_token().block_until_ready()
    outputs = results.disassemble_into_single_device_arrays()
    assert [len(o) for o in outputs] == ([1, 1] if by_device else [2])
    flat = [array for own in outputs for array in own]
    assert [a.tolist() for a in flat] == [[10, 12], [20, 24]]
    assert [a.device for a in flat] == [first, second]


def test_wrong_arguments(client, add):
    x = client.buffer_from_pyval(ramp())
    with pytest.raises(TypeError, match="wanted a list of arrays"):
        add.execute(x)
    with pytest.raises(TypeError, match=r"argument 1 is a numpy\.ndarray"):
        add.execute([x, ramp()])
    with pytest.raises(InvalidArgumentError, match="supplied 1 buffers"):
        add.execute([x])
    with pytest.raises(InvalidArgumentError, match="parameter 1 of size 16"):
        add.execute([x, client.buffer_from_pyval(ramp(0, 3))])
    with pytest.raises(InvalidArgumentError, match="have 1 shards"):
        add.execute([[x, x], [x, x]])
    with pytest.raises(InvalidArgumentError, match="not a device of this client"):
        client.compile_and_load(ADD, ["cpu"])
    with pytest.raises(InvalidArgumentError, match="take 2 devices"):
        client.compile_and_load(SUM, client.devices()[:1])


def test_errors_have_the_plugins_code_and_message(client):
    with pytest.raises(InvalidArgumentError, match="unknown operation 'frob'") as caught:
        client.compile_and_load("module { func.func @main() { frob } }", client.devices()[:1])
    assert str(caught.value).startswith("INVALID_ARGUMENT: ")
    with pytest.raises(UnimplementedError, match="host_callbacks"):
        client.compile_and_load(ADD, client.devices()[:1], host_callbacks=[print])


def test_deleting_an_executable(client):
    executable = client.compile_and_load(NEGATE, client.devices()[:1])
    assert executable in client.live_executables()
    executable.delete()
    assert executable.is_deleted()
    with pytest.raises(FailedPreconditionError, match="deleted executable"):
        executable.execute([client.buffer_from_pyval(ramp())])


def test_threads_share_a_client(client, add):
    failures = []

    def work(start):
        try:
            for n in range(30):
                x = client.buffer_from_pyval(ramp(start + n))
                np.testing.assert_array_equal(add.execute([x, x])[0], 2 * ramp(start + n))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(1000 * k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failures


def test_topology(client):
    topology = client.topology()
    assert topology.platform == "haloc"
    assert topology.platform_version == client.platform_version
    assert topology.fingerprint == client.topology().fingerprint
    assert [d.id for d in topology.devices()] == [0, 1]
    assert topology.devices()[0].device_kind == "haloc"
    assert topology.serialize() == client.topology().serialize()
    device_client = topology.devices()[0].client
    with pytest.raises(UnimplementedError, match="Compile not implemented"):
        device_client.compile_and_load(ADD, [])
    with pytest.raises(AttributeError, match="Unknown attribute foo"):
        _ = topology.foo
