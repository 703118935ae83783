"""How many threads this process may use: affinity, cgroup quota, HALOC_NUM_THREADS."""

from __future__ import annotations

import os
from pathlib import Path

from haloc.errors import InvalidArgumentError

MAX_THREADS = 4096
"""The pool counts workers in 16 bits; no more than this are ever useful."""


def default_num_threads() -> int:
    """HALOC_NUM_THREADS if set, else min(CPUs this process may run on, cgroup CPU quota).

    InvalidArgumentError when HALOC_NUM_THREADS is not a positive number.
    """
    asked = os.environ.get("HALOC_NUM_THREADS", "")
    if asked:
        if not asked.strip().isdigit() or int(asked) < 1:
            raise InvalidArgumentError(f"HALOC_NUM_THREADS={asked!r} is not a positive integer")
        return min(int(asked), MAX_THREADS)
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    quota = _cgroup_quota()
    if quota is not None:
        # 1.5 CPUs keep two threads busy most of the time; 0.5 CPUs are one thread.
        count = min(count, max(1, -(-quota // 1000)))
    return max(1, min(count, MAX_THREADS))


def _cgroup_quota(root: Path = Path("/sys/fs/cgroup"), process: Path = Path("/proc/self/cgroup")):
    """The tightest CPU quota above this process in thousandths of a CPU; None without one."""
    quotas = []
    for line in _read(process).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":  # version 2
            for folder in _upwards(root, path):
                quota, _, period = _read(folder / "cpu.max").partition(" ")
                if quota.strip().isdigit():
                    quotas.append(int(quota) * 1000 // int(period))
        elif "cpu" in controllers.split(","):  # version 1
            for folder in _upwards(root / "cpu", path):
                quota = _read(folder / "cpu.cfs_quota_us").strip()
                period = _read(folder / "cpu.cfs_period_us").strip()
                if quota.isdigit() and period.isdigit() and int(period):
                    quotas.append(int(quota) * 1000 // int(period))
    return min(quotas, default=None)


def _upwards(root: Path, path: str) -> list[Path]:
    parts = [p for p in path.split("/") if p not in ("", "..")]
    return [root.joinpath(*parts[:n]) for n in range(len(parts), -1, -1)]


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
