"""Run the programs on one platform and store what they give.

    python -m tests.jax.run PLATFORM FILE

PLATFORM: "haloc", "cpu" (haloc in place of JAX's CPU) or "jaxlib". FILE: a pickle of {name: list
of arrays, or the text of the exception}.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
import traceback


def main(platform: str, file: str, names: str = "") -> None:
    os.environ["JAX_PLATFORMS"] = "haloc,cpu" if platform == "haloc" else "cpu"
    import jax
    import numpy as np

    if platform != "jaxlib":
        import haloc.jax

        haloc.jax.install(platform)
    from tests.jax.programs import PROGRAMS

    results = {}
    for name, function in PROGRAMS.items():
        if names and not re.search(names, name):
            continue
        try:
            results[name] = [np.asarray(leaf) for leaf in jax.tree.leaves(function())]
        except Exception:
            results[name] = traceback.format_exc()
    with open(file, "wb") as out:
        pickle.dump(results, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
