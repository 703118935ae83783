"""Run the programs on one platform and store what they give.

    python -m tests.jax.run PLATFORM FILE

PLATFORM: "haloc", "cpu" (haloc in place of JAX's CPU) or "jaxlib". FILE: a pickle of {name: list
of arrays, the text of the exception, or `Skipped`}.
"""

from __future__ import annotations

import importlib
import os
import pickle
import re
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest

from tests.jax.skipped import Skipped


def main(platform: str, file: str, names: str = "") -> None:
    os.environ["JAX_PLATFORMS"] = "haloc,cpu" if platform == "haloc" else "cpu"
    os.environ["JAX_ENABLE_X64"] = "0"
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    # After the choice of platform, which JAX reads when it is imported.
    jax = importlib.import_module("jax")
    if platform != "jaxlib":
        importlib.import_module("haloc.jax").install(platform)
    for file_of_programs in sorted((Path(__file__).parent / "programs").glob("*.py")):
        importlib.import_module(f"tests.jax.programs.{file_of_programs.stem}")
    programs = importlib.import_module("tests.jax.programs.table").PROGRAMS
    results = {}
    for name, function in programs.items():
        if names and not re.search(names, name):
            continue
        try:
            results[name] = [np.asarray(leaf) for leaf in jax.tree.leaves(function())]
        except pytest.skip.Exception as skipped:
            results[name] = Skipped(str(skipped))
        except Exception:
            results[name] = traceback.format_exc()
    Path(file).write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
