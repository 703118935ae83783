"""Threads that compile, execute, donate, delete and collect on 8 devices, for as long as told.

    python -m tests.soak [--minutes 10] [--threads 8] [--seed N]

Every value is checked. Fails when a value is wrong, when no thread gets anything done for a minute
(a deadlock: all stacks are printed), or when memory grows: the resident set may be a tenth (and
64 MB) larger at the end than it was after the first fifth of the time; in less than a minute pools
and caches do not fill, and memory is not judged.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import random
import sys
import threading
import time
from pathlib import Path

import numpy as np

from haloc.xla_client import ArrayImpl, Client, CompileOptions, LoadedExecutable, make_cpu_client

DEVICES = 8
STUCK_S = 60

PROGRAM = """
HloModule soak_{name}, input_output_alias={{ {{0}}: (0, {{}}) }}
r {{
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b)
}}
ENTRY e {{
  x = s32[{n}] parameter(0)
  y = s32[{n}] parameter(1)
  k = s32[] constant({name})
  ks = s32[{n}] broadcast(k), dimensions={{}}
  s = s32[{n}] add(x, y)
  t = s32[{n}] multiply(s, ks)
  sum = s32[{n}] all-reduce(t), replica_groups={{}}, to_apply=r
  next = s32[{n}] collective-permute(t), source_target_pairs={{{pairs}}}
  ROOT out = (s32[{n}], s32[{n}]) tuple(sum, next)
}}
"""


class Soak:
    """One soak: the client, its programs, what has been done and what went wrong."""

    def __init__(self, asynchronous: bool = True):
        self.client: Client = make_cpu_client(asynchronous=asynchronous, num_devices=DEVICES)
        self.rounds = 0
        self.failures: list[str] = []
        self.lock = threading.Lock()

    def program(self, rng: random.Random) -> tuple[LoadedExecutable, int, int]:
        """A freshly compiled program, its factor and its size."""
        count, size = rng.choice([1, 2, 4, 8]), rng.choice([1, 100, 5000, 100_000])
        name = rng.randrange(1, 6)
        pairs = ",".join(f"{{{k},{(k + 1) % count}}}" for k in range(count))
        options = CompileOptions()
        options.num_replicas = count
        devices = self.client.devices()
        rng.shuffle(devices)
        text = PROGRAM.format(name=name, n=size, pairs=pairs)
        return self.client.compile_and_load(text, devices[:count], options), name, size

    def work(self, seed: int, until: float) -> None:
        """Rounds of one thread."""
        rng = random.Random(seed)
        program = self.program(rng)
        while time.monotonic() < until and not self.failures:
            if rng.random() < 0.02:
                program = self.program(rng)
            try:
                self.round(rng, *program)
            except Exception as error:
                self.failures.append(f"{type(error).__name__}: {error}")
                return
            with self.lock:
                self.rounds += 1

    def round(self, rng: random.Random, executable: LoadedExecutable, k: int, size: int) -> None:
        """A few executions, each on the results of the one before, and a check."""
        devices = executable.local_devices()
        steps, start = rng.randrange(1, 4), rng.randrange(100)
        first = [np.full(size, start + d, np.int32) for d in range(len(devices))]
        xs = self.put(first, devices)
        y = np.arange(size, dtype=np.int32)
        ys = self.put([y] * len(devices), devices)
        wanted, after = first, first
        for _ in range(steps):
            results = executable.execute_sharded([xs, ys])
            sums, shifted = results.disassemble_into_single_device_arrays()
            if not all(x.is_deleted() for x in xs):
                self.failures.append("a donated array is alive")
            scaled = [(w + y) * np.int32(k) for w in wanted]
            total = np.sum(scaled, 0, dtype=np.int32)
            wanted = [total] * len(devices)
            after = [scaled[d - 1] for d in range(len(devices))]
            xs = sums
            if rng.random() < 0.3:
                for array in shifted:  # perhaps before it has a value
                    array.delete()
                shifted = []
        if rng.random() < 0.05:
            gc.collect()
        self.check(xs, wanted)
        self.check(shifted, after)

    def put(self, values: list[np.ndarray], devices: list) -> list[ArrayImpl]:
        put = self.client.buffer_from_pyval
        return [put(v, d, force_copy=True) for v, d in zip(values, devices, strict=True)]

    def check(self, arrays: list[ArrayImpl], wanted: list[np.ndarray]) -> None:
        for array, value in zip(arrays, wanted):
            if not np.array_equal(np.asarray(array), value):
                self.failures.append(f"wrong value: {np.asarray(array)[:4]} for {value[:4]}")


def resident_mb() -> float:
    """The resident set in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def soak(minutes: float, threads: int = 8, seed: int = 0) -> list[str]:
    """What went wrong; nothing, it is hoped."""
    run = Soak()
    begin = time.monotonic()
    until = begin + 60 * minutes
    workers = [
        threading.Thread(target=run.work, args=(seed + k, until), daemon=True)
        for k in range(threads)
    ]
    for worker in workers:
        worker.start()
    early, last_rounds, moved = 0.0, 0, begin
    while any(w.is_alive() for w in workers):
        time.sleep(min(1.0, 6 * minutes))
        now = time.monotonic()
        if run.rounds != last_rounds:
            last_rounds, moved = run.rounds, now
        elif now - moved > STUCK_S:
            faulthandler.dump_traceback(all_threads=True)
            return [*run.failures, f"nothing done for {STUCK_S} s after {run.rounds} rounds"]
        if not early and now > begin + 12 * minutes:
            early = resident_mb()
        if sys.stderr.isatty():
            done = min(1.0, (now - begin) / (60 * minutes))
            print(f"\r{done:4.0%} {run.rounds} rounds {resident_mb():.0f} MB", end="", flush=True,
                  file=sys.stderr)  # fmt: skip
    gc.collect()
    late = resident_mb()
    print(f"{run.rounds} rounds, resident set {early:.0f} MB early and {late:.0f} MB late")
    if minutes >= 1 and late > 1.1 * early + 64:
        run.failures.append(f"the resident set grew from {early:.0f} MB to {late:.0f} MB")
    return run.failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    failures = soak(options.minutes, options.threads, options.seed)
    for failure in failures[:10]:
        print(failure)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
