"""Programs of several participants through the client: devices, arguments, results, failures."""

import threading
import time

import numpy as np
import pytest

from haloc.errors import DeadlineExceededError, InvalidArgumentError
from haloc.xla_client import (
    CompileOptions,
    DeviceAssignment,
    make_cpu_client,
    make_interpreter_client,
)

ADD = """
HloModule sharded_add
ENTRY computation {
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  ROOT add = f32[2] add(x, y)
}
"""

SUM_AND_IDS = """
HloModule sum
r {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[2] parameter(0)
  s = f32[2] all-reduce(x), replica_groups={}, channel_id=1, to_apply=r
  replica = u32[] replica-id()
  partition = u32[] partition-id()
  ROOT t = (f32[2], u32[], u32[]) tuple(s, replica, partition)
}
"""


@pytest.fixture(scope="module", params=["cpu", "cpu, synchronous", "interpreter"])
def client(request):
    if request.param == "interpreter":
        return make_interpreter_client(num_devices=8)
    return make_cpu_client(asynchronous=request.param == "cpu", num_devices=8)


def options(num_replicas=1, num_partitions=1, assignment=None):
    made = CompileOptions()
    made.num_replicas, made.num_partitions = num_replicas, num_partitions
    made.executable_build_options.use_spmd_partitioning = num_partitions > 1
    if assignment is not None:
        made.device_assignment = DeviceAssignment.create(np.array(assignment))
    return made


def put(client, value, device):
    return client.buffer_from_pyval(np.asarray(value, np.float32), device, force_copy=True)


def shards(client, executable, values):
    return [put(client, v, d) for v, d in zip(values, executable.local_devices(), strict=True)]


def numbers(columns):
    return [[np.asarray(a).tolist() for a in column] for column in columns]


def test_the_documents_example(client):
    """Two devices listed, no options: the program runs on each, by device."""
    devices = client.devices()
    executable = client.compile_and_load(ADD, executable_devices=devices[:2])
    arguments = [
        [put(client, [1, 2], devices[0]), put(client, [3, 4], devices[0])],
        [put(client, [5, 6], devices[1]), put(client, [7, 8], devices[1])],
    ]
    outputs = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
    assert [np.array(own[0]).tolist() for own in outputs] == [[4, 6], [12, 14]]
    assert [own[0].device for own in outputs] == devices[:2]
    assert executable.local_devices() == devices[:1]
    assert numbers([executable.execute(arguments[0])]) == [[[4, 6]]]


def test_by_argument_and_by_device(client):
    executable = client.compile_and_load(ADD, client.devices()[:2], options(2))
    x = shards(client, executable, [[1, 2], [5, 6]])
    y = shards(client, executable, [[3, 4], [7, 8]])
    results = executable.execute_sharded([x, y])
    assert len(results) == 1
    assert numbers(results.disassemble_into_single_device_arrays()) == [[[4, 6], [12, 14]]]
    by_device = executable.execute_sharded([[x[0], y[0]], [x[1], y[1]]])
    assert numbers(by_device.disassemble_into_single_device_arrays()) == [[[4, 6]], [[12, 14]]]
    assert numbers([executable.execute([x, y])]) == [[[4, 6]]]  # the first device's


@pytest.mark.parametrize(("replicas", "partitions"), [(8, 1), (1, 8), (2, 4)])
def test_participants_know_who_they_are(client, replicas, partitions):
    executable = client.compile_and_load(
        SUM_AND_IDS, client.devices(), options(replicas, partitions)
    )
    assert executable.local_logical_device_ids() == [
        (r, p) for r in range(replicas) for p in range(partitions)
    ]
    given = [[float(k), 1.0] for k in range(8)]
    results = executable.execute_sharded([shards(client, executable, given)])
    total, replica, partition = numbers(results.disassemble_into_single_device_arrays())
    assert total == [[28.0, 8.0]] * 8
    pairs = list(zip(replica, partition))
    assert pairs == executable.local_logical_device_ids()


def test_devices_follow_the_assignment(client):
    """Replica 0 on device 3, replica 1 on device 1."""
    executable = client.compile_and_load(SUM_AND_IDS, client.devices(), options(2, 1, [[3], [1]]))
    assert [d.id for d in executable.local_devices()] == [3, 1]
    results = executable.execute_sharded([shards(client, executable, [[1, 2], [3, 4]])])
    total, replica, _ = results.disassemble_into_single_device_arrays()
    assert [a.device.id for a in replica] == [3, 1]
    assert numbers([replica]) == [[0, 1]]
    assert numbers([total]) == [[[4, 6], [4, 6]]]


def test_devices_follow_the_list_without_an_assignment(client):
    devices = client.devices()
    executable = client.compile_and_load(ADD, [devices[5], devices[2]], options(2))
    assert executable.local_devices() == [devices[5], devices[2]]
    too_few = client.compile_and_load(ADD, devices[3:4], options(2))
    assert too_few.local_devices() == devices[:2]


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        (options(9), "No matching device found for device_id 8"),
        (options(2, 1, [[0], [7], [1]]), "of 3 replica"),
        (options(2, 1, [[0], [77]]), "No matching device found for device_id 77"),
        (options(2, 1, [[4], [4]]), "names device 4 twice"),
    ],
)
def test_devices_that_do_not_do(client, made, fault):
    with pytest.raises(InvalidArgumentError, match=fault):
        client.compile_and_load(ADD, client.devices(), made)


def test_the_module_may_say_how_many(client):
    text = SUM_AND_IDS.replace("HloModule sum", "HloModule sum, replica_count=2, num_partitions=2")
    executable = client.compile_and_load(text, client.devices())
    assert len(executable.local_devices()) == 4
    with pytest.raises(InvalidArgumentError, match=r"replica_count=2, but .*num_replicas is 3"):
        client.compile_and_load(text, client.devices(), options(3))


def test_modules_of_whole_arrays_are_partitioned(client):
    text = """
HloModule m, num_partitions=2
ENTRY e {
  x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  ROOT n = f32[4] negate(x)
}
"""
    executable = client.compile_and_load(text, client.devices(), options(1, 2))
    assert executable.hlo_modules()[0].to_string().count("f32[2]") > 1
    replicated = text.replace("devices=[2]<=[2]", "replicated")
    assert client.compile_and_load(replicated, client.devices(), options(1, 2))
    partitioned = text.replace("num_partitions=2", "is_scheduled=true, num_partitions=2")
    executable = client.compile_and_load(partitioned, client.devices(), options(1, 2))
    (sharding,) = executable.get_parameter_shardings()
    assert sharding.iota_reshape_dims == [2]
    assert executable.get_output_shardings() is None


@pytest.fixture
def pair(client):
    return client.compile_and_load(ADD, client.devices()[:2], options(2))


def refused(client, executable, arguments, fault):
    """The call is refused, and the next one works: nothing had been started."""
    with pytest.raises(InvalidArgumentError, match=fault):
        executable.execute_sharded(arguments)
    good = [shards(client, executable, [[1, 2], [3, 4]]) for _ in "xy"]
    results = executable.execute_sharded(good).disassemble_into_single_device_arrays()
    assert numbers(results) == [[[2, 4], [6, 8]]]


def test_wrong_arguments(client, pair):
    x = shards(client, pair, [[1, 2], [3, 4]])
    refused(client, pair, [x], "Execution supplied 1 buffers but compiled program expected 2")
    refused(client, pair, [x, [x[0]]], r"to have 2 shards, got: \[2, 1\]")
    refused(client, pair, [x, [x[1], x[0]]], "argument 1 to replica 0 is on device .*_1|id=1")
    three = shards(client, pair, [[1, 2, 3], [3, 4, 5]])
    refused(client, pair, [x, three], "expected parameter 1 of size 8 .*: while running replica 0")
    integers = [client.buffer_from_pyval(np.ones(2, np.int32), d) for d in pair.local_devices()]
    refused(client, pair, [x, integers], r"parameter 1 to be f32\[2\] but got s32\[2\]")
    x[1].delete()
    refused(client, pair, [x, x], "deleted or donated")
    with pytest.raises(TypeError, match=r"argument 1 is a numpy\.ndarray"):
        pair.execute_sharded([shards(client, pair, [[1, 2], [3, 4]]), np.ones(2)])


def test_donation_on_every_device(client):
    text = ADD.replace("HloModule sharded_add", "HloModule m, input_output_alias={ {}: (0, {}) }")
    executable = client.compile_and_load(text, client.devices()[:2], options(2))
    x = shards(client, executable, [[1, 2], [3, 4]])
    y = shards(client, executable, [[1, 1], [2, 2]])
    with pytest.raises(InvalidArgumentError, match=r"replica 0, partition 0, first use: 0"):
        executable.execute_sharded([x, x])
    assert not x[0].is_deleted()
    pointers = [a.unsafe_buffer_pointer() for a in x]
    (results,) = executable.execute_sharded([x, y]).disassemble_into_single_device_arrays()
    assert [a.is_deleted() for a in x] == [True, True]
    assert numbers([results]) == [[[2, 3], [5, 6]]]
    assert [a.unsafe_buffer_pointer() for a in results] == pointers


def test_tokens(client, pair):
    x = shards(client, pair, [[1, 2], [3, 4]])
    results = pair.execute_sharded([x, x], with_tokens=True)
    token = results.consume_token()
    token.block_until_ready()
    token.get_token(1).block_until_ready()
    with pytest.raises(InvalidArgumentError, match=r"get_token\(2\)"):
        token.get_token(2)
    with pytest.raises(ValueError, match="token already consumed"):
        results.consume_token()
    outputs, token = pair.execute_with_token([x, x])
    token.block_until_ready()
    assert numbers([outputs]) == [[[2, 4]]]


def test_handlers(client, pair):
    x = shards(client, pair, [[1, 2], [3, 4]])
    results = pair.execute_sharded([x, x])
    (sums,) = results.consume_with_handlers([lambda arrays: [a.device.id for a in arrays]])
    assert sums == [0, 1]
    with pytest.raises(ValueError, match="already exploded"):
        len(results)


SKIPPED = """
HloModule m
r {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
meet {
  x = f32[] parameter(0)
  ROOT sum = f32[] all-reduce(x), replica_groups={}, to_apply=r
}
skip {
  ROOT x = f32[] parameter(0)
}
ENTRY e {
  x = f32[] parameter(0)
  zero = f32[] constant(0)
  p = pred[] compare(x, zero), direction=GT
  ROOT c = f32[] conditional(p, x, x), true_computation=meet, false_computation=skip
}
"""


def test_a_participant_that_does_not_come(client):
    made = options(4)
    made.env_option_overrides = [("xla_cpu_collective_call_terminate_timeout_seconds", 1)]
    executable = client.compile_and_load(SKIPPED, client.devices(), made)
    start = time.monotonic()
    with pytest.raises((DeadlineExceededError, InvalidArgumentError)) as caught:
        results = executable.execute_sharded([shards(client, executable, [1, 2, 0, 4])])
        for array in results.disassemble_into_single_device_arrays()[0]:
            array.block_until_ready()
    assert time.monotonic() - start < 4
    assert "sum" in str(caught.value)
    assert "2" in str(caught.value)
    results = executable.execute_sharded([shards(client, executable, [1, 2, 3, 4])])
    assert numbers(results.disassemble_into_single_device_arrays()) == [[10, 10, 10, 10]]


def test_many_threads_run_two_programs_on_the_same_devices(client):
    """Whatever order they come in: on all devices, on halves, backwards."""
    devices = client.devices()
    programs = [
        client.compile_and_load(SUM_AND_IDS.replace(", channel_id=1", ""), chosen, options(n))
        for chosen, n in ((devices, 8), (devices[::-1], 8), (devices[:4], 4), (devices[2:6], 4))
    ]
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(12):
            executable = programs[rng.integers(len(programs))]
            given = rng.integers(0, 9, (len(executable.local_devices()), 2)).astype(np.float32)
            results = executable.execute_sharded([shards(client, executable, given)])
            for array in results.disassemble_into_single_device_arrays()[0]:
                if not np.array_equal(np.asarray(array), given.sum(0)):
                    failures.append(given)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not failures
