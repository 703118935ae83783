"""Whether a thread is inside a program: what it launches then must not wait for that program."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_thread = threading.local()


@contextmanager
def inside_a_program() -> Iterator[None]:
    """Around the run of a program, and around its calls back to the host on any thread."""
    _thread.depth = getattr(_thread, "depth", 0) + 1
    try:
        yield
    finally:
        _thread.depth -= 1


def is_inside_a_program() -> bool:
    """Whether this thread is."""
    return getattr(_thread, "depth", 0) > 0
