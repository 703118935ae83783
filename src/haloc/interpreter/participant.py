"""`Participant`: what a walker has to do with others: its number, its meetings, its host."""

from __future__ import annotations

from typing import Any

from haloc.errors import FailedPreconditionError
from haloc.interpreter.arguments import fitted
from haloc.interpreter.host_transfers import HostTransfers, Way
from haloc.interpreter.rendezvous import Rendezvous
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.table import Meeting, attr


class Participant:
    """The part of an `Evaluator` that reaches beyond one participant.

    device_id: (replica, partition). rendezvous and participant: where it meets the others of a
    run, and its flattened id among them; without, it is alone. host: the other end of infeed,
    outfeed and host transfers.
    """

    def __init__(
        self,
        device_id: tuple[int, int],
        host: HostTransfers | None,
        rendezvous: Rendezvous | None,
        participant: int,
    ):
        self.device_id = device_id
        self.host = host
        self._rendezvous = rendezvous or Rendezvous()
        self._participant = participant
        self._transfers: list[tuple[Any, ...] | None] = []

    @property
    def participants(self) -> tuple[int, int]:
        """(number of replicas, number of partitions) that run the program together."""
        return self._rendezvous.num_replicas, self._rendezvous.num_partitions

    def meet(self, instruction: HloInstruction, value: Any) -> Meeting:
        """Give `value` to the members of this participant's group, and wait for theirs."""
        return self._rendezvous.meet(self._participant, instruction, value)

    def send(self, instruction: HloInstruction, value: Value) -> int:
        """Send to the participant or host that `instruction` names, without waiting for it to
        receive; a number for the transfer."""
        if attr(instruction, "is_host_transfer"):
            channel = attr(instruction, "channel_id")
            self._host_of(instruction.opcode).put(Way.TO_HOST, value, self._participant, channel)
        else:
            self._rendezvous.send(self._participant, instruction, value)
        return self._number(None)

    def receive(self, instruction: HloInstruction) -> int:
        """Begin to receive; a number by which `received` knows the transfer."""
        if attr(instruction, "is_host_transfer"):
            return self._number((attr(instruction, "channel_id"), instruction.shape.elements[0]))
        return self._number(self._rendezvous.ask(self._participant, instruction))

    def received(self, instruction: HloInstruction, transfer: int) -> Value:
        """Wait for what `receive` began, at the instruction that ends it; None when no
        participant sends to this one."""
        claim = self._transfers[transfer]
        if claim is None:
            return None
        if not attr(instruction, "is_host_transfer"):
            return self._rendezvous.collect(self._participant, instruction, claim)
        channel, shape = claim
        value = self._host_of("recv").take(Way.TO_DEVICE, self._participant, channel)
        return fitted(value, shape, f"what the host sends on channel {channel}")

    def infeed(self, shape: Shape) -> Value:
        """Wait for the next value that the host feeds in; it is of `shape`."""
        return fitted(self._host_of("infeed").take(Way.INFEED, self._participant), shape, "infeed")

    def outfeed(self, value: Value) -> None:
        """Give the host a value."""
        self._host_of("outfeed").put(Way.OUTFEED, value, self._participant)

    def _number(self, claim: tuple[Any, ...] | None) -> int:
        self._transfers.append(claim)
        return len(self._transfers) - 1

    def _host_of(self, opcode: str) -> HostTransfers:
        if self.host is None:
            raise FailedPreconditionError(
                f"{opcode}: the program talks to its host, but none was given: run it with "
                "host=HostTransfers()"
            )
        return self.host
