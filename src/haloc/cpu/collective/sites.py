"""Where the participants of a program meet: one site a collective."""

from __future__ import annotations

from haloc.cpu.collective.native import GANG_HEADER_BYTES, MEETING_FIELDS
from haloc.cpu.collective.site import Site
from haloc.ir.module import HloInstruction
from haloc.ops.participants import Group
from haloc.ops.table import attr

_LINE_BYTES = 64


class Sites:
    """The sites of a program of num_replicas x num_partitions participants, and the memory that
    their meetings take."""

    def __init__(self, num_replicas: int = 1, num_partitions: int = 1):
        self.num_replicas = num_replicas
        self.num_partitions = num_partitions
        self.all: list[Site] = []
        self.gang_bytes = GANG_HEADER_BYTES
        self._by_channel: dict[tuple[object, ...], tuple[int, ...]] = {}

    def add(
        self,
        instruction: HloInstruction,
        groups: tuple[Group, ...],
        buffer_count: int,
        fault: str = "",
    ) -> int:
        """The number of an instruction's site. Instructions that are one collective, by their
        channel, share their meetings: branches that participants take differently may each have
        one."""
        channel = attr(instruction, "channel_id")
        shapes = tuple(str(o.shape) for o in instruction.operands)
        key = (channel, instruction.opcode, groups, str(instruction.shape), shapes)
        offsets = self._by_channel.get(key) if channel > 0 else None
        if offsets is None:
            offsets = tuple(self._meeting(len(group), buffer_count) for group in groups)
            self._by_channel[key] = offsets
        self.all.append(Site(instruction.name, groups, offsets, fault))
        return len(self.all) - 1

    def _meeting(self, members: int, buffer_count: int) -> int:
        offset = self.gang_bytes
        words = len(MEETING_FIELDS) + members * (1 + buffer_count)
        self.gang_bytes += -(-8 * words // _LINE_BYTES) * _LINE_BYTES
        return offset
