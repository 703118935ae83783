"""infeed, outfeed, and send and recv with the host, from running programs."""

import threading

import numpy as np
import pytest

from haloc.errors import HloError, InvalidArgumentError, UnimplementedError
from haloc.xla_client import Shape, make_cpu_client, make_interpreter_client

FEED = """ENTRY e {
  t = token[] after-all()
  i = ((f32[2], s32[]), token[]) infeed(t)
  data = (f32[2], s32[]) get-tuple-element(i), index=0
  x = f32[2] get-tuple-element(data), index=0
  n = s32[] get-tuple-element(data), index=1
  t2 = token[] get-tuple-element(i), index=1
  y = f32[2] negate(x)
  o = token[] outfeed(y, t2), outfeed_shape=f32[2]
  m = s32[] add(n, n)
  ROOT r = (s32[], f32[2]) tuple(m, x)
}"""
X = np.float32([1, 2])


def test_what_is_fed_in_and_out(client, compiled):
    program = compiled(FEED)
    device = client.devices()[0]
    for k in range(3):
        device.transfer_to_infeed((X + np.float32(k), np.int32(7 + k)))
        total, x = program()
        assert total == 2 * (7 + k)
        np.testing.assert_array_equal(x, X + k)
        out = device.transfer_from_outfeed(Shape("f32[2]"))
        np.testing.assert_array_equal(out, -(X + k))


def test_the_clients_own_methods_use_the_first_device(client, compiled):
    program = compiled(FEED)
    client.transfer_to_infeed((X, np.int32(1)))
    program()
    np.testing.assert_array_equal(client.transfer_from_outfeed(Shape("f32[2]")), -X)


@pytest.mark.parametrize("make", [make_cpu_client, make_interpreter_client])
def test_a_program_waits_for_its_infeed(make):
    client = make()
    (device,) = client.devices()
    executable = client.compile_and_load(f"HloModule m\n{FEED}", [device])
    timer = threading.Timer(0.05, device.transfer_to_infeed, [(X, np.int32(3))])
    timer.start()
    total, _ = executable.execute([])
    assert int(np.asarray(total)) == 6
    timer.join()


def test_each_device_has_its_queues():
    client = make_cpu_client(num_devices=2)
    programs = [client.compile_and_load(f"HloModule m\n{FEED}", [d]) for d in client.devices()]
    for number, device in enumerate(client.devices()):
        device.transfer_to_infeed((X, np.int32(number)))
    totals = [int(np.asarray(p.execute([])[0])) for p in reversed(programs)]
    assert totals == [2, 0]


def test_values_of_the_wrong_shape(client, compiled):
    program = compiled(FEED)
    client.transfer_to_infeed((X, np.float32(1)))
    with pytest.raises(InvalidArgumentError, match=r"infeed\[1\] is .*wanted s32\[\]"):
        program()
    client.transfer_to_infeed((X, np.int32(1)))
    program()
    with pytest.raises(InvalidArgumentError, match=r"gives to outfeed is .*wanted s32\[2\]"):
        client.transfer_from_outfeed(Shape("s32[2]"))


TO_HOST = """ENTRY e {
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  t = token[] after-all()
  s1 = (f32[2], u32[], token[]) send(x, t), channel_id=1, is_host_transfer=true
  d1 = token[] send-done(s1), channel_id=1, is_host_transfer=true
  s2 = (f32[2], u32[], token[]) send(y, d1), channel_id=2, is_host_transfer=true
  d2 = token[] send-done(s2), channel_id=2, is_host_transfer=true
  r = (s32[2], u32[], token[]) recv(d2), channel_id=3, is_host_transfer=true
  rd = (s32[2], token[]) recv-done(r), channel_id=3, is_host_transfer=true
  ROOT v = s32[2] get-tuple-element(rd), index=0
}"""
F, S = Shape("f32[2]"), Shape("s32[2]")


def test_a_callback_of_send_and_recv(client, compiled):
    seen = []

    def function(x, y):
        seen.append((x.flags.writeable, y.dtype))
        return ((x * 10 + y).astype(np.int32),)

    callback = client.make_python_callback_from_host_send_and_recv(
        function, [F, F], [S], [1, 2], [3]
    )
    program = compiled(TO_HOST, host_callbacks=[callback])
    for k in range(2):
        (result,) = program(X, X + np.float32(k))
        np.testing.assert_array_equal(result, X * 11 + k)
    assert seen == [(False, np.float32)] * 2


def test_its_exceptions(client, compiled):
    def function(x, y):
        raise ValueError("boom")

    callback = client.make_python_callback_from_host_send_and_recv(
        function, [F, F], [S], [1, 2], [3]
    )
    program = compiled(TO_HOST, host_callbacks=[callback])
    with pytest.raises((HloError, ValueError), match="boom"):
        program(X, X)


@pytest.mark.parametrize(
    ("shapes", "function", "message"),
    [
        (
            [F, S],
            lambda x, y: (x,),
            r"operand 1 of a send and recv callback is float32\[2\]",
        ),
        (
            [F, F],
            lambda x, y: (x,),
            r"callback returned f32\[2\] as result 0",
        ),
        ([F, F], lambda x, y: x, "callback returned ndarray; wanted a tuple of 1 arrays"),
    ],
)
def test_what_does_not_fit_it(client, compiled, shapes, function, message):
    make = client.make_python_callback_from_host_send_and_recv
    program = compiled(TO_HOST, host_callbacks=[make(function, shapes, [S], [1, 2], [3])])
    with pytest.raises(HloError, match=message):
        program(X, X)


def test_wrong_arguments_of_it(client):
    make = client.make_python_callback_from_host_send_and_recv
    with pytest.raises(InvalidArgumentError, match="has 1 and 2 operand_shapes and send_channel"):
        make(print, [F], [], [1, 2], [])
    with pytest.raises(UnimplementedError, match=r"serializer=\.\.\."):
        make(print, [], [], [], [], print)
