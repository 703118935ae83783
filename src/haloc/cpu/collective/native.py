"""The LLVM text shared by all programs with several participants.

Words. A *gang* is one execution of a program by all its participants, each on a thread of its own.
A *call* is what one of them runs. The gang's memory holds its *meetings*: one for each collective
and group. Participants come to a meeting, put down the addresses of their buffers, and wait; when
the last has come, all do their share of the work. A small collective's work is all done by the one
who comes last, which saves the others from waking up twice. It also holds *mailboxes*, one for each
channel and participant: a send puts a *letter* into one and does not wait.

The first failure is kept in `status`; whoever waits or comes later returns with it. Buffers stay
valid until all calls have ended, so that one who comes late does no harm.

Threads of gangs are apart from the pool: a participant that waits must never keep another from
running.
"""

from __future__ import annotations

import sys

from haloc.cpu.collective import layout
from haloc.cpu.collective.mail_text import MAIL_TEXT
from haloc.cpu.collective.meeting_text import MEETING_TEXT
from haloc.cpu.collective.threads_text import THREADS_TEXT
from haloc.cpu.run_context import RunContext

EXPORTS = (
    "haloc_meet",
    "haloc_mail_letter",
    "haloc_mail_post",
    "haloc_mail_ask",
    "haloc_mail_collect",
    "haloc_gang_run",
    "haloc_gang_reset",
)


def gang_text() -> str:
    """The functions; they use the pool's declarations and @create_thread."""
    words = {
        "MUTEX": layout.MUTEX,
        "WOKEN": layout.WOKEN,
        "FINISHED": layout.FINISHED,
        "LETTER_BYTES": layout.LETTER_BYTES,
        "CLOCK_MONOTONIC": 6 if sys.platform == "darwin" else 1,
        "CALL_BYTES": 8 * len(layout.CALL_FIELDS),
        "run.gang": RunContext.gang.offset,
        **{f"gang.{name}": 8 * k for k, name in enumerate(layout.GANG_FIELDS)},
        **{f"call.{name}": 8 * k for k, name in enumerate(layout.CALL_FIELDS)},
        **{f"box.{name}": 8 * k for k, name in enumerate(layout.MAILBOX_FIELDS)},
    }
    text = MEETING_TEXT + MAIL_TEXT + THREADS_TEXT
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(f"${word}", str(words[word]))
    return text
