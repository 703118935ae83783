"""JAX's primitive harnesses through the plugin, beside jaxlib's CPU client in one process.

    python -m tests.jax.harness [--mode x32|x64] [--part P/N] [--count N] [pattern ...]

prints a line `mode native harness: difference` for each that differs, and last the number asked.
"""

from __future__ import annotations

import argparse
import os
import warnings

import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("patterns", nargs="*", help="parts of names; a harness needs one of them")
    parser.add_argument("--mode", choices=("x32", "x64"), default="x64")
    parser.add_argument("--part", default="0/1", help="P/N: every N-th harness, from the P-th")
    parser.add_argument("--count", type=int, help="only so many, one of each group in turn")
    options = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "haloc,cpu"
    warnings.simplefilter("ignore")
    # After the choice of platform, which JAX reads when it is imported.
    import jax  # noqa: PLC0415

    import haloc.jax  # noqa: PLC0415

    haloc.jax.install()
    from tests.conformance import harness as exam  # noqa: PLC0415

    part, parts = map(int, options.part.split("/"))
    names = exam.names_of(options.mode)
    if options.count:
        names = [n for n in exam.sample(2 * options.count) if n in names][: options.count]
    names = names[part::parts]
    if options.patterns:
        names = [n for n in names if any(p in n for p in options.patterns)]
    with jax.enable_x64(options.mode == "x64"):
        for name in names:
            told = _difference(jax, exam, name)
            if told:
                print(f"{options.mode} native {name}: {told}", flush=True)
    print(len(names))


def _difference(jax, exam, name: str) -> str:
    harness = exam.HARNESSES[name]
    arguments = harness.dyn_args_maker(np.random.RandomState(exam.number_of(name)))
    try:
        with jax.default_device(jax.devices("cpu")[0]):
            answers = exam.leaves(jax.jit(harness.dyn_fun)(*arguments))
            own = exam.leaves(arguments)
    except Exception:
        return ""  # JAX's own: `tests.conformance.harness` knows which
    asked = exam.Question("", own, answers)
    return exam.difference(
        name, asked, "native", lambda: exam.leaves(jax.jit(harness.dyn_fun)(*arguments))
    )


if __name__ == "__main__":
    main()
