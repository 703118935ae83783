"""Passes and ops that depend on others: what is merged, dropped, kept in order, made one op."""

from __future__ import annotations

import numpy as np
import pytest

from haloc.formats.hlo_text import parse_module
from haloc.interpreter import HostTransfers, run, run_participants
from haloc.ir.module import HloModule
from haloc.passes.driver import PassOptions
from haloc.passes.pipelines import run_pipeline
from haloc.verifier import verify

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"


def optimized(*lines: str, regions: str = "") -> HloModule:
    text = ADD + regions + "ENTRY e { x = f32[4] parameter(0)\n" + "\n".join(lines) + " }"
    module = parse_module(text)
    verify(module)
    run_pipeline(module, "cpu", PassOptions(check=True))
    return module


def count(module: HloModule, opcode: str) -> int:
    return sum(i.opcode == opcode for i in module.instructions())


def all_reduce(name: str, attrs: str) -> str:
    return f"{name} = f32[4] all-reduce(x), to_apply=add, replica_groups={{}}{attrs}"


@pytest.mark.parametrize("channels", [(1, 2), (0, 0)])
def test_equal_all_reduces_stay_apart(channels):
    first, second = (f", channel_id={c}" if c else "" for c in channels)
    module = optimized(
        all_reduce("a", first), all_reduce("b", second), "ROOT r = f32[4] multiply(a, b)"
    )
    assert count(module, "all-reduce") == 2


def test_an_unused_all_reduce_is_dropped():
    module = optimized(all_reduce("a", ""), "ROOT r = f32[4] negate(x)")
    assert count(module, "all-reduce") == 0


def test_an_all_reduce_of_constants_is_not_folded():
    module = optimized(
        "one = f32[4] constant({1,1,1,1})",
        "ROOT r = f32[4] all-reduce(one), to_apply=add, replica_groups={}",
    )
    results = run_participants(module, [[np.zeros(4, np.float32)]] * 3, 3)
    assert [r.tolist() for r in results] == [[3] * 4] * 3


def test_a_collective_stays_in_its_loop():
    regions = (
        "body { s = (s32[], f32[4], f32[4]) parameter(0)\n"
        " i = s32[] get-tuple-element(s), index=0\n x = f32[4] get-tuple-element(s), index=1\n"
        " y = f32[4] get-tuple-element(s), index=2\n one = s32[] constant(1)\n"
        " j = s32[] add(i, one)\n"
        " z = f32[4] all-reduce(x), to_apply=add, channel_id=1, replica_groups={}\n"
        " w = f32[4] add(y, z)\n ROOT t = (s32[], f32[4], f32[4]) tuple(j, x, w) }\n"
        "condition { s = (s32[], f32[4], f32[4]) parameter(0)\n"
        " i = s32[] get-tuple-element(s), index=0\n"
        " n = s32[] constant(3)\n ROOT c = pred[] compare(i, n), direction=LT }\n"
    )
    module = optimized(
        "zero = s32[] constant(0)",
        "s = (s32[], f32[4], f32[4]) tuple(zero, x, x)",
        "w = (s32[], f32[4], f32[4]) while(s), condition=condition, body=body",
        "ROOT r = f32[4] get-tuple-element(w), index=2",
        regions=regions,
    )
    (place,) = [i.computation for i in module.instructions() if i.opcode == "all-reduce"]
    assert place is not module.entry
    results = run_participants(module, [[np.full(4, k, np.float32)] for k in (1, 2)], 2)
    assert [int(r[0]) for r in results] == [10, 11]


def test_partition_ids_are_not_folded():
    module = optimized(
        "p = u32[] partition-id()",
        "f = f32[] convert(p)",
        "b = f32[4] broadcast(f), dimensions={}",
        "ROOT r = f32[4] add(b, x)",
    )
    results = run_participants(module, [[np.zeros(4, np.float32)]] * 2, 1, 2)
    assert [int(r[0]) for r in results] == [0, 1]


PAIRS = [
    ("s = f32[4] all-reduce-start(x), to_apply=add, replica_groups={}", "all-reduce-done(s)"),
    (
        "s = (f32[4], f32[4], u32[], u32[]) collective-permute-start(x),"
        " source_target_pairs={{0,1},{1,0}}",
        "collective-permute-done(s)",
    ),
    ("s = ((f32[4]), f32[4], s32[]) all-to-all-start(x), dimensions={0}", "all-to-all-done(s)"),
    ("s = ((f32[4], f32[4]), f32[4]) subtract-start(x, x)", "subtract-done(s)"),
    ("s = (f32[4], f32[4], u32[]) copy-start(x)", "copy-done(s)"),
]


@pytest.mark.parametrize(("start", "done"), PAIRS, ids=lambda text: text.split("(")[0])
def test_pairs_become_the_op(start, done):
    """A backend sees no asynchronous op, and the values stay."""
    text = ADD + f"ENTRY e {{ x = f32[4] parameter(0)\n {start}\n ROOT d = f32[4] {done} }}"
    given = [[np.arange(4, dtype=np.float32) + 10 * k] for k in range(2)]
    before = run_participants(parse_module(text), given, 2)
    module = parse_module(text)
    run_pipeline(module, "cpu", PassOptions(check=True))
    assert not [i for i in module.instructions() if i.opcode.endswith(("-start", "-done"))]
    for a, b in zip(run_participants(module, given, 2), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_pair_through_a_loop():
    """The state between start and done may be the state of a loop."""
    regions = (
        "body { t = ((f32[4], f32[4], u32[]), s32[]) parameter(0)\n"
        " s = (f32[4], f32[4], u32[]) get-tuple-element(t), index=0\n"
        " i = s32[] get-tuple-element(t), index=1\n d = f32[4] copy-done(s)\n"
        " e = f32[4] add(d, d)\n n = (f32[4], f32[4], u32[]) copy-start(e)\n"
        " one = s32[] constant(1)\n j = s32[] add(i, one)\n"
        " ROOT r = ((f32[4], f32[4], u32[]), s32[]) tuple(n, j) }\n"
        "condition { t = ((f32[4], f32[4], u32[]), s32[]) parameter(0)\n"
        " i = s32[] get-tuple-element(t), index=1\n n = s32[] constant(3)\n"
        " ROOT c = pred[] compare(i, n), direction=LT }\n"
    )
    module = optimized(
        "s = (f32[4], f32[4], u32[]) copy-start(x)",
        "zero = s32[] constant(0)",
        "t = ((f32[4], f32[4], u32[]), s32[]) tuple(s, zero)",
        "w = ((f32[4], f32[4], u32[]), s32[]) while(t), condition=condition, body=body",
        "l = (f32[4], f32[4], u32[]) get-tuple-element(w), index=0",
        "ROOT d = f32[4] copy-done(l)",
        regions=regions,
    )
    assert count(module, "copy-start") == count(module, "copy-done") == 0
    assert run(module, [np.ones(4, np.float32)]).tolist() == [8] * 4


def test_transfers_stay_and_keep_their_order():
    """Without tokens between them, the order written is the order kept."""
    module = optimized(
        "t = token[] after-all()",
        "u = token[] after-all()",
        "a = token[] outfeed(x, t)",
        "y = f32[4] negate(x)",
        "b = token[] outfeed(y, u)",
        "f = (f32[4], token[]) infeed(t)",
        "g = (f32[4], token[]) infeed(u)",
        "k = f32[4] get-tuple-element(g), index=0",
        "c = token[] outfeed(k, t)",
        "ROOT r = f32[4] negate(x)",
    )
    assert count(module, "infeed") == 2 and count(module, "outfeed") == 3
    host = HostTransfers(timeout_s=1)
    for k in (5, 6):
        host.transfer_to_infeed(np.full(4, k, np.float32))
    run(module, [np.ones(4, np.float32)], host=host)
    assert [int(host.transfer_from_outfeed()[0]) for _ in range(3)] == [1, -1, 6]


def test_sends_stay():
    module = optimized(
        "t = token[] after-all()",
        "s = (f32[4], u32[], token[]) send(x, t), channel_id=1, is_host_transfer=true",
        "sd = token[] send-done(s), channel_id=1, is_host_transfer=true",
        "ROOT r = f32[4] negate(x)",
    )
    assert count(module, "send") == count(module, "send-done") == 1
