"""Spans of host time, recorded while a profiler session runs, as Chrome's trace viewer shows them.

session = ProfilerSession()
with TraceMe("load", step=3):
    ...
session.stop_and_export("/tmp/profile")     # open the .trace.json.gz in Perfetto
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from haloc.errors import FailedPreconditionError

_Span = tuple[str, int, int, int, dict[str, Any]]
"""Name, start and duration (ns), thread, metadata."""

_lock = threading.Lock()
_spans: list[_Span] | None = None
"""None while nobody records."""


class TraceMe:
    """`with TraceMe("name", key=value): ...`: a span of this thread's time. Costs next to nothing
    while no session runs."""

    __slots__ = ("_metadata", "_name", "_start")

    def __init__(self, name: str, **metadata: Any):
        self._name = name
        self._metadata = metadata
        self._start = 0

    def set_metadata(self, **metadata: Any) -> None:
        """Say more about the span while it runs."""
        self._metadata |= metadata

    @staticmethod
    def is_enabled() -> bool:
        """Whether a session records."""
        return _spans is not None

    def __enter__(self) -> Self:
        if _spans is not None:
            self._start = time.perf_counter_ns()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        spans = _spans
        if spans is not None and self._start:
            duration = time.perf_counter_ns() - self._start
            spans.append((self._name, self._start, duration, threading.get_ident(), self._metadata))


class ProfilerSession:
    """Records from its making until `stop`. FailedPreconditionError while another one records."""

    def __init__(self) -> None:
        global _spans  # noqa: PLW0603  # the process has one recording
        with _lock:
            if _spans is not None:
                raise FailedPreconditionError("Another profiling session active.")
            _spans = []

    def stop(self) -> bytes:
        """The recording: JSON of Chrome's trace events. FailedPreconditionError the second time."""
        global _spans
        with _lock:
            if _spans is None:
                raise FailedPreconditionError("No profiling session active.")
            spans, _spans = _spans, None
        return json.dumps({"displayTimeUnit": "ns", "traceEvents": _events(spans)}).encode()

    def export(self, recording: bytes, directory: str | os.PathLike[str]) -> None:
        """Write what `stop` gave to DIRECTORY/plugins/profile/TIME/HOST.trace.json.gz, where
        TensorBoard looks."""
        folder = Path(directory) / "plugins" / "profile" / time.strftime("%Y_%m_%d_%H_%M_%S")
        folder.mkdir(parents=True, exist_ok=True)
        with gzip.open(folder / f"{socket.gethostname()}.trace.json.gz", "wb") as file:
            file.write(recording)

    def stop_and_export(self, directory: str | os.PathLike[str]) -> None:
        self.export(self.stop(), directory)


def _events(spans: list[_Span]) -> list[dict[str, Any]]:
    """Complete events; times in microseconds since the first span."""
    first = min((start for _, start, *_ in spans), default=0)
    process = os.getpid()
    names = {t.ident: t.name for t in threading.enumerate()}
    events: list[dict[str, Any]] = [
        {
            "name": "thread_name",
            "ph": "M",
            "pid": process,
            "tid": thread,
            "args": {"name": names.get(thread, f"thread {thread}")},
        }
        for thread in sorted({thread for *_, thread, _ in spans})
    ]
    for name, start, duration, thread, metadata in spans:
        events.append(
            {
                "name": name,
                "ph": "X",
                "ts": (start - first) / 1000,
                "dur": duration / 1000,
                "pid": process,
                "tid": thread,
                "args": {key: str(value) for key, value in metadata.items()},
            }
        )
    return events
