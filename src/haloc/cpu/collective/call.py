"""`ParticipantCall`: what one participant of a program runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from haloc.cpu.run_context import RunContext


@dataclass(frozen=True, slots=True)
class ParticipantCall:
    """Addresses of one participant's leaves and its arena, as `Program.run` takes them, and its
    context."""

    arguments: Sequence[int]
    results: Sequence[int]
    arena: int
    run: RunContext
