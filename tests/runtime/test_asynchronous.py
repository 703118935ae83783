"""Asynchronous dispatch: what waits, what does not, and where errors come out."""

import gc
import threading
import time

import numpy as np
import pytest

from haloc.runtime.device_queues import MAX_QUEUED
from haloc.xla_client import make_cpu_client

SLOW = """
HloModule slow
go_on {
  s = (s32[], f32[200,200]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(TRIPS)
  ROOT l = pred[] compare(i, n), direction=LT
}
step {
  s = (s32[], f32[200,200]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[200,200] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[200,200] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[200,200]) tuple(next, y)
}
ENTRY e {
  x = f32[200,200] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[200,200]) tuple(zero, x)
  w = (s32[], f32[200,200]) while(t), condition=go_on, body=step
  ROOT r = f32[200,200] get-tuple-element(w), index=1
}
"""

INCREMENT = """
HloModule increment, input_output_alias={ {}: (0, {}) }
ENTRY e {
  x = f32[200,200] parameter(0)
  one = f32[] constant(1)
  ones = f32[200,200] broadcast(one), dimensions={}
  ROOT y = f32[200,200] add(x, ones)
}
"""

NEGATE = """
HloModule negate
ENTRY e {
  x = f32[200,200] parameter(0)
  ROOT y = f32[200,200] negate(x)
}
"""

IDENTITY = np.eye(200, dtype=np.float32)


@pytest.fixture(scope="module")
def client():
    return make_cpu_client(asynchronous=True, num_devices=2)


@pytest.fixture(scope="module")
def slow(client):
    """About a tenth of a second."""
    return client.compile_and_load(SLOW.replace("TRIPS", "300"), client.devices()[:1])


@pytest.fixture
def held(client):
    """(a program as `slow`, which ends only after the event is set; the event)"""
    event = threading.Event()

    def callback(x):
        assert event.wait(60)
        return (x,)

    gate = """x = f32[200,200] custom-call(p), api_version=API_VERSION_TYPED_FFI,
    custom_call_target="xla_ffi_python_cpu_callback", backend_config="{index = 0 : ui64}"
"""
    text = SLOW.replace("TRIPS", "1").replace("ENTRY e {\n  x =", "ENTRY e {\n  p =")
    text = text.replace("  zero = ", f"  {gate}  zero = ")
    yield client.compile_and_load(text, client.devices()[:1], None, [callback]), event
    event.set()


def load(client, text):
    return client.compile_and_load(text, client.devices()[:1])


def put(client, value=IDENTITY):
    return client.buffer_from_pyval(value, client.devices()[0], force_copy=True)


def test_execute_returns_before_a_long_program_has_run(client, held):
    program, event = held
    (y,) = program.execute([put(client)])
    assert not y.is_ready()
    event.set()
    y.block_until_ready()
    assert y.is_ready()
    np.testing.assert_array_equal(np.asarray(y), IDENTITY)


def test_a_short_program_runs_at_once_on_an_idle_device(client):
    (y,) = load(client, NEGATE).execute([put(client)])
    assert y.is_ready()


def test_work_of_a_device_keeps_its_order(client, held):
    """The short program's argument is not there yet."""
    program, event = held
    negate = load(client, NEGATE)
    (y,) = program.execute([put(client)])
    (z,) = negate.execute([y])
    assert not z.is_ready()
    event.set()
    np.testing.assert_array_equal(np.asarray(z), -IDENTITY)
    assert y.is_ready()


def test_devices_do_not_wait_for_each_other(client, held):
    program, event = held
    second = client.devices()[1]
    negate = client.compile_and_load(NEGATE, [second])
    (y,) = program.execute([put(client)])
    (z,) = negate.execute([client.buffer_from_pyval(IDENTITY, second)])
    assert z.is_ready()
    assert not y.is_ready()
    event.set()
    y.block_until_ready()


def test_synchronous_clients_wait():
    client = make_cpu_client(asynchronous=False)
    (y,) = load(client, SLOW.replace("TRIPS", "300")).execute([put(client)])
    assert y.is_ready()


def test_pending_outputs_may_be_deleted(client, slow):
    (y,) = slow.execute([put(client)])
    y.delete()
    assert y.is_deleted()
    (z,) = slow.execute([put(client)])
    np.testing.assert_array_equal(np.asarray(z), IDENTITY)


def test_arguments_may_be_deleted_at_once(client, slow):
    x = put(client)
    (y,) = slow.execute([x])
    x.delete()
    np.testing.assert_array_equal(np.asarray(y), IDENTITY)


def test_donation_of_pending_arrays_is_in_place(client, held):
    program, event = held
    increment = load(client, INCREMENT)
    (y,) = program.execute([put(client)])
    pointer = y._block.pointer
    values = [y]
    for _ in range(10):
        (after,) = increment.execute([values[-1]])
        assert values[-1].is_deleted()
        values.append(after)
    assert not values[-1].is_ready()
    event.set()
    np.testing.assert_array_equal(np.asarray(values[-1]), IDENTITY + 10)
    assert values[-1].unsafe_buffer_pointer() == pointer


def test_donation_spares_who_still_reads(client, slow):
    increment, negate = load(client, INCREMENT), load(client, NEGATE)
    (y,) = slow.execute([put(client)])
    copy = y.clone()
    (negated,) = negate.execute([y])
    (after,) = increment.execute([y])
    np.testing.assert_array_equal(np.asarray(after), IDENTITY + 1)
    np.testing.assert_array_equal(np.asarray(copy), IDENTITY)
    np.testing.assert_array_equal(np.asarray(negated), -IDENTITY)


def test_donated_arguments_of_a_long_program(client):
    text = SLOW.replace("TRIPS", "300").replace(
        "HloModule slow", "HloModule slow, input_output_alias={ {}: (0, {}) }"
    )
    x = put(client)
    view = np.asarray(x)
    (y,) = load(client, text).execute([x])
    assert x.is_deleted()
    np.testing.assert_array_equal(np.asarray(y), IDENTITY)
    np.testing.assert_array_equal(view, IDENTITY)


def test_memory_is_given_back(client, slow):
    (y,) = slow.execute([put(client)])
    y.block_until_ready()
    # The thread lets go of it soon after it has told.
    until = time.monotonic() + 20
    while any(_is_execution_of(slow, o) for o in gc.get_objects()):
        assert time.monotonic() < until
        time.sleep(0.001)


def _is_execution_of(executable, o):
    return type(o).__name__ == "_Execution" and o.launcher is executable._launcher


def test_who_adds_too_much_waits(client):
    slow = load(client, SLOW.replace("TRIPS", "20"))
    x = put(client)
    results = [slow.execute([x])[0] for _ in range(MAX_QUEUED + 20)]
    assert results[15].is_ready()
    np.testing.assert_array_equal(np.asarray(results[-1]), IDENTITY)


def test_tokens_wait(client, slow):
    outputs, token = slow.execute_with_token([put(client)])
    token.block_until_ready()
    assert outputs[0].is_ready()


def test_many_threads(client, slow):
    negate = load(client, NEGATE)
    failures = []

    def work(seed):
        x = put(client, np.full((200, 200), seed, np.float32))
        for n in range(30):
            (x,) = negate.execute([x])
            if n % 10 == seed % 10:
                slow.execute([put(client)])
        if not np.array_equal(np.asarray(x), np.full((200, 200), seed, np.float32)):
            failures.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not failures
