"""The progress line: when it shows, what it says, and that it cleans up."""

from __future__ import annotations

import io
import time

import pytest

from haloc.cli.progress import ProgressLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(mode: str, stream: io.StringIO, seconds: float, delay_s: float | None = None) -> str:
    line = ProgressLine("compiling m", stream, mode)
    if delay_s is not None:
        line.delay_s = delay_s
    with line:
        line("native code", 3, 12)
        time.sleep(seconds)
    return stream.getvalue()


def test_it_says_stage_and_count() -> None:
    text = shown("1", io.StringIO(), 0.05)
    assert text.startswith("\r\x1b[Kcompiling m: ")
    assert "compiling m: native code 3/12, 0." in ProgressLineText().text()
    assert text.endswith("\r\x1b[K")


class ProgressLineText(ProgressLine):
    """A line in a known state."""

    def __init__(self) -> None:
        super().__init__("compiling m", io.StringIO(), "0")
        self("native code", 3, 12)


@pytest.mark.parametrize(
    ("mode", "stream"), [("auto", io.StringIO()), ("0", Terminal()), ("0", io.StringIO())]
)
def test_it_stays_silent(mode: str, stream: io.StringIO) -> None:
    assert shown(mode, stream, 0.05, delay_s=0.0) == ""


def test_a_short_compilation_shows_nothing() -> None:
    assert shown("auto", Terminal(), 0.01) == ""


def test_a_long_one_shows_on_a_terminal() -> None:
    assert "compiling m" in shown("auto", Terminal(), 0.1, delay_s=0.01)


def test_an_error_passes_through() -> None:
    stream = io.StringIO()
    with pytest.raises(ValueError, match="x"), ProgressLine("m", stream, "1"):
        time.sleep(0.05)
        raise ValueError("x")
    assert stream.getvalue().endswith("\r\x1b[K")
