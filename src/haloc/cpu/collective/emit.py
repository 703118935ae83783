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
from haloc.cpu.collective.place import note_failure, participant
from haloc.cpu.collective.ragged import ragged_all_to_all
from haloc.cpu.collective.share import ShareEmitter, ShareText
from haloc.cpu.sequencer import STRUCTURES, Frame, Leaves, Sequencer
from haloc.cpu.writer import Function
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
        for rank, member in enumerate(group):
            entries[member] = f"{_ENTRY} {{ i64 {offset}, i64 {rank}, i64 {len(group)} }}"
    listed = ", ".join(entries[p] for p in sorted(entries))
    return f"@{PREFIX}.table = internal constant [{len(entries)} x {_ENTRY}] [{listed}]\n"


class _Meet(Function):
    """The phase's function; `buffers` is the address of its buffers' addresses."""

    def __init__(self, buffer_count: int):
        parameters = "".join(f"ptr %b{k}, " for k in range(buffer_count))
        super().__init__(f"{PREFIX}.meet", f"{parameters}ptr %scratch, ptr %run", "i32")
        self.buffers = self.variable(f"[{buffer_count} x ptr]").ref
        for k in range(buffer_count):
            self.store("ptr", f"%b{k}", self.element(self.buffers, "ptr", k))

    def ended(self, status: str, site: int) -> str:
        """Its text. Where the failure was is noted, if there is one."""
        note_failure(self, status, site)
        return self.text(f"i32 {status}")


def _alone(share: ShareText, buffer_count: int, site: int) -> str:
    """Nobody to meet."""
    f = _Meet(buffer_count)
    return f.ended(f.op(f"call i32 @{share.symbol}(ptr {f.buffers}, i64 0)"), site)


def _meeting(
    buffer_count: int,
    site: int,
    num_partitions: int,
    is_small: bool,
    shares: dict[int, ShareText],
) -> str:
    f = _Meet(buffer_count)
    me = participant(f, num_partitions)
    entry = f.element(f"@{PREFIX}.table", _ENTRY, me)
    offset, rank, size = (f.load("i64", f.element(entry, "i64", k)) for k in range(3))
    share = "null"
    for members, one in shares.items():
        is_it = f.op(f"icmp eq i64 {size}, {members}")
        share = f.op(f"select i1 {is_it}, ptr @{one.symbol}, ptr {share}")
    status = f.op(
        f"call i32 @haloc_meet(ptr %run, i64 {offset}, i64 {me}, i64 {rank}, i64 {size}, "
        f"ptr {f.buffers}, i64 {buffer_count}, ptr {share}, i64 {int(is_small)})"
    )
    return f.ended(status, site)
