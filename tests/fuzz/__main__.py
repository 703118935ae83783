"""python -m tests.fuzz [--seed N] [--count M] [--reduce]: long runs, and one seed by itself.

Prints a line for each failing seed; exit code 1 if there was one. With --reduce, the failing module
made small is printed too. Seeds run in child processes: a crash is a failure like any other.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import traceback
from collections.abc import Iterable

from haloc.formats.hlo_text import PrintOptions, to_text
from haloc.triage.reduce import reduced
from haloc.triage.worker import Isolated
from tests.fuzz.generate import random_arguments, random_module
from tests.fuzz.judge import Judged, judge

CHUNK = 50


def failure(seed: int) -> str:
    """What is wrong with a seed, "" if nothing is."""
    module = random_module(seed)
    try:
        judge(module, random_arguments(module, seed), seed)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)[-1]
        text = str(error).splitlines()[0] if str(error) else ""
        return f"{type(error).__name__}: {text}  [{frames.filename}:{frames.lineno}]"
    return ""


def small(seed: int) -> str:
    """The module of a seed made small, as text: it fails in the same way, by the same judge."""
    module = random_module(seed)
    with Isolated(Judged(seed)) as fault:
        program = reduced(module, random_arguments(module, seed), fault, constants=False)
    return to_text(program.module, PrintOptions.short())


def run_seeds(seeds: Iterable[int]) -> list[str]:
    """A line for each failing seed."""
    return [f"seed {seed}: {found}" for seed in seeds if (found := failure(seed))]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds")
    parser.add_argument("--reduce", action="store_true", help="make failing modules small")
    parser.add_argument("--here", action="store_true", help="in this process (for a debugger)")
    options = parser.parse_args()
    if options.here or options.count == 1:
        return _run_here(options)
    failed = 0
    for start in range(options.seed, options.seed + options.count, CHUNK):
        failed += _run_chunk(start, min(CHUNK, options.seed + options.count - start), options)
    print(f"{options.count} modules, {failed} failures")
    return 1 if failed else 0


def _run_here(options: argparse.Namespace) -> int:
    failed = 0
    for seed in range(options.seed, options.seed + options.count):
        print(f"at {seed}", flush=True)
        if found := failure(seed):
            failed = 1
            print(f"seed {seed}: {found}", flush=True)
            if options.reduce:
                print(small(seed), flush=True)
    return failed


def _run_chunk(seed: int, count: int, options: argparse.Namespace) -> int:
    """Failures among `count` seeds in a process of their own; after a crash, go on behind it."""
    failed = 0
    while count:
        command = [
            sys.executable,
            "-m",
            "tests.fuzz",
            "--here",
            f"--seed={seed}",
            f"--count={count}",
            *(["--reduce"] if options.reduce else []),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        for line in lines:
            if not line.startswith("at "):
                print(line, flush=True)
        failed += sum(line.startswith("seed ") for line in lines)
        if done.returncode in (0, 1):
            break
        last = max((int(line[3:]) for line in lines if line.startswith("at ")), default=seed)
        print(f"seed {last}: the process died, exit {done.returncode}: {done.stderr[-300:]}")
        failed += 1
        count -= last + 1 - seed
        seed = last + 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
