"""Tracebacks: of where an executable or an array was made, and of bytecode."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from haloc import xla_client
from haloc.runtime import traceback

TEXT = "HloModule m\nENTRY e { ROOT c = f32[] constant(1) }"


@pytest.fixture
def restored() -> Iterator[None]:
    before = traceback._enabled, traceback.of_arrays
    yield
    traceback._enabled, traceback.of_arrays = before


def here() -> xla_client.Traceback:
    made = xla_client.Traceback.get_traceback()
    assert made is not None
    return made


def test_an_executable_knows_where_it_was_compiled(restored: None) -> None:
    client = xla_client.make_cpu_client()
    executable = client.compile_and_load(TEXT, client.devices())
    first = executable.traceback.frames[0]
    assert (first.file_name, first.function_name) == (
        __file__,
        "test_an_executable_knows_where_it_was_compiled",
    )
    assert first.function_start_line < first.line_num
    assert str(executable.traceback).startswith(f"{__file__}:{first.line_num} (")
    xla_client.set_tracebacks_enabled(False)
    assert client.compile_and_load(TEXT, client.devices()).traceback is None


def test_an_array_knows_where_it_was_made_when_asked(restored: None) -> None:
    client = xla_client.make_cpu_client()
    xla_client.set_tracebacks_enabled(True)
    array = client.buffer_from_pyval(np.ones(3))
    assert array.traceback.frames[0].file_name == __file__
    xla_client.set_tracebacks_enabled(False)
    assert client.buffer_from_pyval(np.ones(3)).traceback is None


def test_raw_frames_are_code_and_how_far_it_had_come() -> None:
    codes, reached = here().raw_frames()
    assert codes[0] is here.__code__
    assert len(codes) == len(reached) == len(here().frames)
    line = xla_client.Traceback.code_addr2line(codes[0], reached[0])
    assert line == here.__code__.co_firstlineno + 1


def test_locations_of_bytecode() -> None:
    codes, reached = here().raw_frames()
    first, start, last, end = xla_client.Traceback.code_addr2location(codes[0], reached[0])
    assert first == last == here.__code__.co_firstlineno + 1
    source = "    made = xla_client.Traceback.get_traceback()"
    assert source[start:end] == "xla_client.Traceback.get_traceback()"


def test_as_pythons_tracebacks() -> None:
    frame = xla_client.Frame("somewhere.py", "work", 10, 12)
    made = xla_client.Traceback.traceback_from_frames([frame])
    assert made.tb_frame.f_code.co_filename == "somewhere.py"
    assert made.tb_lineno == 12
    assert here().as_python_traceback().tb_frame.f_code.co_name != "here"  # outermost first


def test_equal_places_are_equal() -> None:
    made = [here() for _ in range(2)]
    assert made[0] == made[1]
    assert hash(made[0]) == hash(made[1])
    assert made[0] != here()
