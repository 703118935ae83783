"""A participant whose host callback raises, or is stuck: everyone gets the error, nothing hangs."""

import threading
import time

import numpy as np
import pytest

from haloc.errors import DeadlineExceededError
from haloc.xla_client import CompileOptions, make_cpu_client

TEXT = """
HloModule m
r {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b)
}
ENTRY e {
  x = s32[] parameter(0)
  y = s32[] custom-call(x), custom_call_target="xla_ffi_python_cpu_callback",
    api_version=API_VERSION_TYPED_FFI, backend_config="{index = 0 : ui64}",
    custom_call_has_side_effect=true
  ROOT sum = s32[] all-reduce(y), replica_groups={}, to_apply=r
}
"""


@pytest.fixture(params=[True, False], ids=["asynchronous", "synchronous"])
def client(request):
    return make_cpu_client(asynchronous=request.param, num_devices=4)


def load(client, callback, timeout_s=20):
    options = CompileOptions()
    options.num_replicas = 4
    options.env_option_overrides = [
        ("xla_cpu_collective_call_terminate_timeout_seconds", timeout_s)
    ]
    return client.compile_and_load(TEXT, client.devices(), options, [callback])


def execute(client, executable, values):
    """The results, waited for."""
    shards = [client.buffer_from_pyval(np.int32(v), d) for v, d in zip(values, client.devices())]
    results = executable.execute_sharded([shards])
    (arrays,) = results.disassemble_into_single_device_arrays()
    return [int(a) for a in arrays]


def test_the_exception_comes_out_and_the_next_run_works(client):
    def callback(x):
        if x == 3:
            raise ValueError("three is too much")
        return (x,)

    executable = load(client, callback)
    assert execute(client, executable, [0, 1, 2, 4]) == [7] * 4
    start = time.monotonic()
    with pytest.raises(Exception, match="three is too much"):
        execute(client, executable, [0, 1, 2, 3])
    assert time.monotonic() - start < 5
    assert execute(client, executable, [5, 6, 7, 8]) == [26] * 4


def test_one_that_is_stuck_is_left_behind(client):
    """Its memory stays until it comes to an end."""
    let_go, ended = threading.Event(), threading.Event()

    def callback(x):
        if x == 2 and not let_go.is_set():
            let_go.wait(30)
            ended.set()
        return (x,)

    executable = load(client, callback, timeout_s=1)
    start = time.monotonic()
    with pytest.raises(DeadlineExceededError) as caught:
        execute(client, executable, [0, 1, 2, 4])
    assert time.monotonic() - start < 10
    assert "sum: waited 1 s for participant 2 (replica 2, partition 0)" in caught.value.message
    let_go.set()
    assert ended.wait(10)
    assert execute(client, executable, [0, 1, 2, 4]) == [7] * 4


def test_what_depends_on_a_failed_run_fails():
    """On an asynchronous client the error goes on to what was computed from the results."""
    client = make_cpu_client(asynchronous=True, num_devices=1)
    began = threading.Event()

    def callback(x):
        began.wait(10)
        raise ValueError("no value")

    slow = """
    HloModule m
    ENTRY e {
      x = f32[600,600] parameter(0)
      d = f32[600,600] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT y = f32[600,600] custom-call(d), custom_call_target="xla_ffi_python_cpu_callback",
        api_version=API_VERSION_TYPED_FFI, backend_config="{index = 0 : ui64}"
    }"""
    negate = "HloModule n ENTRY e { x = f32[600,600] parameter(0) ROOT y = f32[600,600] negate(x) }"
    devices = client.devices()
    failing = client.compile_and_load(slow, devices, None, [callback])
    after = client.compile_and_load(negate, devices)
    (y,) = failing.execute([client.buffer_from_pyval(np.ones((600, 600), np.float32))])
    (z,) = after.execute([y])
    assert not z.is_ready()
    began.set()
    for array in (y, z, z):
        with pytest.raises(Exception, match="no value"):
            array.block_until_ready()
    assert z.is_ready()
    (w,) = after.execute([y])  # its value is known to be missing by now
    with pytest.raises(Exception, match="no value"):
        np.asarray(w)
    one = client.buffer_from_pyval(np.ones((600, 600), np.float32))
    np.testing.assert_array_equal(np.asarray(after.execute([one])[0]), -1)
