"""run_participants: what needs no oracle, and what goes wrong: nobody ever waits for ever."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from haloc.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    HloError,
    InvalidArgumentError,
    VerificationError,
)
from haloc.formats.hlo_text import parse_module
from haloc.interpreter import HostTransfers, run, run_participants
from haloc.verifier import verify

ADD = (
    "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
    "one { one.x = f32[2] parameter(0)\n ROOT sum = f32[2] all-reduce(one.x), to_apply=add,"
    " replica_groups={} }\n"
    "none { a = f32[2] parameter(0)\n ROOT b = f32[2] negate(a) }\n"
    "other { other.x = f32[2] parameter(0)\n ROOT moved = f32[2] collective-permute(other.x),"
    " source_target_pairs={{0,1}} }\n"
)


def program(*lines: str, regions: str = ADD, inputs: str = "x = f32[2] parameter(0)"):
    module = parse_module(regions + "ENTRY e {\n" + inputs + "\n" + "\n".join(lines) + " }")
    verify(module)
    return module


def vectors(count: int) -> list[list[np.ndarray]]:
    return [[np.array([k, 10 * k], np.float32)] for k in range(count)]


def test_a_group_of_one():
    module = program("ROOT r = f32[2] all-reduce(x), to_apply=add, replica_groups={{0}}")
    assert run(module, [np.float32([1, 2])]).tolist() == [1, 2]


def test_one_participant_cannot_meet_two():
    module = program("ROOT r = f32[2] all-reduce(x), to_apply=add, replica_groups={{0,1}}")
    with pytest.raises(VerificationError, match="out of range: 1"):
        run(module, [np.float32([1, 2])])


def test_tuple_all_to_all():
    module = program(
        "ROOT r = (f32[2], f32[2]) all-to-all(x, y), replica_groups={{1,0}}",
        inputs="x = f32[2] parameter(0)\n y = f32[2] parameter(1)",
    )
    given = [[np.full(2, 10 * k + i, np.float32) for i in range(2)] for k in range(2)]
    results = run_participants(module, given, 2)
    # Member 0 of the group is replica 1.
    assert [[int(x[0]) for x in r] for r in results] == [[11, 1], [10, 0]]


def test_several_operands():
    module = program(
        "y = f32[] parameter(1)",
        "ROOT r = (f32[2], f32[]) all-reduce(x, y), to_apply=add, replica_groups={{0,2},{1}}",
    )
    given = [[*one, np.float32(k)] for k, one in enumerate(vectors(3))]
    results = run_participants(module, given, 3)
    assert [(a.tolist(), float(b)) for a, b in results] == [
        ([2, 20], 2),
        ([1, 10], 1),
        ([2, 20], 2),
    ]


def test_collective_broadcast():
    module = program("ROOT r = f32[2] collective-broadcast(x), replica_groups={{2,0},{1,3}}")
    results = run_participants(module, vectors(4), 4)
    assert [int(r[0]) for r in results] == [2, 1, 2, 1]


def test_ragged_all_to_all():
    """Participant k sends row 0 to participant 0 and k+1 rows from 1 on to participant 1."""
    module = program(
        "out = f32[4] parameter(1)",
        "starts = s32[2] parameter(2)",
        "sizes = s32[2] parameter(3)",
        "places = s32[2] parameter(4)",
        "expected = s32[2] parameter(5)",
        "ROOT r = f32[4] ragged-all-to-all(x, out, starts, sizes, places, expected),"
        " replica_groups={{0,1}}",
        inputs="x = f32[3] parameter(0)",
    )

    def given(k: int) -> list[np.ndarray]:
        tables = ([0, 1], [1, k + 1], [k, k], [[1, 1], [1, 2]][k])
        rows = np.arange(3, dtype=np.float32) + 10 * (k + 1)
        return [rows, -np.ones(4, np.float32), *(np.array(t, np.int32) for t in tables)]

    first, second = run_participants(module, [given(0), given(1)], 2)
    assert first.tolist() == [10, 20, -1, -1]
    assert second.tolist() == [11, 21, 22, -1]
    wrong = given(0)
    wrong[5] = np.array([1, 3], np.int32)
    with pytest.raises(VerificationError, match="member 1 of the group sends 1 rows, recv_sizes"):
        run_participants(module, [wrong, given(1)], 2)


def test_participants_with_different_sizes():
    """Dimensions whose sizes are known at run time need not be equally large everywhere."""
    module = program(
        "g = f32[<=8] all-gather(x), dimensions={0}, replica_groups={{1,0}}",
        "p = f32[<=8] collective-permute(g), source_target_pairs={{0,1},{1,0}}",
        "ROOT t = (f32[<=8], f32[<=8]) tuple(g, p)",
        inputs="x = f32[<=4] parameter(0)",
    )
    given = [[np.float32([1])], [np.float32([2, 3, 4])]]
    for gathered, permuted in run_participants(module, given, 2):
        assert gathered.tolist() == permuted.tolist() == [2, 3, 4, 1]


ASYNC = [
    ("all-reduce", "f32[2]", "f32[2]", "to_apply=add, replica_groups={}"),
    ("all-gather", "(f32[2], f32[6])", "f32[6]", "dimensions={0}, replica_groups={}"),
    (
        "collective-permute",
        "(f32[2], f32[2], u32[], u32[])",
        "f32[2]",
        "source_target_pairs={{0,1},{1,2},{2,0}}",
    ),
    ("all-to-all", "((f32[2]), f32[2])", "f32[2]", "channel_id=1, dimensions={0}"),
]


@pytest.mark.parametrize(("opcode", "state", "result", "attrs"), ASYNC)
def test_a_pair_is_the_op(opcode, state, result, attrs):
    pair = program(f"s = {state} {opcode}-start(x), {attrs}", f"ROOT d = {result} {opcode}-done(s)")
    whole = program(f"ROOT r = {result} {opcode}(x), {attrs}")
    got, wanted = (run_participants(m, vectors(3), 3) for m in (pair, whole))
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


# --- send and recv ------------------------------------------------------------------------------

RING = '"{{0,1},{1,2},{2,0}}"'


def ring(pairs: str = RING, channel: int = 0) -> list[str]:
    attrs = f"channel_id={channel}, frontend_attributes={{_xla_send_recv_source_target_pairs="
    attrs += f"{pairs}}}"
    return [
        "t = token[] after-all()",
        f"r = (f32[2], u32[], token[]) recv(t), {attrs}",
        f"s = (f32[2], u32[], token[]) send(x, t), {attrs}",
        f"sd = token[] send-done(s), {attrs}",
        f"rd = (f32[2], token[]) recv-done(r), {attrs}",
        "ROOT v = f32[2] get-tuple-element(rd), index=0",
    ]


def test_a_ring_of_sends():
    results = run_participants(program(*ring()), vectors(3), 3)
    assert [int(r[1]) for r in results] == [20, 0, 10]


def test_a_channel_joins_partitions():
    results = run_participants(program(*ring('"{{0,1}}"', channel=4)), vectors(4), 2, 2)
    assert [int(r[1]) for r in results] == [0, 0, 0, 20]


def test_nothing_is_ever_sent():
    lines = [line for line in ring() if " send" not in line]
    with pytest.raises(InvalidArgumentError, match=r"recv-done: participant 0 .* waits at rd for"):
        run_participants(program(*lines), vectors(3), 3)


def test_several_on_one_channel_need_pairs():
    lines = [line.split(", frontend")[0] for line in ring(channel=7)]
    with pytest.raises(InvalidArgumentError, match="share channel 7; source_target_pairs must say"):
        run_participants(program(*lines), vectors(2), 2)


def test_a_channel_of_two_without_pairs():
    """One branch sends, the other receives: the channel alone joins them."""
    regions = ADD + (
        "give { give.x = f32[2] parameter(0)\n t = token[] after-all()\n"
        " s = (f32[2], u32[], token[]) send(give.x, t), channel_id=2\n"
        " d = token[] send-done(s), channel_id=2\n ROOT give.r = f32[2] negate(give.x) }\n"
        "take { take.x = f32[2] parameter(0)\n take.t = token[] after-all()\n"
        " r = (f32[2], u32[], token[]) recv(take.t), channel_id=2\n"
        " take.d = (f32[2], token[]) recv-done(r), channel_id=2\n"
        " ROOT v = f32[2] get-tuple-element(take.d), index=0 }\n"
    )
    module = diverging("give", "take", regions)
    results = run_participants(module, [[np.float32([k, 5])] for k in (3, 4)], 2)
    assert [r.tolist() for r in results] == [[-3, -5], [3, 5]]
    with pytest.raises(InvalidArgumentError, match="share channel 2"):
        run_participants(module, vectors(3), 3)


# --- Going wrong --------------------------------------------------------------------------------


def diverging(first: str, second: str, regions: str = ADD):
    """Replica 0 calls `first`, the others `second`."""
    return program(
        "r = u32[] replica-id()",
        "z = u32[] constant(0)",
        "p = pred[] compare(r, z), direction=EQ",
        f"ROOT c = f32[2] conditional(p, x, x), true_computation={first},"
        f" false_computation={second}",
        regions=regions,
    )


def test_a_participant_that_never_comes():
    with pytest.raises(InvalidArgumentError) as info:
        run_participants(diverging("one", "none"), vectors(3), 3)
    assert info.value.message == (
        "all-reduce: participant 0 (replica 0, partition 0) waits at sum for participant 1 "
        "(replica 1, partition 0), which has finished, participant 2 (replica 2, partition 0), "
        "which has finished"
    )


def test_participants_that_wait_for_each_other():
    with pytest.raises(InvalidArgumentError) as info:
        run_participants(diverging("one", "other"), vectors(2), 2)
    assert "waits at sum for participant 1 (replica 1, partition 0), which waits at moved" in str(
        info.value
    )
    assert any("collective-permute" in note for note in info.value.__notes__)


def test_an_error_in_one_stops_all():
    module = program("ROOT r = f32[2] all-reduce(x), to_apply=add, replica_groups={}")
    given = vectors(4)
    given[2] = [np.zeros(3, np.float32)]
    with pytest.raises(InvalidArgumentError, match="argument 0 is an array") as info:
        run_participants(module, given, 4)
    assert "in participant 2 (replica 2, partition 0)" in info.value.__notes__


def test_groups_that_do_not_fit():
    module = program("ROOT r = f32[2] all-reduce(x), to_apply=add, replica_groups={{0,1}}")
    with pytest.raises(VerificationError, match=r"in CROSS_REPLICA mode .* missing: 2, 3"):
        run_participants(module, vectors(4), 4)


def test_shards_that_do_not_fit():
    module = program("ROOT r = f32[6] all-gather(x), dimensions={0}, replica_groups={}")
    with pytest.raises(VerificationError, match=r"wants 6 in dimension 0, but .* give 4"):
        run_participants(module, vectors(2), 2)


def test_pieces_that_do_not_fit():
    module = program("ROOT r = f32[2] all-to-all(x), dimensions={0}, replica_groups={}")
    with pytest.raises(VerificationError, match="size 2, which is not split evenly by 3"):
        run_participants(module, vectors(3), 3)


def test_one_channel_of_two_ops():
    module = program(
        "r = u32[] replica-id()",
        "z = u32[] constant(0)",
        "p = pred[] compare(r, z), direction=EQ",
        "ROOT c = f32[2] conditional(p, x, x), true_computation=a, false_computation=g",
        regions=ADD + "a { x = f32[2] parameter(0)\n ROOT y = f32[2] all-reduce(x), channel_id=1,"
        " to_apply=add, replica_groups={} }\n g { x = f32[2] parameter(0)\n ROOT y = f32[2] "
        "all-gather(x), channel_id=1, dimensions={0}, replica_groups={{0},{1}} }\n",
    )
    with pytest.raises(HloError):
        run_participants(module, vectors(2), 2)


def test_arguments_of_all():
    module = program("ROOT r = f32[2] negate(x)")
    with pytest.raises(InvalidArgumentError, match=r"2 replicas of 3 .* 6 .*given 5"):
        run_participants(module, vectors(5), 2, 3)


def test_counts_of_the_header_and_values_of_each():
    module = parse_module(
        "HloModule m, replica_count=2, num_partitions=2\n"
        "ENTRY e { x = f32[2] parameter(0)\n ROOT r = f32[2] negate(x) }"
    )
    seen: list[tuple[int, str]] = []
    run_participants(module, vectors(4), on_value=lambda p, i, _: seen.append((p, i.name)))
    assert sorted(seen) == sorted((p, n) for p in range(4) for n in ("x", "r"))


def test_no_thread_is_left():
    before = threading.active_count()
    with pytest.raises(InvalidArgumentError):
        run_participants(diverging("one", "none"), vectors(3), 3)
    assert threading.active_count() == before


# --- The host -----------------------------------------------------------------------------------

FEED = [
    "t = token[] after-all()",
    "f = ((f32[2], s32[]), token[]) infeed(t)",
    "d = (f32[2], s32[]) get-tuple-element(f), index=0",
    "a = f32[2] get-tuple-element(d), index=0",
    "u = token[] get-tuple-element(f), index=1",
    "s = f32[2] add(a, x)",
    "o = token[] outfeed(s, u), outfeed_shape=f32[2]",
    "p = token[] outfeed(d, o)",
    "ROOT n = f32[2] negate(s)",
]


def test_infeed_and_outfeed():
    host = HostTransfers(timeout_s=5)
    for participant in range(2):
        value = (np.full(2, 100 * participant, np.float32), np.int32(participant))
        host.transfer_to_infeed(value, participant)
    run_participants(program(*FEED), vectors(2), 2, host=host)
    for participant in range(2):
        first = host.transfer_from_outfeed(participant)
        assert first.tolist() == [101 * participant, 110 * participant]
        assert int(host.transfer_from_outfeed(participant)[1]) == participant


def test_a_host_that_feeds_late():
    host = HostTransfers(timeout_s=30)
    value = (np.ones(2, np.float32), np.int32(7))
    timer = threading.Timer(0.05, lambda: host.transfer_to_infeed(value))
    timer.start()
    assert run(program(*FEED), vectors(1)[0], host=host).tolist() == [-1, -1]
    timer.join()


def test_a_host_that_feeds_nothing_or_wrong():
    with pytest.raises(DeadlineExceededError, match="infeed: nothing came for participant 0"):
        run(program(*FEED), vectors(1)[0], host=HostTransfers(timeout_s=0.01))
    host = HostTransfers()
    host.transfer_to_infeed(np.ones(2, np.float32))
    with pytest.raises(InvalidArgumentError, match=r"infeed is an array .* wanted \(f32"):
        run(program(*FEED), vectors(1)[0], host=host)
    with pytest.raises(FailedPreconditionError, match="host=HostTransfers"):
        run(program(*FEED), vectors(1)[0])


def test_send_and_recv_with_the_host():
    host = HostTransfers(timeout_s=5)
    attrs = "is_host_transfer=true"
    module = program(
        "t = token[] after-all()",
        f"s = (f32[2], u32[], token[]) send(x, t), channel_id=3, {attrs}",
        f"sd = token[] send-done(s), channel_id=3, {attrs}",
        f"r = (f32[2], u32[], token[]) recv(sd), channel_id=4, {attrs}",
        f"rd = (f32[2], token[]) recv-done(r), channel_id=4, {attrs}",
        "ROOT v = f32[2] get-tuple-element(rd), index=0",
    )
    host.send_to_device(np.float32([5, 6]), channel_id=4)
    assert run(module, [np.float32([1, 2])], host=host).tolist() == [5, 6]
    assert host.receive_from_device(channel_id=3).tolist() == [1, 2]
