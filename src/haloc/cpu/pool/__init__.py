"""The native worker pool: threads that generated code shares loops with.

Generated code calls `void @haloc_parallel_for(ptr fn, ptr context, i64 extent, i64 grain)`, where
fn is `void (ptr context, i64 begin, i64 end)`. It runs fn over [0, extent), in chunks that begin at
multiples of `grain`, on the caller and on up to `num_threads() - 1` workers, and returns when all
is done. Which thread does which chunk varies; fn must not let that change its results. It runs as
one chunk on the caller when extent <= grain, when the limit is 1, and when the pool is busy with
another job, including the one it is called from.

The pool is one image of native code, which `install` loads once per process: it comes with stored
programs, else from the disk cache, else LLVM compiles it. A forked child starts with no workers and
makes its own.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from haloc.cpu.collective.native import EXPORTS
from haloc.cpu.object.image import Image
from haloc.cpu.object.loader import LoadedImage
from haloc.cpu.pool.image import stored_or_compiled
from haloc.cpu.pool.threads import MAX_THREADS, default_num_threads
from haloc.cpu.symbols import resolve
from haloc.errors import InvalidArgumentError

PARALLEL_FOR = "haloc_parallel_for"
DECLARE_PARALLEL_FOR = f"declare void @{PARALLEL_FOR}(ptr, ptr, i64, i64)"


@dataclass(frozen=True, slots=True)
class _Native:
    image: Image
    symbols: dict[str, int]

    def call(self, name: str, *arguments: int, result: type | None = None) -> int:
        prototype = ctypes.CFUNCTYPE(result, *(ctypes.c_int64 for _ in arguments))
        return prototype(self.symbols[name])(*arguments)


_FUNCTIONS = (
    PARALLEL_FOR,
    "haloc_pool_reset",
    "haloc_pool_set_limit",
    "haloc_pool_started",
    *EXPORTS,
)
_lock = threading.Lock()
_native: _Native | None = None
_num_threads = 0


def install(image: Image | None = None) -> dict[str, int]:
    """Load the pool if this process has not; {symbol: address} of what it exports. image: where it
    may come from, if it is not there yet."""
    return dict(_installed(image).symbols)


def image() -> Image:
    """The pool's code, for a program that will be stored."""
    return _installed().image


def address_of(symbol: str) -> int:
    """Of a function that the pool exports."""
    return _installed().symbols[symbol]


def num_threads() -> int:
    """The most threads a parallel loop uses, its caller included."""
    _installed()
    return _num_threads


def set_num_threads(count: int | None) -> None:
    """Limit parallel loops to `count` threads, the caller included; None: the default.

    The default is HALOC_NUM_THREADS or else what affinity and the cgroup quota allow.
    """
    global _num_threads  # noqa: PLW0603  # the limit is the process's
    if count is None:
        count = default_num_threads()
    if not 1 <= count <= MAX_THREADS:
        raise InvalidArgumentError(f"number of threads {count} is not in [1, {MAX_THREADS}]")
    _installed().call("haloc_pool_set_limit", count)
    _num_threads = count


@contextmanager
def limit_threads(count: int) -> Iterator[None]:
    """`set_num_threads(count)` within a `with` block. The limit is the whole process's."""
    before = num_threads()
    set_num_threads(count)
    try:
        yield
    finally:
        set_num_threads(before)


def started_workers() -> int:
    """Worker threads that exist now; they are made when first needed and kept."""
    return _installed().call("haloc_pool_started", result=ctypes.c_int64)


def _installed(image: Image | None = None) -> _Native:
    global _native, _num_threads  # noqa: PLW0603  # one pool a process
    if _native is None:
        with _lock:
            if _native is None:
                count = default_num_threads()
                native = _load(image or stored_or_compiled(_FUNCTIONS))
                native.call("haloc_pool_reset")
                native.call("haloc_gang_reset")
                native.call("haloc_pool_set_limit", count)
                _num_threads = count
                _native = native
    return _native


def _load(image: Image) -> _Native:
    loaded = LoadedImage(image, resolve)
    # Workers run this code until the process ends, so it must outlive the interpreter's shutdown.
    loaded.keep_forever()
    return _Native(image, {name: loaded.address(name) for name in _FUNCTIONS})


def _after_fork_in_child() -> None:
    global _lock  # noqa: PLW0603  # another thread may have held it when the parent forked
    _lock = threading.Lock()
    if _native is not None:
        _native.call("haloc_pool_reset")
        _native.call("haloc_gang_reset")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
