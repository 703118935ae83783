"""`execution_stream_id`: which stream a thread's executions belong to.

Executions of one stream begin in the order in which they were issued; stream 0 stands for the
thread itself. A device of haloc does all its work in that order, whatever the streams, so the
number is kept for those who ask and changes nothing.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Streams(threading.local):
    id = 0


_streams = _Streams()


def get_execution_stream_id() -> int:
    """This thread's stream."""
    return _streams.id


def set_execution_stream_id(id: int, /) -> None:
    """TypeError for what is no integer."""
    _streams.id = operator.index(id)


@contextmanager
def execution_stream_id(new_id: int) -> Iterator[None]:
    """This thread's stream within a `with` block."""
    before = _streams.id
    set_execution_stream_id(new_id)
    try:
        yield
    finally:
        _streams.id = before
