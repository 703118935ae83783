"""What the machine can do: bandwidth, peaks, and the least time that a case needs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench.row import Row

CACHED_BYTES = 16 << 20
"""Programs that move less than this may stay in caches: their bytes set no floor."""


@dataclass(frozen=True)
class Rates:
    """Bytes a second, of all threads together, from and to memory."""

    read: float
    write: float


def in_threads(count: int, work: Callable[[int], object]) -> float:
    """Seconds until `count` threads have each done `work(number)`."""
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    start = time.perf_counter()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return time.perf_counter() - start


def measured_rates(threads: int) -> Rates:
    """Reading: maxima of 64 MiB a thread. Writing: what copies of them take longer. Best of 15."""
    sources = [np.ones(1 << 24, np.float32) for _ in range(threads)]
    targets = [np.ones(1 << 24, np.float32) for _ in range(threads)]
    size = sum(x.nbytes for x in sources)
    reading = min(in_threads(threads, lambda n: sources[n].max()) for _ in range(15))
    copying = min(
        in_threads(threads, lambda n: np.copyto(targets[n], sources[n])) for _ in range(15)
    )
    return Rates(size / reading, size / max(copying - reading, reading / 2))


def measured_peaks() -> dict[str, float]:
    """flop/s of NumPy's matmul of 2048 x 2048 on all its threads; best of 5."""
    rng = np.random.default_rng(0)
    peaks = {}
    for name, dtype in (("f32", np.float32), ("f64", np.float64)):
        x = rng.random((2048, 2048)).astype(dtype)
        taken = []
        for _ in range(5):
            start = time.perf_counter()
            x @ x
            taken.append(time.perf_counter() - start)
        peaks[name] = 2.0 * 2048**3 / min(taken)
    return peaks


def set_floors(rows: list[Row], rates: Rates, peaks: dict[str, float]) -> dict[str, float]:
    """Fill in `floor`. The peak of a type is the best that any side reached on it in this run."""
    peaks = dict(peaks)
    for row in rows:
        if row.flops and row.best:
            reached = row.flops / min(row.best.values())
            peaks[row.dtype] = max(peaks.get(row.dtype, 0.0), reached)
    for row in rows:
        moved = row.read_bytes / rates.read + row.written_bytes / rates.write
        is_large = row.read_bytes + row.written_bytes >= CACHED_BYTES
        bounds = [moved * is_large, row.flops / peaks[row.dtype] if row.flops else 0.0]
        row.floor = (max(bounds) or None) if row.has_floor else None
    return peaks


def cpu_name() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "CPU")


def use_processors(count: int) -> int:
    """Keep this process and its children to `count` processors; how many there really are."""
    allowed = sorted(os.sched_getaffinity(0))[:count]
    os.sched_setaffinity(0, allowed)
    return len(allowed)
