"""haloc beside jaxlib, PyTorch and NumPy: same programs, same data, in turn in one process.

    python bench/run.py [--only REGEX] [--quick] [--no-write] [--threads N]

Writes bench/results.json, bench/README.md's tables, the summary in README.md and bench/ratios.svg.
Ratios are a peer's time over haloc's: above 1 haloc is faster. Floors: the bytes that have to move
over this machine's measured bandwidth, or the arithmetic over its measured peak, whichever takes
longer. Runs on a quiet machine mean something; others do not.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import re
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from bench import machine, report  # noqa: E402 (the path comes first)
from bench.environment import environment  # noqa: E402
from bench.row import HALOC, JAXLIB, NUMPY, TORCH, Row  # noqa: E402
from bench.worker import Greeting, Settings, Worker  # noqa: E402

LIMIT_S = 120.0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", default="", metavar="REGEX", help="cases whose 'family: name' matches"
    )
    parser.add_argument("--quick", action="store_true", help="0.3 s a case instead of 1.5 s")
    parser.add_argument("--no-write", action="store_true", help="print only")
    parser.add_argument("--threads", type=int, default=2, help="of each side (default 2)")
    return parser.parse_args()


def progress(row: Row, done: int, total: int) -> str:
    """A line: the time of haloc and each peer's ratio, compilation's ratios, what is wrong."""
    parts = [f"[{done:3}/{total}] {row.name[:44]:44}"]
    if HALOC in row.best:
        parts.append(f"{report.time_text(row.best[HALOC]):>8}")
    for side in (JAXLIB, TORCH, NUMPY):
        parts.append(f"{side} {report.number(row.ratio(side)):>5}")
    for name, times in (("cold", row.cold), ("warm", row.warm)):
        ratio = times[JAXLIB] / times[HALOC] if {JAXLIB, HALOC} <= set(times) else None
        parts.append(f"{name} {report.number(ratio):>5}")
    parts += [f"WRONG {side}: {row.error[side]:.1e}" for side in row.wrong]
    parts += [f"FAILED {side}: {text.splitlines()[0]}" for side, text in row.failure.items()]
    return "  ".join(parts)


def facts(threads: int, load: float) -> dict[str, object]:
    versions = {}
    for name in ("jax", "jaxlib", "torch", "numpy", "scipy", "llvmlite"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "cpu": machine.cpu_name(),
        "threads": threads,
        "load": load,
        "python": platform.python_version(),
        "versions": versions,
    }


def measured(options: argparse.Namespace, threads: int) -> tuple[list[Row], Greeting]:
    """The rows of all cases asked for, each printed as it is there; what the machine can do."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="haloc-bench-") as folder:
        os.environ.update(environment(threads, Path(folder)))
        worker = Worker(Settings(Path(folder), 0.3 if options.quick else 1.5, threads))
        chosen = [
            number
            for number, (family, name) in enumerate(worker.greeting.names)
            if re.search(options.only, f"{family}: {name}")
        ]
        for row in worker.rows(chosen, LIMIT_S):
            rows.append(row)
            print(progress(row, len(rows), len(chosen)), flush=True)
        worker.close()
    return rows, worker.greeting


def main() -> int:
    options = parsed()
    load = os.getloadavg()[0]
    threads = machine.use_processors(options.threads)
    start = time.perf_counter()
    rows, greeting = measured(options, threads)
    known = facts(threads, load)
    known["rates"] = asdict(greeting.rates)
    known["peaks"] = machine.set_floors(rows, greeting.rates, greeting.peaks)
    known["seconds"] = time.perf_counter() - start
    print(report.summary(rows, known))
    if not options.no_write and not options.only:
        report.write(rows, known, ROOT)
    return 0 if all(r.is_right for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
