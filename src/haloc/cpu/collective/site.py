"""`Site`: one place of a program where participants wait for each other, or may fail to meet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Site:
    """name: the instruction. groups: who meets at a collective, as flattened logical ids. offsets:
    of the groups' meetings in the gang's memory, in bytes. fault: what INVALID_ARGUMENT means here.

    is_mail: whether it is a send, recv or recv-done between participants. sources: who sends to
    each participant there; -1 for nobody, () where the program does not say.
    """

    name: str
    groups: tuple[tuple[int, ...], ...] = ()
    offsets: tuple[int, ...] = ()
    fault: str = ""
    is_mail: bool = False
    sources: tuple[int, ...] = ()
