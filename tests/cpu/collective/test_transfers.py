"""send and recv between participants natively: the interpreter's results, and errors in time."""

import time

import numpy as np
import pytest

from haloc.errors import DeadlineExceededError, InvalidArgumentError
from tests.cpu.collective.programs import Native, check


def attributes(channel, pairs=None):
    text = f"channel_id={channel}"
    if pairs is not None:
        listed = ",".join(f"{{{a},{b}}}" for a, b in pairs)
        text += f', frontend_attributes={{_xla_send_recv_source_target_pairs="{{{listed}}}"}}'
    return text


def ring(count, shift=1):
    return [(k, (k + shift) % count) for k in range(count)]


def rows(count, size=2):
    return [[np.arange(size, dtype=np.float32) + 10 * k] for k in range(count)]


def entry(*lines, regions=""):
    body = "\n".join(f"  {line}" for line in lines)
    return f"HloModule m\n{regions}ENTRY e {{\n{body}\n}}\n"


def begun(data):
    return f"({data}, u32[], token[])"


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("size", [0, 2, 100_000])
def test_a_ring(count, size):
    a = attributes(0, ring(count))
    text = entry(
        f"x = f32[{size}] parameter(0)",
        "t = token[] after-all()",
        f"s = {begun(f'f32[{size}]')} send(x, t), {a}",
        f"r = {begun(f'f32[{size}]')} recv(t), {a}",
        f"rd = (f32[{size}], token[]) recv-done(r), {a}",
        f"sd = token[] send-done(s), {a}",
        f"ROOT v = f32[{size}] get-tuple-element(rd), index=0",
    )
    results = check(text, rows(count, size), count)
    if size:
        assert [r[0][0] for r in results] == [10 * ((k - 1) % count) for k in range(count)]


def test_calls_that_send_and_wait():
    """No token says that the sends come first: the text's order does."""
    a = attributes(0, ring(3))
    swap = f"""
swap {{
  x = s32[64] parameter(0)
  y = s32[64] negate(x)
  t = token[] after-all()
  s = {begun("s32[64]")} send(y, t), {a}
  u = token[] after-all()
  r = {begun("s32[64]")} recv(u), {a}
  rd = (s32[64], token[]) recv-done(r), {a}
  sd = token[] send-done(s), {a}
  v = s32[64] get-tuple-element(rd), index=0
  ROOT w = s32[64] add(v, x)
}}
"""
    text = entry(
        "x = s32[64] parameter(0)",
        "z = s32[64] multiply(x, x)",
        "c = s32[64] call(z), to_apply=swap",
        "d = s32[64] call(c), to_apply=swap",
        "ROOT m = s32[64] multiply(d, z)",
        regions=swap,
    )
    check(text, [[np.arange(64, dtype=np.int32) + k] for k in range(3)], 3)


def test_a_ring_in_a_loop():
    """Each round passes on what came; two channels go round in opposite ways."""
    there, back = attributes(1, ring(4)), attributes(2, ring(4, -1))
    state = "(s32[], f32[2], f32[2])"
    regions = f"""
more {{
  p = {state} parameter(0)
  k = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(k, n), direction=LT
}}
round {{
  p = {state} parameter(0)
  k = s32[] get-tuple-element(p), index=0
  x = f32[2] get-tuple-element(p), index=1
  y = f32[2] get-tuple-element(p), index=2
  t = token[] after-all()
  s1 = {begun("f32[2]")} send(x, t), {there}
  sd1 = token[] send-done(s1), {there}
  s2 = {begun("f32[2]")} send(y, sd1), {back}
  sd2 = token[] send-done(s2), {back}
  r2 = {begun("f32[2]")} recv(sd2), {back}
  rd2 = (f32[2], token[]) recv-done(r2), {back}
  y2 = f32[2] get-tuple-element(rd2), index=0
  t2 = token[] get-tuple-element(rd2), index=1
  r1 = {begun("f32[2]")} recv(t2), {there}
  rd1 = (f32[2], token[]) recv-done(r1), {there}
  x1 = f32[2] get-tuple-element(rd1), index=0
  x3 = f32[2] add(x1, x)
  one = s32[] constant(1)
  k1 = s32[] add(k, one)
  ROOT out = {state} tuple(k1, x3, y2)
}}
"""
    text = entry(
        "x = f32[2] parameter(0)",
        "zero = s32[] constant(0)",
        f"start = {state} tuple(zero, x, x)",
        f"ROOT w = {state} while(start), condition=more, body=round",
        regions=regions,
    )
    results = check(text, rows(4), 1, 4)
    assert [r[2][0] for r in results] == [10.0, 20.0, 30.0, 0.0]


def test_a_receive_that_goes_round_a_loop():
    """The recv of one round is ended in the next: the claim is loop state."""
    a = attributes(3, ring(3))
    state = f"(s32[], f32[2], {begun('f32[2]')})"
    regions = f"""
more {{
  p = {state} parameter(0)
  k = s32[] get-tuple-element(p), index=0
  n = s32[] constant(4)
  ROOT c = pred[] compare(k, n), direction=LT
}}
round {{
  p = {state} parameter(0)
  k = s32[] get-tuple-element(p), index=0
  x = f32[2] get-tuple-element(p), index=1
  r = {begun("f32[2]")} get-tuple-element(p), index=2
  t = token[] after-all()
  s = {begun("f32[2]")} send(x, t), {a}
  sd = token[] send-done(s), {a}
  next = {begun("f32[2]")} recv(sd), {a}
  rd = (f32[2], token[]) recv-done(r), {a}, control-predecessors={{sd}}
  x1 = f32[2] get-tuple-element(rd), index=0
  one = s32[] constant(1)
  k1 = s32[] add(k, one)
  ROOT out = {state} tuple(k1, x1, next)
}}
"""
    text = entry(
        "x = f32[2] parameter(0)",
        "zero = s32[] constant(0)",
        "t = token[] after-all()",
        f"r = {begun('f32[2]')} recv(t), {a}",
        f"start = {state} tuple(zero, x, r)",
        f"w = {state} while(start), condition=more, body=round",
        "ROOT v = f32[2] get-tuple-element(w), index=1",
        regions=regions,
    )
    results = check(text, rows(3), 1, 3)
    assert [r[0][0] for r in results] == [20.0, 0.0, 10.0]


def test_received_in_another_order():
    """Two values on one channel, ended the other way round; and a value of two arrays."""
    a, pair = attributes(1, [(0, 1)]), "(s8[3], c128[2])"
    text = entry(
        "x = f32[2] parameter(0)",
        "b = s8[3] parameter(1)",
        "c = c128[2] parameter(2)",
        "y = f32[2] negate(x)",
        f"both = {pair} tuple(b, c)",
        "t = token[] after-all()",
        f"s1 = {begun('f32[2]')} send(x, t), {a}",
        f"s2 = {begun('f32[2]')} send(y, t), {a}, control-predecessors={{s1}}",
        f"s3 = {begun(pair)} send(both, t), {a}, control-predecessors={{s2}}",
        f"r1 = {begun('f32[2]')} recv(t), {a}",
        f"r2 = {begun('f32[2]')} recv(t), {a}, control-predecessors={{r1}}",
        f"r3 = {begun(pair)} recv(t), {a}, control-predecessors={{r2}}",
        f"d3 = ({pair}, token[]) recv-done(r3), {a}",
        f"d2 = (f32[2], token[]) recv-done(r2), {a}, control-predecessors={{d3}}",
        f"d1 = (f32[2], token[]) recv-done(r1), {a}, control-predecessors={{d2}}",
        *(f"e{k} = token[] send-done(s{k}), {a}" for k in (1, 2, 3)),
        "v1 = f32[2] get-tuple-element(d1), index=0",
        "v2 = f32[2] get-tuple-element(d2), index=0",
        f"v3 = {pair} get-tuple-element(d3), index=0",
        f"ROOT out = (f32[2], f32[2], {pair}) tuple(v1, v2, v3)",
    )
    given = [[x, np.int8([k, 2, 3]), np.array([k + 1j, 2])] for k, (x,) in enumerate(rows(3))]
    first, second, third = check(text, given, 1, 3)
    assert second[0].tolist() == [0, 1] and second[1].tolist() == [0, -1]
    assert third[0].tolist() == first[0].tolist() == [0, 0]


BY_CHANNEL = f"""
give {{
  x = f32[2] parameter(0)
  t = token[] after-all()
  s = {begun("f32[2]")} send(x, t), channel_id=2
  d = token[] send-done(s), channel_id=2
  ROOT r = f32[2] negate(x)
}}
take {{
  x = f32[2] parameter(0)
  t = token[] after-all()
  r = {begun("f32[2]")} recv(t), channel_id=2
  d = (f32[2], token[]) recv-done(r), channel_id=2
  ROOT v = f32[2] get-tuple-element(d), index=0
}}
"""
BRANCHES = entry(
    "p = pred[] parameter(0)",
    "x = f32[2] parameter(1)",
    "ROOT c = f32[2] conditional(p, x, x), true_computation=give, false_computation=take",
    regions=BY_CHANNEL,
)


def branches(*gives):
    return [[np.bool_(g), x] for g, (x,) in zip(gives, rows(len(gives)))]


def test_a_channel_alone_joins_two():
    results = check(BRANCHES, branches(True, False), 2)
    assert results[1][0].tolist() == [0, 1]


def test_a_channel_alone_joins_only_two():
    native = Native(BRANCHES, 3)
    for gives in ((True, True, False), (False, False, True)):
        with pytest.raises(InvalidArgumentError, match=r"participant shares channel 2; the front"):
            native.run(branches(*gives))


@pytest.mark.parametrize("pairs", [None, [(1, 0)]])
def test_nobody_sends(pairs):
    a = attributes(5, pairs)
    text = entry(
        "x = f32[2] parameter(0)",
        "p = pred[] parameter(1)",
        "ROOT c = f32[2] conditional(p, x, x), true_computation=take, false_computation=leave",
        regions=BY_CHANNEL[BY_CHANNEL.index("take") :].replace("channel_id=2", a)
        + "leave {\n  ROOT x = f32[2] parameter(0)\n}\n",
    )
    native = Native(text, 1, 3)
    start = time.monotonic()
    with pytest.raises(DeadlineExceededError) as caught:
        native.run([[x, np.bool_(k == 0)] for k, (x,) in enumerate(rows(3))], timeout_s=0.2)
    assert time.monotonic() - start < 2
    who = "a participant" if pairs is None else "participant 1 (replica 0, partition 1)"
    wanted = f"waited 0.2 s for {who}, which did not send to participant 0 (replica 0, partition 0)"
    assert wanted in caught.value.message
    assert native.run([[x, np.bool_(False)] for (x,) in rows(3)])


def test_what_nobody_receives_is_given_back():
    """A send does not wait; what is left over is freed."""
    a = attributes(4, ring(2))
    text = entry(
        "x = f32[1000000] parameter(0)",
        "t = token[] after-all()",
        f"s = {begun('f32[1000000]')} send(x, t), {a}",
        f"d = token[] send-done(s), {a}",
        "ROOT y = f32[1000000] negate(x)",
    )
    native = Native(text, 1, 2)
    arguments = rows(2, 1_000_000)
    native.run(arguments)
    before = resident_bytes()
    for _ in range(20):
        native.run(arguments)
    assert resident_bytes() - before < 80e6  # 160 MB were sent


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
