"""Collectives in the native program: a call where the participants meet."""

from __future__ import annotations

from haloc.codegen.kernel import PREFIX, Kernel, Phase
from haloc.cpu.collective.fold import all_reduce, reduce_scatter
from haloc.cpu.collective.move import (
    all_gather,
    all_to_all,
    collective_broadcast,
    collective_permute,
)
from haloc.cpu.collective.ragged import ragged_all_to_all
from haloc.cpu.collective.share import ShareEmitter, ShareText
from haloc.cpu.run_context import RunContext
from haloc.cpu.sequencer import STRUCTURES, Frame, Leaves, Sequencer
from haloc.ir.module import HloInstruction
from haloc.ops.participants import Group, participant_groups

SHARES: dict[str, ShareEmitter] = {
    "all-gather": all_gather,
    "all-reduce": all_reduce,
    "all-to-all": all_to_all,
    "collective-broadcast": collective_broadcast,
    "collective-permute": collective_permute,
    "ragged-all-to-all": ragged_all_to_all,
    "reduce-scatter": reduce_scatter,
}

SMALL_BYTES = 256 * 1024
"""A group's buffers up to this size are all dealt with by the member who comes last: waking the
others to help takes longer."""

_MEET = "declare i32 @haloc_meet(ptr, i64, i64, i64, i64, ptr, i64, ptr, i64)"


def collective(seq: Sequencer, frame: Frame, instruction: HloInstruction) -> Leaves:
    """A kernel whose one phase puts down this participant's buffers and meets the others."""
    sites = seq.sites
    groups = participant_groups(instruction, sites.num_replicas, sites.num_partitions)
    emit = SHARES[instruction.opcode]
    shares = {size: emit(instruction, size, seq.target) for size in {len(g) for g in groups}}
    shapes = [o.shape for o in instruction.operands] + instruction.shape.leaves()
    fault = next(iter(shares.values())).fault
    site = sites.add(instruction, groups, len(shapes), fault)
    size_bytes = sum(s.byte_size for s in shapes)
    text = "".join(s.text for s in shares.values())
    if set(shares) == {1}:
        text += _alone(shares[1], len(shapes), site)
    else:
        is_small = size_bytes * max(shares) <= SMALL_BYTES
        text += _table(groups, sites.all[site].offsets)
        text += _meeting(len(shapes), site, sites.num_partitions, is_small, shares)
    declares = {line: None for s in shares.values() for line in s.declares} | {_MEET: None}
    library = {name: t for s in shares.values() for name, t in s.library.items()}
    # Folding reads every element from everybody before it is written to anybody.
    in_place = (0,) if instruction.opcode == "all-reduce" and len(shapes) == 2 else ()
    phase = Phase(f"{PREFIX}.meet", unit_cost_ns=size_bytes / 5.0, can_fail=True)
    kernel = Kernel(text, (phase,), tuple(declares), library=library, in_place=in_place)
    return seq.place(frame, instruction, kernel)


STRUCTURES.update(dict.fromkeys(SHARES, collective))


_ENTRY = "{ i64, i64, i64 }"


def _table(groups: tuple[Group, ...], offsets: tuple[int, ...]) -> str:
    """By participant: offset of the meeting, place in the group, and members."""
    entries = {}
    for group, offset in zip(groups, offsets, strict=True):
        for rank, participant in enumerate(group):
            entries[participant] = f"{_ENTRY} {{ i64 {offset}, i64 {rank}, i64 {len(group)} }}"
    listed = ", ".join(entries[p] for p in sorted(entries))
    return f"@{PREFIX}.table = internal constant [{len(entries)} x {_ENTRY}] [{listed}]\n"


def _head(buffer_count: int) -> list[str]:
    """The phase's function up to where %buffers holds its buffers' addresses."""
    parameters = ", ".join(f"ptr %b{k}" for k in range(buffer_count))
    lines = [
        f"define i32 @{PREFIX}.meet({parameters}, ptr %scratch, ptr %run) nounwind {{",
        "entry:",
        f"  %buffers = alloca [{buffer_count} x ptr]",
    ]
    for k in range(buffer_count):
        lines.append(f"  %place{k} = getelementptr ptr, ptr %buffers, i64 {k}")
        lines.append(f"  store ptr %b{k}, ptr %place{k}")
    return lines


def _tail(site: int) -> list[str]:
    """Note where the failure was, if there is one."""
    return [
        "  %ok = icmp eq i32 %status, 0",
        "  br i1 %ok, label %done, label %failed",
        "failed:",
        f"  %at = getelementptr i8, ptr %run, i64 {RunContext.failed_at.offset}",
        f"  store i64 {site}, ptr %at",
        "  br label %done",
        "done:",
        "  ret i32 %status",
        "}",
        "",
    ]


def _alone(share: ShareText, buffer_count: int, site: int) -> str:
    """Nobody to meet."""
    call = f"  %status = call i32 @{share.symbol}(ptr %buffers, i64 0)"
    return "\n".join([*_head(buffer_count), call, *_tail(site)])


def _meeting(
    buffer_count: int,
    site: int,
    num_partitions: int,
    is_small: bool,
    shares: dict[int, ShareText],
) -> str:
    lines = _head(buffer_count)
    for field in ("replica_id", "partition_id"):
        offset = getattr(RunContext, field).offset
        lines.append(f"  %{field}.p = getelementptr i8, ptr %run, i64 {offset}")
        lines.append(f"  %{field}.i32 = load i32, ptr %{field}.p")
        lines.append(f"  %{field} = zext i32 %{field}.i32 to i64")
    lines.append(f"  %rows = mul i64 %replica_id, {num_partitions}")
    lines.append("  %participant = add i64 %rows, %partition_id")
    entry = f"getelementptr {_ENTRY}, ptr @{PREFIX}.table, i64 %participant"
    for k, name in enumerate(("offset", "rank", "size")):
        lines.append(f"  %{name}.p = {entry}, i32 {k}")
        lines.append(f"  %{name} = load i64, ptr %{name}.p")
    share = "null"
    for size, one in shares.items():
        lines.append(f"  %is{size} = icmp eq i64 %size, {size}")
        lines.append(f"  %share{size} = select i1 %is{size}, ptr @{one.symbol}, ptr {share}")
        share = f"%share{size}"
    lines.append(
        "  %status = call i32 @haloc_meet(ptr %run, i64 %offset, i64 %participant, i64 %rank, "
        f"i64 %size, ptr %buffers, i64 {buffer_count}, ptr {share}, i64 {int(is_small)})"
    )
    return "\n".join([*lines, *_tail(site)])
