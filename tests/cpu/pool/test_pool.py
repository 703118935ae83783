"""The worker pool: every unit done once, from any number of threads, forks and nesting."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time

import llvmlite.binding as llvm
import numpy as np
import pytest

from haloc.cpu import pool
from haloc.cpu.pool import native as native_pool
from haloc.cpu.pool import threads
from haloc.errors import InvalidArgumentError

# context: {counts, extent, grain of the nested loop}; each unit adds 1 to its count.
_TEXT = """
declare void @haloc_parallel_for(ptr, ptr, i64, i64)
define void @count(ptr %counts, i64 %begin, i64 %end) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %i.next, %loop ]
  %p = getelementptr i32, ptr %counts, i64 %i
  %old = load i32, ptr %p
  %new = add i32 %old, 1
  store i32 %new, ptr %p
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
define void @chunk(ptr %sizes, i64 %begin, i64 %end) {
  %n = sub i64 %end, %begin
  %p = getelementptr i64, ptr %sizes, i64 %begin
  store i64 %n, ptr %p
  ret void
}
define void @nested(ptr %counts, i64 %begin, i64 %end) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %i.next, %loop ]
  %o = mul i64 %i, 64
  %p = getelementptr i32, ptr %counts, i64 %o
  call void @haloc_parallel_for(ptr @count, ptr %p, i64 64, i64 4)
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


@pytest.fixture(scope="module")
def native():
    for name, address in pool.install().items():
        llvm.add_symbol(name, address)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_TEXT), machine)
    engine.finalize_object()
    names = ("count", "chunk", "nested")
    yield {name: engine.get_function_address(name) for name in names}


@pytest.fixture(autouse=True)
def _restore_limit():
    before = pool.num_threads()
    yield
    pool.set_num_threads(before)


def parallel_for(fn: int, array: np.ndarray, extent: int, grain: int) -> None:
    prototype = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
    )
    prototype(pool.install()["haloc_parallel_for"])(fn, array.ctypes.data, extent, grain)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("extent,grain", [(0, 1), (1, 1), (7, 3), (1000, 1), (1000, 64), (5, 0)])
def test_every_unit_runs_once(native, count, extent, grain):
    pool.set_num_threads(count)
    for _ in range(20):
        counts = np.zeros(extent + 1, np.int32)
        parallel_for(native["count"], counts, extent, grain)
        assert (counts[:extent] == 1).all()
        assert counts[extent] == 0


def test_chunks_begin_at_multiples_of_the_grain(native):
    pool.set_num_threads(3)
    sizes = np.zeros(100, np.int64)
    parallel_for(native["chunk"], sizes, 100, 16)
    expected = np.zeros(100, np.int64)
    expected[0:96:16] = 16
    expected[96] = 4
    np.testing.assert_array_equal(sizes, expected)


def test_one_thread_and_small_loops_run_as_one_chunk(native):
    for count, grain in [(1, 16), (3, 100), (3, 200)]:
        pool.set_num_threads(count)
        sizes = np.zeros(100, np.int64)
        parallel_for(native["chunk"], sizes, 100, grain)
        assert sizes[0] == 100


def test_nested_loops_run_inline(native):
    pool.set_num_threads(4)
    for _ in range(50):
        counts = np.zeros(64 * 64, np.int32)
        parallel_for(native["nested"], counts, 64, 1)
        assert (counts == 1).all()


def test_eight_python_threads_at_once(native):
    pool.set_num_threads(4)
    wrong = []

    def work(seed: int) -> None:
        counts = np.zeros(500, np.int32)
        for i in range(400):
            parallel_for(native["count"], counts, 500, 1 + (seed + i) % 50)
        if not (counts == 400).all():
            wrong.append(seed)

    callers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong
    assert pool.started_workers() >= 3


def test_idle_workers_use_no_cpu(native):
    pool.set_num_threads(4)
    parallel_for(native["count"], np.zeros(100, np.int32), 100, 1)
    assert pool.started_workers() >= 3
    time.sleep(0.05)  # past the spin
    before = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - before < 0.05


def test_sleeping_workers_wake(native):
    pool.set_num_threads(3)
    for _ in range(20):
        time.sleep(0.002)  # longer than the spin
        counts = np.zeros(100, np.int32)
        parallel_for(native["count"], counts, 100, 1)
        assert (counts == 1).all()


FORK = """
import ctypes, os
import numpy as np
from haloc.cpu import pool

seen = np.zeros(100, np.int32)

@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
def mark(context, begin, end):
    seen[begin:end] += 1

loop = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
    pool.install()[pool.PARALLEL_FOR]
)

def run():
    seen[:] = 0
    loop(ctypes.cast(mark, ctypes.c_void_p), None, 100, 1)
    assert (seen == 1).all()

pool.set_num_threads(3)
run()
assert pool.started_workers() == 2
child = os.fork()
if child == 0:
    code = 1
    try:
        assert pool.started_workers() == 0
        run()
        assert pool.started_workers() == 2
        code = 0
    finally:
        os._exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_starts_its_own_workers():
    """In a process of its own: libraries that other tests import warn about forks."""
    done = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_limit_is_checked_and_restored():
    before = pool.num_threads()
    with pool.limit_threads(7):
        assert pool.num_threads() == 7
    assert pool.num_threads() == before
    with pytest.raises(InvalidArgumentError, match=r"number of threads 0 is not in \[1, 4096\]"):
        pool.set_num_threads(0)


def test_the_environment_sets_the_default(monkeypatch):
    monkeypatch.setenv("HALOC_NUM_THREADS", "3")
    assert threads.default_num_threads() == 3
    monkeypatch.setenv("HALOC_NUM_THREADS", "many")
    with pytest.raises(InvalidArgumentError, match="HALOC_NUM_THREADS='many'"):
        threads.default_num_threads()


def test_cgroup_quotas_of_both_versions(tmp_path):
    process = tmp_path / "cgroup"
    process.write_text("0::/a/b\n")
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "cpu.max").write_text("max 100000\n")
    (tmp_path / "a" / "cpu.max").write_text("150000 100000\n")
    assert threads._cgroup_quota(tmp_path, process) == 1500
    process.write_text("4:cpu,cpuacct:/c\n")
    (tmp_path / "cpu" / "c").mkdir(parents=True)
    (tmp_path / "cpu" / "c" / "cpu.cfs_quota_us").write_text("50000\n")
    (tmp_path / "cpu" / "c" / "cpu.cfs_period_us").write_text("100000\n")
    assert threads._cgroup_quota(tmp_path, process) == 500
    process.write_text("0::/none\n")
    (tmp_path / "a" / "cpu.max").unlink()
    assert threads._cgroup_quota(tmp_path, process) is None


def test_the_process_exits_cleanly_with_workers_alive():
    program = (
        "import ctypes; from haloc.cpu import pool; pool.set_num_threads(4)\n"
        "f = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)\n"
        "done = []\n"
        "cb = f(lambda c, b, e: done.append((b, e)))\n"
        "g = ctypes.CFUNCTYPE(None, f, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)\n"
        "g(pool.install()['haloc_parallel_for'])(cb, None, 40, 1)\n"
        "assert sorted(done) == [(i, i + 1) for i in range(40)], done\n"
    )
    for _ in range(3):
        result = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
        )
        assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    "machine,system,triple",
    [
        ("x86_64", "linux", "x86_64-unknown-linux-gnu"),
        ("aarch64", "linux", "aarch64-unknown-linux-gnu"),
        ("arm64", "darwin", "arm64-apple-macosx13"),
        ("riscv64", "linux", "riscv64-unknown-linux-gnu"),
    ],
)
def test_the_text_compiles_for_other_machines(monkeypatch, machine, system, triple):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    monkeypatch.setattr(native_pool.platform, "machine", lambda: machine)
    monkeypatch.setattr(native_pool, "_IS_DARWIN", system == "darwin")
    module = llvm.parse_assembly(native_pool.pool_text(), llvm.create_context())
    module.verify()
    code = llvm.Target.from_triple(triple).create_target_machine().emit_object(module)
    assert len(code) > 500
