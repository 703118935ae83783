"""run_participants gives what jaxlib gives on eight devices, in every group mode."""

from __future__ import annotations

import numpy as np
import pytest

from haloc.formats.hlo_text import parse_module
from haloc.interpreter import run_participants
from haloc.verifier import verify
from tests.oracle import run_on_devices

REGIONS = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
"""

PROGRAM = "ENTRY e {{ x = f32[4,2] parameter(0)\n ROOT r = {} }}"

ALL_REDUCE = "f32[4,2] all-reduce(x), to_apply=add, "
ALL_GATHER = "all-gather(x), dimensions="
REDUCE_SCATTER = "reduce-scatter(x), to_apply=add, dimensions="
ALL_TO_ALL = "f32[4,2] all-to-all(x), dimensions="
PERMUTE = "f32[4,2] collective-permute(x), "
GLOBAL = "channel_id=1, use_global_device_ids=true, replica_groups="

CASES = [
    # (replicas, partitions, instruction)
    (2, 4, ALL_REDUCE + "replica_groups={{1,0}}"),
    (2, 4, ALL_REDUCE + "replica_groups={}"),
    (4, 2, ALL_REDUCE + "replica_groups={{0,2},{1,3}}"),
    (2, 4, ALL_REDUCE + "channel_id=1, replica_groups={{1},{0}}"),
    (4, 2, ALL_REDUCE + "channel_id=1, replica_groups={{0,3},{2,1}}"),
    (2, 4, ALL_REDUCE + GLOBAL + "{{0,7},{1,2},{6,5},{3,4}}"),
    (2, 4, ALL_REDUCE + GLOBAL + "[4,2]<=[2,4]T(1,0)"),
    (8, 1, ALL_REDUCE + "replica_groups={{0,1,2},{3},{4,5,6,7}}"),
    (1, 8, ALL_REDUCE + GLOBAL + "[1,8]<=[8]"),
    (2, 4, "f32[8,2] " + ALL_GATHER + "{0}, replica_groups={{1,0}}"),
    (2, 4, "f32[4,8] " + ALL_GATHER + "{1}, " + GLOBAL + "{{3,1,2,0},{4,5,7,6}}"),
    (4, 2, "f32[4,8] " + ALL_GATHER + "{1}, channel_id=1, replica_groups={{1,0},{2,3}}"),
    (2, 4, "f32[2,2] " + REDUCE_SCATTER + "{0}, replica_groups={{1,0}}"),
    (2, 4, "f32[1,2] " + REDUCE_SCATTER + "{0}, " + GLOBAL + "{{0,7,1,2},{6,5,3,4}}"),
    (2, 4, ALL_TO_ALL + "{0}, replica_groups={{1,0}}"),
    (2, 4, ALL_TO_ALL + "{1}, channel_id=1, replica_groups={{0,2},{3,1}}"),
    (2, 4, ALL_TO_ALL + "{0}, channel_id=1, replica_groups=[1,4]<=[4]"),
    (2, 4, PERMUTE + "source_target_pairs={{0,1}}"),
    (2, 4, PERMUTE + "channel_id=1, source_target_pairs={{0,2},{3,1},{2,0}}"),
    (8, 1, PERMUTE + "source_target_pairs={{0,7},{7,6},{6,0}}"),
]


def check(text: str, replicas: int, partitions: int, shapes: list[tuple[type, tuple]]) -> None:
    """Both give the same on random small integers, which add exactly."""
    rng = np.random.default_rng(replicas)
    given = [
        [rng.integers(0, 100, dims).astype(dtype) for dtype, dims in shapes]
        for _ in range(replicas * partitions)
    ]
    module = parse_module(text)
    verify(module)
    ours = run_participants(module, given, replicas, partitions)
    theirs = run_on_devices(text, given, replicas, partitions)
    for mine, other in zip(ours, theirs, strict=True):
        values = mine if isinstance(mine, tuple) else (mine,)
        for a, b in zip(values, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("replicas", "partitions", "instruction"), CASES)
def test_collective(replicas, partitions, instruction):
    text = REGIONS + PROGRAM.format(instruction)
    check(text, replicas, partitions, [(np.float32, (4, 2))])


def test_participants_know_their_numbers():
    text = (
        "ENTRY e { x = u32[2] parameter(0)\n r = u32[] replica-id()\n p = u32[] partition-id()\n"
        " ten = u32[] constant(10)\n t = u32[] multiply(r, ten)\n n = u32[] add(t, p)\n"
        " w = u32[2] broadcast(n), dimensions={}\n ROOT s = u32[2] add(w, x) }"
    )
    check(text, 2, 4, [(np.uint32, (2,))])


def test_collectives_in_a_loop():
    text = REGIONS + (
        "body { s = (s32[], f32[4]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
        " x = f32[4] get-tuple-element(s), index=1\n one = s32[] constant(1)\n"
        " j = s32[] add(i, one)\n"
        " y = f32[4] all-reduce(x), to_apply=add, channel_id=1, replica_groups={}\n"
        " z = f32[4] collective-permute(y), channel_id=2, source_target_pairs={{0,1},{1,2}}\n"
        " ROOT t = (s32[], f32[4]) tuple(j, z) }\n"
        "condition { s = (s32[], f32[4]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
        " n = s32[] constant(3)\n ROOT c = pred[] compare(i, n), direction=LT }\n"
        "ENTRY e { x = f32[4] parameter(0)\n zero = s32[] constant(0)\n"
        " s = (s32[], f32[4]) tuple(zero, x)\n"
        " w = (s32[], f32[4]) while(s), condition=condition, body=body\n"
        " ROOT r = f32[4] get-tuple-element(w), index=1 }"
    )
    check(text, 2, 4, [(np.float32, (4,))])
