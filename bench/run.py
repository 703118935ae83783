"""haloc beside jaxlib: the same HLO, one process, alternating runs, every ratio reported.

    python bench/run.py [--only REGEX] [--quick] [--no-write]

Writes bench/results.json and the table in README.md. Ratios are jaxlib's time over haloc's: above 1
haloc is faster. Floors: the bytes that have to move over this machine's measured bandwidth, or the
arithmetic over its measured peak, whichever takes longer.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import re
import statistics
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]
os.environ.setdefault("HALOC_CACHE_BYTES", "0")  # compile times are those of the compiler

import jax  # noqa: E402 (the path comes first)
import jaxlib  # noqa: E402
import numpy as np  # noqa: E402
from bench.cases import CASES, Case  # noqa: E402

from haloc import xla_client  # noqa: E402

BEGIN, END = "<!-- bench -->", "<!-- /bench -->"


@dataclass
class Row:
    """Times in seconds. error: relative difference of the results; floor: None if there is none."""

    name: str
    haloc_best: float
    haloc_median: float
    jaxlib_best: float
    jaxlib_median: float
    runs: int
    haloc_compile: float
    jaxlib_compile: float
    error: float
    is_right: bool
    bytes: int
    flops: float
    dtype: str
    floor: float | None = None

    @property
    def ratio(self) -> float:
        return self.jaxlib_best / self.haloc_best

    @property
    def compile_ratio(self) -> float:
        return self.jaxlib_compile / self.haloc_compile


def seconds(call: Callable[[], object], repeat: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(repeat):
        call()
    return (time.perf_counter() - start) / repeat


def measure(case: Case, client: xla_client.Client, budget_s: float) -> Row:
    arguments = case.arguments(np.random.default_rng(0))
    leaves = [np.asarray(x) for x in jax.tree.leaves(arguments)]
    lowered = jax.jit(case.function, keep_unused=True).lower(*arguments)
    text = lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True)
    start = time.perf_counter()
    executable = client.compile_and_load(text, client.devices()[:1])
    haloc_compile = time.perf_counter() - start
    start = time.perf_counter()
    lowered.compile()
    jaxlib_compile = time.perf_counter() - start

    buffers = [client.buffer_from_pyval(x) for x in leaves]
    jitted = jax.jit(case.function, keep_unused=True)

    def ours() -> list[Any]:
        results = executable.execute(buffers)
        for r in results:
            r.block_until_ready()
        return results

    def theirs() -> Any:
        return jax.block_until_ready(jitted(*arguments))

    got = [np.asarray(x) for x in ours()]
    wanted = [np.asarray(x) for x in jax.tree.leaves(theirs())]
    error = difference(got, wanted)
    size = sum(x.nbytes for x in [*leaves, *wanted])
    del got, wanted
    times = alternate(ours, theirs, budget_s)
    return Row(
        case.name,
        min(times[0]),
        statistics.median(times[0]),
        min(times[1]),
        statistics.median(times[1]),
        len(times[0]),
        haloc_compile,
        jaxlib_compile,
        error,
        error <= case.error,
        size if case.floor else 0,
        case.flops,
        case.dtype,
    )


def alternate(
    ours: Callable[[], object], theirs: Callable[[], object], budget_s: float
) -> tuple[list[float], list[float]]:
    """Seconds a call of both sides, in turn until the budget is spent; at least 5 of each.

    Calls of microseconds are timed by the hundred.
    """
    ours(), theirs()
    repeat = max(1, min(1000, int(0.005 / max(seconds(ours), 1e-7))))
    times: tuple[list[float], list[float]] = [], []
    gc.collect()
    end = time.perf_counter() + budget_s
    while len(times[0]) < 5 or (time.perf_counter() < end and len(times[0]) < 500):
        times[0].append(seconds(ours, repeat))
        times[1].append(seconds(theirs, repeat))
    return times


def difference(got: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """The largest ||got - wanted|| / ||wanted|| of a result; inf for another shape or type."""
    worst = 0.0
    for g, w in zip(got, wanted, strict=True):
        if g.dtype != w.dtype or g.shape != w.shape:
            return float("inf")
        wide = np.complex128 if w.dtype.kind == "c" else np.float64
        g, w = g.astype(wide), w.astype(wide)
        worst = max(worst, float(np.linalg.norm(g - w) / max(np.linalg.norm(w), 1e-30)))
    return worst


# --- What the machine can do ---------------------------------------------------------------------


def in_threads(count: int, work: Callable[[int], object]) -> float:
    """Seconds until `count` threads have each done `work(number)`."""
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    start = time.perf_counter()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return time.perf_counter() - start


def bandwidth(threads: int) -> float:
    """Bytes a second read and written together, by copies of 64 MiB a thread; best of 10."""
    pairs = [(np.ones(1 << 24, np.float32), np.ones(1 << 24, np.float32)) for _ in range(threads)]
    best = min(in_threads(threads, lambda n: np.copyto(*pairs[n])) for _ in range(10))
    return threads * 2 * pairs[0][0].nbytes / best


def peak_f32() -> float:
    """flop/s of NumPy's matmul of 2048 x 2048 on all its threads; best of 5."""
    x = np.random.default_rng(0).normal(size=(2048, 2048)).astype(np.float32)
    return 2.0 * 2048**3 / min(seconds(lambda: x @ x) for _ in range(5))


def set_floors(rows: list[Row], bytes_per_s: float, f32: float) -> dict[str, float]:
    """Fill in `floor`. The peak of each type is the best anybody reached on it in this run."""
    peaks = {"f32": f32, "bf16": f32}
    for row in rows:
        best = min(row.haloc_best, row.jaxlib_best)
        if row.flops:
            peaks[row.dtype] = max(peaks[row.dtype], row.flops / best)
    for row in rows:
        if row.bytes:
            row.floor = max(row.bytes / bytes_per_s, row.flops / peaks[row.dtype])
    return peaks


# --- Reports -------------------------------------------------------------------------------------


def time_text(s: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if s >= size:
            return f"{s / size:.3g} {unit}"
    return f"{s * 1e6:.3g} µs"


def table(rows: list[Row], facts: dict[str, Any]) -> str:
    peaks = facts["peaks"]
    ratios = [r.ratio for r in rows]
    compile_ratios = [r.compile_ratio for r in rows]
    lines = [
        f"{facts['cpu']}, {facts['threads']} threads each, load average "
        f"{facts['load']:.1f} before; jaxlib {facts['jaxlib']}, Python "
        f"{facts['python']}. Best of many alternating runs of the same HLO in one process; results "
        f"compared. Ratio: jaxlib's time / haloc's. Floor: {facts['bandwidth'] / 1e9:.0f} GB/s, "
        f"{peaks['f32'] / 1e9:.0f} Gflop/s f32, {peaks['bf16'] / 1e9:.0f} Gflop/s bf16, all "
        f"measured in the run. Geometric means: run {geometric_mean(ratios):.2f}, compile "
        f"{geometric_mean(compile_ratios):.2f}. `python bench/run.py` makes this table.",
        "",
        "| program | haloc | jaxlib | ratio | median ratio | x floor | compile haloc | jaxlib "
        "| ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        floor = f"{r.haloc_best / r.floor:.1f}" if r.floor else ""
        name = r.name if r.is_right else f"{r.name} (WRONG: {r.error:.1e})"
        lines.append(
            f"| {name} | {time_text(r.haloc_best)} | {time_text(r.jaxlib_best)} | {r.ratio:.2f} "
            f"| {r.jaxlib_median / r.haloc_median:.2f} | {floor} | {time_text(r.haloc_compile)} "
            f"| {time_text(r.jaxlib_compile)} | {r.compile_ratio:.2f} |"
        )
    return "\n".join(lines)


def geometric_mean(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else float("nan")


def write(rows: list[Row], facts: dict[str, Any]) -> None:
    results = {"facts": facts, "rows": [asdict(r) | {"ratio": r.ratio} for r in rows]}
    (ROOT / "bench" / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    readme = ROOT / "README.md"
    text = readme.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    readme.write_text(f"{before}{BEGIN}\n{table(rows, facts)}\n{END}{after}")


def cpu_name() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "CPU")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose names match")
    parser.add_argument("--quick", action="store_true", help="0.3 s a case instead of 3 s")
    parser.add_argument("--no-write", action="store_true", help="print only")
    options = parser.parse_args()
    threads = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    client = xla_client.make_cpu_client()
    # Both compilers load their LLVM before anything is timed.
    client.compile_and_load(
        "HloModule m\nENTRY e { ROOT c = f32[] constant(1) }", client.devices()[:1]
    )
    jax.jit(lambda x: x + 1)(1.0)
    speed, peak = bandwidth(threads), peak_f32()
    rows: list[Row] = []
    for case in CASES:
        if not re.search(options.only, case.name):
            continue
        row = measure(case, client, 0.3 if options.quick else 3.0)
        rows.append(row)
        print(
            f"{row.name:32} {time_text(row.haloc_best):>9} {time_text(row.jaxlib_best):>9} "
            f"ratio {row.ratio:6.2f}   compile {time_text(row.haloc_compile):>9} "
            f"{time_text(row.jaxlib_compile):>9} ratio {row.compile_ratio:6.2f}"
            + ("" if row.is_right else f"   WRONG: {row.error:.2e}"),
            flush=True,
        )
    facts = {
        "cpu": cpu_name(),
        "threads": threads,
        "load": load,
        "jaxlib": jaxlib.__version__,
        "python": platform.python_version(),
        "bandwidth": speed,
        "peaks": set_floors(rows, speed, peak),
    }
    print(table(rows, facts))
    if not options.no_write and not options.only:
        write(rows, facts)
    return 0 if all(r.is_right for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
