"""What the measuring process is told before it starts."""

from __future__ import annotations

import os
from pathlib import Path


def environment(threads: int, cache: Path) -> dict[str, str]:
    """Variables that give every side as many threads, and threads that do not spin for long: they
    would take the processors from the side that is timed next."""
    count = str(threads)
    return {
        "HALOC_NUM_THREADS": count,
        "HALOC_CACHE_DIR": os.fspath(cache),
        "HALOC_CACHE_BYTES": str(8 << 30),
        "OMP_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count,
        "OPENBLAS_THREAD_TIMEOUT": "20",
        "GOMP_SPINCOUNT": "10000",
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_COMPILATION_CACHE": "false",
    }
