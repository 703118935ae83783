"""JAX programs on haloc's PJRT plugin give what they give on jaxlib's CPU client."""

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import ml_dtypes  # noqa: F401  (pickles of bfloat16 arrays need it)
import numpy as np
import pytest

from tests.jax.skipped import Skipped

pytest.importorskip("jax")

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "tests/jax/programs").glob("*.py"))
NAMES = [
    name
    for source in SOURCES
    for name in re.findall(r"^@program\ndef (\w+)", source.read_text(), re.MULTILINE)
]
PLATFORMS = ["haloc", pytest.param("cpu", marks=pytest.mark.nightly)]


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """`results(platform)`: {name: list of arrays or the text of an exception}, run once."""
    known = {}

    def get(platform):
        if platform not in known:
            known[platform] = {}  # if it fails, once
            file = tmp_path_factory.mktemp("jax") / f"{platform}.pickle"
            command = [sys.executable, "-m", "tests.jax.run", platform, str(file)]
            environment = dict(os.environ, PYTHONPATH=os.pathsep.join(["src", *sys.path]))
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                capture_output=True,
                check=False,
                text=True,
                timeout=600,
            )
            # The exit is part of the test: arrays die after the interpreter's modules.
            assert done.returncode == 0, done.stderr[-2000:]
            known[platform] = pickle.loads(file.read_bytes())
        return known[platform]

    return get


@pytest.mark.xdist_group("jax")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_program(results, platform, name):
    wanted, given = results("jaxlib")[name], results(platform)[name]
    if isinstance(wanted, Skipped):
        pytest.skip(wanted)
    assert not isinstance(wanted, str), wanted
    assert not isinstance(given, str), given
    assert len(given) == len(wanted)
    for g, w in zip(given, wanted):
        assert g.dtype == w.dtype
        assert g.shape == w.shape
        if w.dtype.kind not in "biuV?":
            wide = np.complex128 if w.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(g.astype(wide), w.astype(wide), rtol=2e-5, atol=2e-5)
        elif w.dtype.kind == "V":
            np.testing.assert_allclose(g.astype(float), w.astype(float), rtol=2e-2, atol=1e-6)
        else:
            np.testing.assert_array_equal(g, w)
