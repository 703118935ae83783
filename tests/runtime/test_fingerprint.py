"""Fingerprints of executables: those of what was compiled, in every process."""

from __future__ import annotations

import subprocess
import sys

from haloc import xla_client

TEXT = "HloModule m\nENTRY e { x = f32[4] parameter(0) ROOT y = f32[4] add(x, x) }"
OTHER = TEXT.replace("add", "multiply")

SCRIPT = """
import sys
from haloc import xla_client
client = xla_client.make_cpu_client(num_devices=2)
print(client.compile_and_load(sys.argv[1], client.devices()).fingerprint.decode())
"""


def fingerprint(text: str) -> bytes:
    client = xla_client.make_cpu_client()
    found = client.compile_and_load(text, client.devices()).fingerprint
    assert found is not None
    return found


def test_it_is_decimal_digits() -> None:
    assert fingerprint(TEXT).isdigit()


def test_equal_programs_have_one() -> None:
    assert fingerprint(TEXT) == fingerprint(TEXT)
    assert fingerprint(TEXT) != fingerprint(OTHER)


def test_another_process_finds_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, TEXT], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().encode() == fingerprint(TEXT)


def test_a_deserialized_executable_keeps_it() -> None:
    client = xla_client.make_cpu_client()
    executable = client.compile_and_load(TEXT, client.devices())
    stored = client.serialize_executable(executable)
    assert client.deserialize_executable(stored, client.devices()).fingerprint == fingerprint(TEXT)
