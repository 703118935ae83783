"""Heap profiles, memory statistics of devices, and where arrays were made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from haloc.formats.proto import decode
from haloc.runtime import traceback
from haloc.xla_client import (
    Client,
    Frame,
    Traceback,
    make_interpreter_client,
    set_tracebacks_enabled,
)

PROGRAM = "HloModule m\nENTRY e { ROOT c = f32[] constant(1) }"


@pytest.fixture
def tracebacks() -> Iterator[None]:
    """On for arrays too, until the test is over."""
    before = traceback.tracebacks_enabled(), traceback.of_arrays
    set_tracebacks_enabled(True)
    yield
    traceback._enabled, traceback.of_arrays = before


def samples(client: Client) -> list[dict[str, Any]]:
    """The profile's samples with their numbers turned into text."""
    profile = decode("Profile", client.heap_profile())
    strings = profile["string_table"]
    functions = {f["id"]: strings[f["name"]] for f in profile.get("function", ())}
    places = {
        p["id"]: (functions[p["line"][0]["function_id"]], p["line"][0]["line"])
        for p in profile.get("location", ())
    }
    return [
        {
            "value": s["value"],
            "where": [places[i] for i in s.get("location_id", ())],
            **{strings[x["key"]]: strings[x["str"]] for x in s["label"]},
        }
        for s in profile.get("sample", ())
    ]


class TestHeapProfile:
    def test_of_nothing(self) -> None:
        data = make_interpreter_client().heap_profile()
        assert len(data) == 82  # as jaxlib's
        profile = decode("Profile", data)
        texts = [profile["string_table"][t[k]] for t in profile["sample_type"] for k in t]
        assert texts == ["allocations", "count", "space", "bytes"]

    def test_arrays_by_size_and_device(self) -> None:
        client = make_interpreter_client(num_devices=2)
        here, there = client.devices()
        kept = [client.buffer_from_pyval(np.zeros(8, np.float32), d) for d in (here, here, there)]
        kept.append(kept[0].clone())
        values = [(s["kind"], s["device"], s["value"]) for s in samples(client)]
        assert sorted(values) == [
            ("buffer", repr(here), [2, 64]),
            ("buffer", repr(there), [1, 32]),
        ]

    def test_executables(self) -> None:
        client = make_interpreter_client()
        executable = client.compile_and_load(PROGRAM, client.devices())
        (sample,) = samples(client)
        size_bytes = executable.size_of_generated_code_in_bytes()
        assert (sample["kind"], sample["value"]) == ("executable", [1, size_bytes])
        assert sample["where"][0][0] == "test_executables"

    def test_where_arrays_were_made(self, tracebacks: None) -> None:
        client = make_interpreter_client()

        def makes() -> Any:
            return client.buffer_from_pyval(np.zeros(8, np.float32))

        kept = [makes() for _ in range(2)]
        (sample,) = samples(client)
        line = makes.__code__.co_firstlineno + 1
        assert sample["where"][0] == ("makes", line)
        assert sample["value"] == [2, 64]
        assert kept[0].traceback == kept[1].traceback


class TestMemoryStats:
    def test_bytes_of_one_device(self) -> None:
        client = make_interpreter_client(num_devices=2)
        here, there = client.devices()
        array = client.buffer_from_pyval(np.zeros(1000), here, force_copy=True)
        clone = array.clone()
        stats = here.memory_stats()
        assert stats["bytes_in_use"] == stats["largest_alloc_size"] >= 8000
        assert there.memory_stats()["bytes_in_use"] == 0
        assert stats["pool_bytes"] >= stats["bytes_in_use"]
        assert stats["bytes_limit"] > stats["peak_pool_bytes"]
        array.delete()
        clone.delete()
        assert here.memory_stats()["bytes_in_use"] == 0

    def test_memory_given_back_is_not_held(self) -> None:
        client = make_interpreter_client()
        array = client.buffer_from_pyval(np.zeros(1 << 20), force_copy=True)
        held = client.pool.held_bytes
        array.delete()
        client.pool.trim(0)
        assert client.pool.held_bytes <= held - (8 << 20)
        assert client.devices()[0].memory_stats()["peak_pool_bytes"] >= held


class TestTraceback:
    def test_of_here(self, tracebacks: None) -> None:
        found = Traceback.get_traceback()
        assert found is not None
        frame = found.frames[0]
        assert (frame.file_name, frame.function_name) == (__file__, "test_of_here")
        assert str(found).splitlines()[0] == f"{__file__}:{frame.line_num} (test_of_here)"
        assert repr(frame) == f"test_of_here;{__file__}:{frame.line_num}"
        codes, places = found.raw_frames()
        assert codes[0].co_name == "test_of_here"
        assert Traceback.code_addr2line(codes[0], places[0]) == frame.line_num

    def test_as_one_of_pythons(self) -> None:
        frames = [Frame("b.py", "inner", 1, 7), Frame("a.py", "outer", 1, 3)]
        made = Traceback.traceback_from_frames(frames)
        assert made is not None
        lines = [(made.tb_frame.f_code.co_filename, made.tb_lineno)]
        assert made.tb_next is not None
        lines.append((made.tb_next.tb_frame.f_code.co_filename, made.tb_next.tb_lineno))
        assert lines == [("a.py", 3), ("b.py", 7)]
        assert Traceback.traceback_from_frames([]) is None

    def test_disabled(self, tracebacks: None) -> None:
        set_tracebacks_enabled(False)
        assert Traceback.get_traceback() is None
        assert make_interpreter_client().buffer_from_pyval(1.0).traceback is None
