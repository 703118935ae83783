"""The native worker pool: threads that generated code shares loops with.

Generated code calls `void @haloc_parallel_for(ptr fn, ptr context, i64 extent, i64 grain)`, where
fn is `void (ptr context, i64 begin, i64 end)`. It runs fn over [0, extent), in chunks that begin at
multiples of `grain`, on the caller and on up to `num_threads() - 1` workers, and returns when all
is done. Which thread does which chunk varies; fn must not let that change its results. It runs as
one chunk on the caller when extent <= grain, when the limit is 1, and when the pool is busy with
another job, including the one it is called from.

`install()` compiles the pool, once per process, and makes the symbol known to LLVM's JIT. A forked
child starts with no workers and makes its own.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import llvmlite.binding as llvm

from haloc.codegen.target import host_target
from haloc.cpu.collective.native import EXPORTS
from haloc.cpu.pool.native import pool_text
from haloc.cpu.pool.threads import MAX_THREADS, default_num_threads
from haloc.errors import InvalidArgumentError

PARALLEL_FOR = "haloc_parallel_for"
DECLARE_PARALLEL_FOR = f"declare void @{PARALLEL_FOR}(ptr, ptr, i64, i64)"


@dataclass(frozen=True, slots=True)
class _Native:
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


def install() -> dict[str, int]:
    """Compile the pool if this process has not; {symbol: address} of what it exports."""
    return dict(_installed().symbols)


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


def _installed() -> _Native:
    global _native, _num_threads  # noqa: PLW0603  # one pool a process
    if _native is None:
        with _lock:
            if _native is None:
                count = default_num_threads()
                native = _compile()
                native.call("haloc_pool_reset")
                native.call("haloc_gang_reset")
                native.call("haloc_pool_set_limit", count)
                for name in (PARALLEL_FOR, *EXPORTS):
                    llvm.add_symbol(name, native.symbols[name])
                _num_threads = count
                _native = native
    return _native


def _compile() -> _Native:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = host_target()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.feature_string, opt=2, jit=True
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(pool_text()), machine)
    engine.finalize_object()
    native = _Native({name: engine.get_function_address(name) for name in _FUNCTIONS})
    # Workers run this code until the process ends, so it must outlive the interpreter's shutdown.
    engine.detach()
    return native


def _after_fork_in_child() -> None:
    global _lock  # noqa: PLW0603  # another thread may have held it when the parent forked
    _lock = threading.Lock()
    if _native is not None:
        _native.call("haloc_pool_reset")
        _native.call("haloc_gang_reset")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
