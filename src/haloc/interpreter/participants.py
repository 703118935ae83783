"""`run_participants`: one walker for each replica and partition, all of one module."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

from haloc.errors import InvalidArgumentError
from haloc.interpreter.host_transfers import HostTransfers
from haloc.interpreter.rendezvous import Rendezvous, Stopped
from haloc.interpreter.run import Interpreter, run_entry
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction, HloModule

OnParticipantValue = Callable[[int, HloInstruction, Value], None]


def run_participants(
    module: HloModule,
    arguments: Sequence[Sequence[Value]],
    num_replicas: int | None = None,
    num_partitions: int | None = None,
    *,
    on_value: OnParticipantValue | None = None,
    host: HostTransfers | None = None,
) -> list[Value]:
    """Run the entry computation as num_replicas x num_partitions participants that work together.

    arguments: the arguments of each participant, as `run` takes them, in the order of flattened
    logical ids (replica * num_partitions + partition); so is the result. Counts that are not given
    are those of the module's header, or 1. on_value: called with (participant, instruction, value)
    for each value, never twice at the same time. host: queues for infeed, outfeed, send and recv.

    Raises what `run` raises: the first error of any participant, with a note that names it.
    InvalidArgumentError when participants wait for each other in vain: a collective, send or recv
    that somebody never comes to.
    """
    num_replicas = module.header.get("replica_count", 1) if num_replicas is None else num_replicas
    if num_partitions is None:
        num_partitions = module.header.get("num_partitions", 1)
    rendezvous = Rendezvous(num_replicas, num_partitions)
    if len(arguments) != rendezvous.count:
        raise InvalidArgumentError(
            f"{num_replicas} replicas of {num_partitions} partitions take the arguments of "
            f"{rendezvous.count} participants, given {len(arguments)}"
        )
    locked = None if on_value is None else _one_at_a_time(on_value)
    walkers = [
        _Walker(rendezvous, participant, module, one, locked, host)
        for participant, one in enumerate(arguments)
    ]
    for walker in walkers:
        walker.start()
    for walker in walkers:
        walker.join()
    if rendezvous.failure is not None:
        raise rendezvous.failure
    return [walker.result for walker in walkers]


def _one_at_a_time(on_value: OnParticipantValue) -> OnParticipantValue:
    lock = threading.Lock()

    def locked(participant: int, instruction: HloInstruction, value: Value) -> None:
        with lock:
            on_value(participant, instruction, value)

    return locked


class _Walker(threading.Thread):
    """Runs one participant; its result, or its failure told to the others."""

    def __init__(
        self,
        rendezvous: Rendezvous,
        participant: int,
        module: HloModule,
        arguments: Sequence[Value],
        on_value: OnParticipantValue | None,
        host: HostTransfers | None,
    ):
        super().__init__(name=rendezvous.name(participant), daemon=True)
        self.rendezvous, self.participant = rendezvous, participant
        self.module, self.arguments = module, arguments
        device_id = divmod(participant, rendezvous.num_partitions)
        self.interpreter = Interpreter(
            device_id,
            None if on_value is None else partial(on_value, participant),
            host=host,
            rendezvous=rendezvous,
            participant=participant,
        )
        self.result: Value = None

    def run(self) -> None:
        try:
            self.result = run_entry(self.interpreter, self.module, self.arguments)
        except Stopped:
            return
        except Exception as error:
            error.add_note(f"in {self.name}")
            self.rendezvous.fail(error)
        else:
            self.rendezvous.finish(self.participant)
