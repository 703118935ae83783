"""JAX's primitive harnesses through the plugin: a sample in every run, all of them nightly."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")

ROOT = Path(__file__).parents[2]
DIFFERENCES = ROOT / "tests/conformance/harness_differences.txt"
PARTS = 8


def ask(*options: str) -> tuple[int, list[str]]:
    """How many harnesses were asked, and the differences that haloc is not known for."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(["src", *sys.path]))
    done = subprocess.run(
        [sys.executable, "-m", "tests.jax.harness", *options],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        check=False,
        text=True,
        timeout=3600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *told, count = done.stdout.splitlines()
    known = {line.partition(": ")[0] for line in DIFFERENCES.read_text().splitlines()}
    return int(count), [line for line in told if line.partition(": ")[0] not in known]


@pytest.mark.parametrize("mode", ["x32", "x64"])
def test_sample(mode):
    assert ask("--mode", mode, "--count", "25") == (25, [])


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("mode", ["x32", "x64"])
def test_all(mode, part):
    count, new = ask("--mode", mode, "--part", f"{part}/{PARTS}")
    assert new == []
    assert count > 100
