"""Every block of README.md and docs/ that can run does, and gives the output printed below it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_TIME = re.compile(r"\b[\d.e+]+ (us|ms|s)\b")


def blocks(kind: str) -> list:
    """(text of a block, the block after it if that is its output) of a kind, over all pages."""
    found = []
    for page in PAGES:
        matches = list(_BLOCK.finditer(page.read_text()))
        for number, match in enumerate(matches):
            if match[1] != kind:
                continue
            following = matches[number + 1] if number + 1 < len(matches) else None
            output = following[2] if following is not None and following[1] == "text" else None
            found.append(pytest.param(match[2], output, id=f"{page.name}-{number}"))
    return found


@pytest.mark.parametrize(("program", "output"), blocks("python"))
def test_python(program, output):
    # In a process of its own: examples may register ops and passes.
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == (output or "")


@pytest.mark.parametrize(("session", "_"), blocks("console"))
def test_console(session, _):
    for part in session.split("$ ")[1:]:
        command, _, output = part.partition("\n")
        words = shlex.split(command)
        assert words[0] in ("haloc", "python"), command
        arguments = ["-m", "haloc", *words[1:]] if words[0] == "haloc" else words[1:]
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert timeless(done.stdout + done.stderr) == timeless(output)


def timeless(text: str) -> str:
    """Without durations, which are never the same twice."""
    return _TIME.sub("TIME", text).rstrip()


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_there_is_something_to_test():
    assert len(blocks("python")) >= 2 and len(blocks("console")) >= 3
