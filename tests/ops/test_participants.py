"""participant_groups and participant_pairs: every mode, and each error names the mode."""

from __future__ import annotations

import pytest

from haloc.errors import VerificationError
from haloc.formats.hlo_text import parse_module
from haloc.ir.module import HloInstruction
from haloc.ops.participants import GroupMode, group_mode, participant_groups, participant_pairs


def collective(text: str) -> HloInstruction:
    module = parse_module(
        "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
        f"ENTRY e {{ x = f32[8] parameter(0)\n ROOT r = {text} }}"
    )
    return module.entry.root


def all_reduce(attrs: str) -> HloInstruction:
    return collective(f"f32[8] all-reduce(x), {attrs}, to_apply=add")


def permute(attrs: str) -> HloInstruction:
    return collective(f"f32[8] collective-permute(x), {attrs}")


def all_to_all(attrs: str) -> HloInstruction:
    return collective(f"f32[8] all-to-all(x), dimensions={{0}}, {attrs}")


@pytest.mark.parametrize(
    ("instruction", "mode"),
    [
        (all_reduce("replica_groups={}"), GroupMode.CROSS_REPLICA),
        (all_reduce("channel_id=1, replica_groups={}"), GroupMode.CROSS_REPLICA_AND_PARTITION),
        (
            all_reduce("channel_id=1, use_global_device_ids=true, replica_groups={{0}}"),
            GroupMode.FLATTENED_ID,
        ),
        (all_to_all("replica_groups={}"), GroupMode.CROSS_REPLICA),
        (all_to_all("channel_id=3, replica_groups={}"), GroupMode.CROSS_PARTITION),
        (permute("source_target_pairs={{0,1}}"), GroupMode.CROSS_REPLICA),
        (permute("channel_id=1, source_target_pairs={{0,1}}"), GroupMode.CROSS_PARTITION),
    ],
)
def test_mode(instruction, mode):
    assert group_mode(instruction) is mode


GLOBAL = "channel_id=1, use_global_device_ids=true, replica_groups="


@pytest.mark.parametrize(
    ("instruction", "groups"),
    [
        (all_reduce("replica_groups={{1,0}}"), ((4, 0), (5, 1), (6, 2), (7, 3))),
        (all_reduce("replica_groups={}"), ((0, 4), (1, 5), (2, 6), (3, 7))),
        (
            all_reduce("replica_groups={{0},{1}}"),
            ((0,), (1,), (2,), (3,), (4,), (5,), (6,), (7,)),
        ),
        (
            all_reduce("channel_id=1, replica_groups={{1},{0}}"),
            ((4, 5, 6, 7), (0, 1, 2, 3)),
        ),
        (all_reduce("channel_id=1, replica_groups={}"), ((0, 1, 2, 3, 4, 5, 6, 7),)),
        (all_reduce(GLOBAL + "{{0,7},{6,1,2},{3,4,5}}"), ((0, 7), (6, 1, 2), (3, 4, 5))),
        (all_reduce(GLOBAL + "[4,2]<=[2,4]T(1,0)"), ((0, 4), (1, 5), (2, 6), (3, 7))),
        (all_reduce(GLOBAL + "mesh['a'=2,'b'=4] {'b'}"), ((0, 1, 2, 3), (4, 5, 6, 7))),
        (
            all_to_all("channel_id=1, replica_groups={{0,2},{3,1}}"),
            ((0, 2), (4, 6), (3, 1), (7, 5)),
        ),
        (all_to_all("channel_id=1, replica_groups={}"), ((0, 1, 2, 3), (4, 5, 6, 7))),
        (all_to_all("channel_id=1, replica_groups=[2,2]<=[4]"), ((0, 1), (4, 5), (2, 3), (6, 7))),
        (permute("channel_id=1, source_target_pairs={{0,1}}"), ((0, 1, 2, 3), (4, 5, 6, 7))),
        (permute("source_target_pairs={{0,1}}"), ((0, 4), (1, 5), (2, 6), (3, 7))),
    ],
)
def test_groups_of_two_replicas_and_four_partitions(instruction, groups):
    assert participant_groups(instruction, 2, 4) == groups


@pytest.mark.parametrize(
    ("attrs", "pairs"),
    [
        ("source_target_pairs={{0,1},{1,0}}", ((0, 2), (2, 0), (1, 3), (3, 1))),
        ("source_target_pairs={{1,0}}, channel_id=1", ((1, 0), (3, 2))),
        ("source_target_pairs={}", ()),
    ],
)
def test_pairs_of_two_replicas_and_two_partitions(attrs, pairs):
    assert participant_pairs(permute(attrs), 2, 2) == pairs


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (
            all_reduce("use_global_device_ids=true, replica_groups={{0}}"),
            "all-reduce: use_global_device_ids goes with a channel_id, given none",
        ),
        (
            all_reduce(GLOBAL + "{{0,1},{2,3}}"),
            "in FLATTENED_ID mode replica_groups must contain flattened ids 0 to 7; "
            "missing: 4, 5, 6, 7",
        ),
        (all_reduce(GLOBAL + "{}"), "in FLATTENED_ID mode replica_groups may not be empty"),
        (
            all_reduce("replica_groups={{0,1,1}}"),
            "in CROSS_REPLICA mode replica_groups must contain every replica once; twice: 1",
        ),
        (
            all_reduce("channel_id=1, replica_groups={{0,1},{2}}"),
            "in CROSS_REPLICA_AND_PARTITION mode replica_groups may contain replicas 0 to 1; "
            "out of range: 2",
        ),
        (
            all_to_all("channel_id=1, replica_groups={{0,1}}"),
            "all-to-all: in CROSS_PARTITION mode replica_groups must contain partitions 0 to 3; "
            "missing: 2, 3",
        ),
    ],
)
def test_wrong_groups(instruction, message):
    with pytest.raises(VerificationError) as info:
        participant_groups(instruction, 2, 4)
    assert message in str(info.value)


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        (
            "source_target_pairs={{0,4}}, channel_id=1",
            "in CROSS_PARTITION mode source_target_pairs may contain partitions 0 to 3; "
            "out of range: 4",
        ),
        ("source_target_pairs={{0,1},{1,1}}", "source_target_pairs has target 1 twice"),
        ("source_target_pairs={{0,1},{0,0}}", "source_target_pairs has source 0 twice"),
    ],
)
def test_wrong_pairs(attrs, message):
    with pytest.raises(VerificationError) as info:
        participant_pairs(permute(attrs), 2, 4)
    assert message in str(info.value)
