"""`Site`: one collective of a program, as running it needs it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Site:
    """name: the instruction. groups: who meets, as flattened logical ids. offsets: of the groups'
    meetings in the gang's memory, in bytes."""

    name: str
    groups: tuple[tuple[int, ...], ...]
    offsets: tuple[int, ...]
    fault: str = ""
