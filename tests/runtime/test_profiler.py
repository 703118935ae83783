"""Sessions record the spans that end while they run."""

from __future__ import annotations

import gzip
import json
import threading
import time
from pathlib import Path

import pytest

from haloc.errors import FailedPreconditionError
from haloc.xla_client import make_interpreter_client, profiler


def spans(recording: bytes) -> dict[str, dict]:
    return {e["name"]: e for e in json.loads(recording)["traceEvents"] if e["ph"] == "X"}


def test_spans() -> None:
    session = profiler.ProfilerSession()
    assert profiler.TraceMe.is_enabled()
    with profiler.TraceMe("outer", step=3) as span:
        time.sleep(0.002)
        with profiler.TraceMe("inner"):
            time.sleep(0.002)
        span.set_metadata(bytes=7)
    found = spans(session.stop())
    outer, inner = found["outer"], found["inner"]
    assert outer["args"] == {"step": "3", "bytes": "7"}
    assert outer["ts"] == 0
    assert inner["ts"] >= 2000
    assert outer["dur"] >= inner["ts"] + inner["dur"]
    assert not profiler.TraceMe.is_enabled()


def test_threads_are_told_apart_and_named() -> None:
    def work() -> None:
        with profiler.TraceMe("there"):
            pass

    session = profiler.ProfilerSession()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    with profiler.TraceMe("here"):
        pass
    recording = session.stop()
    found = spans(recording)
    assert found["here"]["tid"] != found["there"]["tid"]
    names = {
        e["tid"]: e["args"]["name"] for e in json.loads(recording)["traceEvents"] if e["ph"] == "M"
    }
    assert names[found["here"]["tid"]] == threading.current_thread().name


def test_compilations_are_spans() -> None:
    client = make_interpreter_client()
    session = profiler.ProfilerSession()
    text = "HloModule m\nENTRY e { ROOT c = f32[] constant(1) }"
    client.compile_and_load(text, client.devices())
    assert "compile" in spans(session.stop())


def test_nothing_is_recorded_outside_a_session() -> None:
    with profiler.TraceMe("before"):
        session = profiler.ProfilerSession()
    assert spans(session.stop()) == {}
    with profiler.TraceMe("after"):
        pass
    assert spans(profiler.ProfilerSession().stop()) == {}


def test_export(tmp_path: Path) -> None:
    session = profiler.ProfilerSession()
    with profiler.TraceMe("work"):
        pass
    session.stop_and_export(tmp_path)
    (file,) = tmp_path.glob("plugins/profile/*/*.trace.json.gz")
    assert "work" in spans(gzip.decompress(file.read_bytes()))


def test_one_session_at_a_time() -> None:
    session = profiler.ProfilerSession()
    with pytest.raises(FailedPreconditionError, match="Another profiling session active"):
        profiler.ProfilerSession()
    session.stop()
    with pytest.raises(FailedPreconditionError, match="No profiling session active"):
        session.stop()
