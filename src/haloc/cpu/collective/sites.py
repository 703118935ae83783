"""Where the participants of a program meet, and where their mail lies."""

from __future__ import annotations

from haloc.cpu.collective.layout import GANG_HEADER_BYTES, MAILBOX_FIELDS, MEETING_FIELDS
from haloc.cpu.collective.site import Site
from haloc.ir.module import HloInstruction
from haloc.ops.participants import Group
from haloc.ops.table import attr

_LINE_BYTES = 64


class Sites:
    """The sites of a program of num_replicas x num_partitions participants, and the memory that
    their meetings and mailboxes take."""

    def __init__(self, num_replicas: int = 1, num_partitions: int = 1):
        self.num_replicas = num_replicas
        self.num_partitions = num_partitions
        self.all: list[Site] = []
        self.gang_bytes = GANG_HEADER_BYTES
        self._by_channel: dict[tuple[object, ...], tuple[int, ...]] = {}
        self._mailboxes: dict[int, tuple[int, ...]] = {}

    @property
    def count(self) -> int:
        """How many participants there are."""
        return self.num_replicas * self.num_partitions

    def add(
        self,
        instruction: HloInstruction,
        groups: tuple[Group, ...],
        buffer_count: int,
        fault: str = "",
    ) -> int:
        """The number of a collective's site. Instructions that are one collective, by their
        channel, share their meetings: branches that participants take differently may each have
        one."""
        channel = attr(instruction, "channel_id")
        shapes = tuple(str(o.shape) for o in instruction.operands)
        key = (channel, instruction.opcode, groups, str(instruction.shape), shapes)
        offsets = self._by_channel.get(key) if channel > 0 else None
        if offsets is None:
            sizes = (len(MEETING_FIELDS) + len(g) * (1 + buffer_count) for g in groups)
            offsets = tuple(map(self._words, sizes))
            self._by_channel[key] = offsets
        return self._added(Site(instruction.name, groups, offsets, fault))

    def add_mail(self, instruction: HloInstruction, sources: tuple[int, ...], fault: str) -> int:
        """The number of the site of a send, recv or recv-done; sources as in `Site`."""
        return self._added(Site(instruction.name, fault=fault, is_mail=True, sources=sources))

    def mailboxes(self, channel: int) -> tuple[int, ...]:
        """Offsets of a channel's mailboxes in the gang's memory: one for each participant, and
        the one that its two ends share when nothing says who they are."""
        if channel not in self._mailboxes:
            size = len(MAILBOX_FIELDS)
            self._mailboxes[channel] = tuple(self._words(size) for _ in range(self.count + 1))
        return self._mailboxes[channel]

    def _added(self, site: Site) -> int:
        self.all.append(site)
        return len(self.all) - 1

    def _words(self, count: int) -> int:
        """The offset of memory for so many words."""
        offset = self.gang_bytes
        self.gang_bytes += -(-8 * count // _LINE_BYTES) * _LINE_BYTES
        return offset
