"""The machine code of an executable: its size, and that it goes with the executable."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from haloc import xla_client

COUNT = 20


def code_mappings() -> int:
    """Ranges of this process's memory that can be executed."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sum("x" in line.split()[1] for line in lines)


def adding(client: Any, number: float) -> Any:
    text = f"""HloModule adds
    ENTRY e {{
      x = f32[64] parameter(0)
      c = f32[] constant({number})
      b = f32[64] broadcast(c), dimensions={{}}
      ROOT s = f32[64] add(x, b)
    }}"""
    return client.compile_and_load(text, client.devices())


@pytest.fixture
def client() -> Any:
    """A client that has compiled and run something: what all programs share is loaded."""
    made = xla_client.make_cpu_client()
    adding(made, 0.5).execute([made.buffer_from_pyval(np.zeros(64, np.float32))])
    gc.collect()
    return made


def test_code_goes_with_its_executable(client: Any) -> None:
    x = client.buffer_from_pyval(np.zeros(64, np.float32))
    before = code_mappings()
    executables = [adding(client, n + 1.5) for n in range(COUNT)]
    outputs = [e.execute([x])[0] for e in executables]
    assert code_mappings() >= before + COUNT
    assert len(client.live_executables()) == COUNT
    executables.clear()  # no collection: nothing refers to it in a circle
    assert code_mappings() <= before
    assert client.live_executables() == []
    assert [float(np.asarray(o)[0]) for o in outputs] == [n + 1.5 for n in range(COUNT)]


def test_code_stays_for_as_long_as_something_runs_it() -> None:
    client = xla_client.make_cpu_client(asynchronous=True)
    text = """HloModule slow
    ENTRY e {
      x = f32[512,512] parameter(0)
      y = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT z = f32[512,512] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }"""
    x = client.buffer_from_pyval(np.eye(512, dtype=np.float32))
    outputs = [client.compile_and_load(text, client.devices()).execute([x])[0] for _ in range(3)]
    for output in outputs:
        np.testing.assert_array_equal(output, np.eye(512))


def test_keep_alive_keeps_for_as_long_as_the_executable_lives(client: Any) -> None:
    executable = adding(client, 7.25)
    array = client.buffer_from_pyval(np.zeros(1000))
    executable.keep_alive(array)
    del array
    assert len(client.live_arrays()) == 1
    del executable
    assert client.live_arrays() == []


def test_sizes_of_code_differ_with_the_program(client: Any) -> None:
    small = adding(client, 8.5).size_of_generated_code_in_bytes()
    text = """HloModule m
    ENTRY e {
      x = f32[100] parameter(0)
      y = f32[100] sine(x)
      ROOT z = f32[100] exponential(y)
    }"""
    large = client.compile_and_load(text, client.devices()).size_of_generated_code_in_bytes()
    assert 0 < small < large
