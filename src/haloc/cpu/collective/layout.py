"""How a gang's memory is laid out: its fields, its calls, its meetings and its mailboxes.

A gang's memory begins with its fields and its locks; the meetings and mailboxes that `Sites` hands
out follow. All of it is zero at first but for the fields that `run_gang` fills in.
"""

from __future__ import annotations

GANG_FIELDS = (
    "status",
    "failed_participant",
    "running",
    "sleepers",
    "timeout_ns",
    "participants",
    "boxes",
)
"""i64 fields at the start of a gang's memory, in order. boxes: the mailboxes in use, as a list."""

CALL_FIELDS = (
    "program",
    "arguments",
    "results",
    "arena",
    "constants",
    "run",
    "gang",
    "participant",
    "next",
)
"""i64 fields of a call, in order."""

_LOCK_BYTES = 128
"""No system's mutex or condition variable is larger."""

MUTEX = 64
WOKEN = MUTEX + _LOCK_BYTES
FINISHED = WOKEN + _LOCK_BYTES
GANG_HEADER_BYTES = FINISHED + _LOCK_BYTES

MEETING_FIELDS = ("count", "generation")
"""i64 fields at the start of a meeting; then come `arrived`, an i64 a member, and the addresses
of the members' buffers."""

MAILBOX_FIELDS = ("asked", "sent", "posted", "first", "last", "next", "sender", "receiver")
"""i64 fields of a mailbox, in order. `sent` stands where a meeting has `generation`: who waits for
letter n waits for phase n to end. sender, receiver: whose ends of a channel without pairs these
are, counted from 1; 0 where nobody has come."""

LETTER_BYTES = 16
"""Of a letter's link and number; its data follow."""
