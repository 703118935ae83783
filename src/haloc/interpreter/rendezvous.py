"""`Rendezvous`: where the walkers of several participants meet, and how none waits for ever.

Each participant runs in a thread of its own. Who waits is written down, so that it is seen when
nobody can go on: a participant that everybody waits for has finished, or waits for something else.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from haloc.errors import InvalidArgumentError
from haloc.formats.quote import quoted
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ops.participants import Group, participant_groups, transfer_pairs
from haloc.ops.table import Meeting, attr

Key = tuple[Any, ...]


class Stopped(Exception):
    """Raised in a participant that waits when another one has failed; never seen by a caller."""


@dataclass
class _Table:
    """One meeting: who has come, with what."""

    instruction: HloInstruction
    group: Group
    values: dict[int, Any] = field(default_factory=dict)
    left: int = 0

    @property
    def is_complete(self) -> bool:
        return len(self.values) == len(self.group)

    def absent(self) -> list[int]:
        return [p for p in self.group if p not in self.values]


@dataclass
class _Mailbox:
    """Values sent to one participant over one channel, numbered in the order they were sent."""

    values: dict[int, Value] = field(default_factory=dict)
    sent: int = 0
    asked: int = 0


@dataclass
class _Wait:
    instruction: HloInstruction
    is_over: Callable[[], bool]
    absent: Callable[[], Sequence[int]]


class Rendezvous:
    """Meetings and mail between num_replicas x num_partitions participants, for one run."""

    def __init__(self, num_replicas: int = 1, num_partitions: int = 1):
        self.num_replicas, self.num_partitions = num_replicas, num_partitions
        self.count = num_replicas * num_partitions
        self.failure: Exception | None = None
        self._changed = threading.Condition()
        self._groups: dict[HloInstruction, dict[int, Group]] = {}
        self._tables: dict[Key, _Table] = {}
        self._turns: Counter[Key] = Counter()
        self._mail: defaultdict[Key, _Mailbox] = defaultdict(_Mailbox)
        self._ends: dict[tuple[str, int], int] = {}
        self._waiting: dict[int, _Wait] = {}
        self._finished: set[int] = set()

    def name(self, participant: int) -> str:
        """ "participant 3 (replica 1, partition 1)" """
        replica, partition = divmod(participant, self.num_partitions)
        return f"participant {participant} (replica {replica}, partition {partition})"

    # --- Collectives -----------------------------------------------------------------------

    def meet(self, participant: int, instruction: HloInstruction, value: Any) -> Meeting:
        """Give a value to one's group and wait for those of all its members.

        Meetings are told apart by channel, or by instruction where there is none; by group; and by
        how often the participant has been there.
        """
        with self._changed:
            group = self._group(participant, instruction)
            place = attr(instruction, "channel_id") or instruction
            turn = self._turns[place, group, participant]
            self._turns[place, group, participant] += 1
            key = (place, group, turn)
            table = self._tables.setdefault(key, _Table(instruction, group))
            _check_same_op(instruction, table.instruction)
            table.values[participant] = value
            if table.is_complete:
                self._changed.notify_all()
            self._wait(participant, _Wait(instruction, lambda: table.is_complete, table.absent))
            table.left += 1
            if table.left == len(group):
                del self._tables[key]
            return Meeting([table.values[p] for p in group], group.index(participant))

    def _group(self, participant: int, instruction: HloInstruction) -> Group:
        known = self._groups.get(instruction)
        if known is None:
            groups = participant_groups(instruction, self.num_replicas, self.num_partitions)
            known = self._groups[instruction] = {p: group for group in groups for p in group}
        return known[participant]

    # --- send and recv ---------------------------------------------------------------------

    def send(self, participant: int, instruction: HloInstruction, value: Value) -> None:
        """Put a value in the mailbox of the one it is for, if it is for anyone."""
        channel = attr(instruction, "channel_id")
        pairs = transfer_pairs(instruction, self.num_replicas, self.num_partitions)
        with self._changed:
            if pairs is None:
                target = None
                self._check_only_one(participant, instruction)
            else:
                target = dict(pairs).get(participant)
                if target is None:
                    return
            box = self._mail[channel, target]
            box.values[box.sent] = value
            box.sent += 1
            self._changed.notify_all()

    def _check_only_one(self, participant: int, instruction: HloInstruction) -> None:
        """Without pairs a channel joins one participant that sends to one that receives."""
        channel = attr(instruction, "channel_id")
        first = self._ends.setdefault((instruction.opcode, channel), participant)
        if first != participant:
            raise InvalidArgumentError(
                f"{instruction.opcode}: {self.name(first)} and {self.name(participant)} share "
                f"channel {channel}; source_target_pairs must say who sends to whom"
            )

    def ask(self, participant: int, instruction: HloInstruction) -> Key | None:
        """A claim on the next value of this participant's mailbox; None when none is sent."""
        channel = attr(instruction, "channel_id")
        pairs = transfer_pairs(instruction, self.num_replicas, self.num_partitions)
        if pairs is not None and participant not in {target for _, target in pairs}:
            return None
        with self._changed:
            target = None if pairs is None else participant
            if pairs is None:
                self._check_only_one(participant, instruction)
            box = self._mail[channel, target]
            box.asked += 1
            sources = range(self.count) if pairs is None else [s for s, t in pairs if t == target]
            return (channel, target, box.asked - 1, tuple(sources))

    def collect(self, participant: int, instruction: HloInstruction, claim: Key) -> Value:
        """Wait for the value of a claim."""
        channel, target, number, sources = claim
        with self._changed:
            box = self._mail[channel, target]
            self._wait(
                participant, _Wait(instruction, lambda: number in box.values, lambda: sources)
            )
            return box.values.pop(number)

    # --- Waiting ---------------------------------------------------------------------------

    def _wait(self, participant: int, wait: _Wait) -> None:
        self._waiting[participant] = wait
        try:
            while not wait.is_over():
                if self.failure is not None:
                    raise Stopped
                stuck = self._stuck()
                if stuck is not None:
                    self._fail(stuck)
                    raise stuck
                self._changed.wait()
        finally:
            del self._waiting[participant]

    def _stuck(self) -> Exception | None:
        """What is wrong, when every participant has finished or waits in vain."""
        if len(self._waiting) + len(self._finished) < self.count:
            return None
        waits = sorted(self._waiting.items())
        if any(wait.is_over() for _, wait in waits):
            return None
        first, wait = waits[0]
        absent = [p for p in wait.absent() if p != first] or [first]
        who = ", ".join(self._state(p) for p in absent)
        error = InvalidArgumentError(
            f"{wait.instruction.opcode}: {self.name(first)} waits at {wait.instruction.name} for "
            f"{who}"
        )
        error.add_note(f"at {quoted(wait.instruction)}")
        for other, its in waits[1:]:
            error.add_note(f"{self.name(other)} waits at {quoted(its.instruction)}")
        return error

    def _state(self, participant: int) -> str:
        wait = self._waiting.get(participant)
        if wait is None:
            return f"{self.name(participant)}, which has finished"
        return f"{self.name(participant)}, which waits at {wait.instruction.name}"

    def finish(self, participant: int) -> None:
        """The participant has run to its end."""
        with self._changed:
            self._finished.add(participant)
            stuck = self._stuck() if self._waiting else None
            if stuck is not None and self.failure is None:
                self._fail(stuck)

    def fail(self, error: Exception) -> None:
        """Stop everyone: a participant has failed. The first failure stands."""
        with self._changed:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self.failure is None:
            self.failure = error
        self._changed.notify_all()


def _check_same_op(instruction: HloInstruction, first: HloInstruction) -> None:
    if instruction.opcode != first.opcode:
        channel = attr(instruction, "channel_id")
        raise InvalidArgumentError(
            f"channel_id={channel} belongs to {first.opcode} {first.name} and to "
            f"{instruction.opcode} {instruction.name}"
        )
