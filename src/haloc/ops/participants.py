"""Who works together in a collective: groups and pairs of participants, as flattened logical ids.

A module runs as num_replicas x num_partitions participants. The flattened logical id of
(replica, partition) is `replica * num_partitions + partition`; a device assignment turns it into a
device. The interpreter, the verifier and the runtime all ask here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum

from haloc.ir.module import HloInstruction
from haloc.ops.replica_groups import ReplicaGroups
from haloc.ops.table import OPS, attr, invalid

Group = tuple[int, ...]

TRANSFER_PAIRS = "_xla_send_recv_source_target_pairs"
_PAIR = re.compile(r"\{\s*(\d+)\s*,\s*(\d+)\s*\}")
_PAIRS = re.compile(rf"\{{\s*({_PAIR.pattern}(\s*,\s*{_PAIR.pattern})*)?\s*\}}")


class GroupMode(Enum):
    """What the numbers in replica_groups or source_target_pairs are."""

    CROSS_REPLICA = "CROSS_REPLICA"
    """Replicas; every partition works by itself."""
    CROSS_PARTITION = "CROSS_PARTITION"
    """Partitions; every replica works by itself."""
    CROSS_REPLICA_AND_PARTITION = "CROSS_REPLICA_AND_PARTITION"
    """Replicas; all partitions of the replicas of a group work together."""
    FLATTENED_ID = "FLATTENED_ID"
    """Flattened logical ids."""


_COUNTED = {
    GroupMode.CROSS_REPLICA: "replica",
    GroupMode.CROSS_PARTITION: "partition",
    GroupMode.CROSS_REPLICA_AND_PARTITION: "replica",
    GroupMode.FLATTENED_ID: "flattened id",
}


def group_mode(instruction: HloInstruction) -> GroupMode:
    """The mode of a collective, by channel_id and, where its row has it, use_global_device_ids.

    Raises VerificationError for use_global_device_ids without a channel_id.
    """
    has_channel = attr(instruction, "channel_id") > 0
    if "use_global_device_ids" not in OPS[instruction.opcode].attr_defaults:
        return GroupMode.CROSS_PARTITION if has_channel else GroupMode.CROSS_REPLICA
    if attr(instruction, "use_global_device_ids"):
        if not has_channel:
            invalid(instruction, "use_global_device_ids goes with a channel_id, given none")
        return GroupMode.FLATTENED_ID
    if has_channel:
        return GroupMode.CROSS_REPLICA_AND_PARTITION
    return GroupMode.CROSS_REPLICA


def listed_groups(instruction: HloInstruction) -> tuple[Group, ...]:
    """replica_groups as written, in the mode's own numbers; () for none or {}."""
    groups: ReplicaGroups | None = attr(instruction, "replica_groups")
    return () if groups is None else groups.groups()


def participant_groups(
    instruction: HloInstruction, num_replicas: int, num_partitions: int
) -> tuple[Group, ...]:
    """The groups in which a collective's participants meet, as flattened logical ids.

    Every participant is in exactly one group. The order within a group is the order of the data:
    member 0's shard comes first in an all-gather, member i gets piece i of a reduce-scatter.
    Without replica_groups all that the mode lets work together are one group. For a collective
    with source_target_pairs a group holds all participants that pairs can join;
    `participant_pairs` has the pairs themselves.

    Raises VerificationError, naming the mode, for ids that are missing, doubled or out of range.
    """
    mode = group_mode(instruction)
    listed: tuple[Group, ...] = ()
    if "replica_groups" in OPS[instruction.opcode].attr_defaults:
        listed = listed_groups(instruction)
        count = _id_count(mode, num_replicas, num_partitions)
        if not listed and mode is GroupMode.FLATTENED_ID:
            wanted = "wanted every id once" if count > 1 else "wanted {{0}}"
            invalid(instruction, f"in {mode.value} mode replica_groups may not be empty; {wanted}")
        if listed:
            _check_all_listed(instruction, mode, listed, count)
    if not listed:
        listed = (tuple(range(_id_count(mode, num_replicas, num_partitions))),)
    return tuple(_flattened(mode, listed, num_replicas, num_partitions))


def participant_pairs(
    instruction: HloInstruction, num_replicas: int, num_partitions: int
) -> tuple[tuple[int, int], ...]:
    """source_target_pairs as (source, target) in flattened logical ids, for all participants.

    Raises VerificationError, naming the mode, for ids out of range and for a source or a target
    that stands twice.
    """
    pairs = attr(instruction, "source_target_pairs")
    return _flattened_pairs(instruction, pairs, num_replicas, num_partitions)


def transfer_pairs(
    instruction: HloInstruction, num_replicas: int, num_partitions: int
) -> tuple[tuple[int, int], ...] | None:
    """`participant_pairs` of a send or recv, whose pairs stand in its frontend attribute
    _xla_send_recv_source_target_pairs; None when it has none."""
    listed = instruction.frontend_attributes.get(TRANSFER_PAIRS)
    if listed is None:
        return None
    if not _PAIRS.fullmatch(listed):
        invalid(instruction, f"{TRANSFER_PAIRS} is {listed!r}, wanted pairs {{{{0,1}},...}}")
    pairs = tuple((int(a), int(b)) for a, b in _PAIR.findall(listed))
    return _flattened_pairs(instruction, pairs, num_replicas, num_partitions)


def _flattened_pairs(
    instruction: HloInstruction,
    pairs: Sequence[tuple[int, int]],
    num_replicas: int,
    num_partitions: int,
) -> tuple[tuple[int, int], ...]:
    mode = group_mode(instruction)
    check_pairs(instruction, pairs)
    count = _id_count(mode, num_replicas, num_partitions)
    _check_range(instruction, mode, "source_target_pairs", (i for p in pairs for i in p), count)
    return tuple(
        (group[source], group[target])
        for group in participant_groups(instruction, num_replicas, num_partitions)
        for source, target in pairs
    )


def check_groups(instruction: HloInstruction, same_size: bool) -> None:
    """What holds of replica_groups for any number of participants.

    No group is empty, no id stands twice and, if `same_size`, all groups are equally large.
    """
    mode, groups = group_mode(instruction), listed_groups(instruction)
    if not all(groups):
        invalid(instruction, "replica_groups has an empty group")
    _check_doubled(instruction, mode, groups)
    sizes = sorted({len(g) for g in groups})
    if same_size and len(sizes) > 1:
        listed = " and ".join(map(str, sizes))
        invalid(instruction, f"replica_groups must be of one size, given groups of {listed}")


def check_pairs(instruction: HloInstruction, pairs: Sequence[tuple[int, int]]) -> None:
    """No source and no target of source_target_pairs stands twice."""
    for number, what in enumerate(("source", "target")):
        twice = _doubled(pair[number] for pair in pairs)
        if twice:
            invalid(
                instruction,
                f"source_target_pairs has {what} {twice[0]} twice",
                f"collective_permute_c{number + 2}",
            )


def _id_count(mode: GroupMode, num_replicas: int, num_partitions: int) -> int:
    """How many ids there are to list in this mode."""
    return {
        GroupMode.CROSS_PARTITION: num_partitions,
        GroupMode.FLATTENED_ID: num_replicas * num_partitions,
    }.get(mode, num_replicas)


def _flattened(
    mode: GroupMode, groups: Iterable[Group], num_replicas: int, num_partitions: int
) -> Iterable[Group]:
    """The groups of flattened ids that groups in the mode's own numbers stand for."""
    replicas, partitions = range(num_replicas), range(num_partitions)
    for group in groups:
        if mode is GroupMode.FLATTENED_ID:
            yield group
        elif mode is GroupMode.CROSS_REPLICA:
            yield from (tuple(r * num_partitions + p for r in group) for p in partitions)
        elif mode is GroupMode.CROSS_PARTITION:
            yield from (tuple(r * num_partitions + p for p in group) for r in replicas)
        else:
            yield tuple(r * num_partitions + p for r in group for p in partitions)


def _check_all_listed(
    instruction: HloInstruction, mode: GroupMode, groups: tuple[Group, ...], count: int
) -> None:
    """Every id from 0 to count - 1 stands in `groups` once."""
    ids = [i for group in groups for i in group]
    _check_range(instruction, mode, "replica_groups", ids, count)
    _check_doubled(instruction, mode, groups)
    missing = sorted(set(range(count)) - set(ids))
    if missing:
        invalid(
            instruction,
            f"in {mode.value} mode replica_groups must contain {_all(mode, count)}; "
            f"missing: {_listed(missing)}",
        )


def _check_range(
    instruction: HloInstruction, mode: GroupMode, name: str, ids: Iterable[int], count: int
) -> None:
    outside = sorted({i for i in ids if not 0 <= i < count})
    if outside:
        invalid(
            instruction,
            f"in {mode.value} mode {name} may contain {_all(mode, count)}; "
            f"out of range: {_listed(outside)}",
        )


def _check_doubled(instruction: HloInstruction, mode: GroupMode, groups: Sequence[Group]) -> None:
    twice = _doubled(i for group in groups for i in group)
    if twice:
        invalid(
            instruction,
            f"in {mode.value} mode replica_groups must contain every {_COUNTED[mode]} once; "
            f"twice: {_listed(twice)}",
        )


def _doubled(ids: Iterable[int]) -> list[int]:
    return sorted(i for i, n in Counter(ids).items() if n > 1)


def _all(mode: GroupMode, count: int) -> str:
    return f"{_COUNTED[mode]} 0" if count == 1 else f"{_COUNTED[mode]}s 0 to {count - 1}"


def _listed(ids: Sequence[int], most: int = 8) -> str:
    shown = ", ".join(map(str, ids[:most]))
    return f"{shown}, ... ({len(ids)} in all)" if len(ids) > most else shown
