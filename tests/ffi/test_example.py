"""The example runs as it stands."""

import runpy
from pathlib import Path

import pytest

from haloc.ffi.registration import unregister_custom_call_target

EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_call.py"


def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    unregister_custom_call_target("smooth")
    numbers = capsys.readouterr().out.strip(" []\n").split()
    assert [round(float(n), 3) for n in numbers] == [0.333, 0, -1, 1, 0, 1.333]
