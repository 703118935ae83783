"""The pool: alignment, reuse, bounds, size classes, threads."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

from haloc.runtime.memory_pool import MemoryPool, size_class_bytes


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 4096, 100_000, 3 << 20])
def test_blocks_are_aligned_and_large_enough(size: int) -> None:
    block = MemoryPool().allocate(size)
    assert block.pointer % 64 == 0
    assert block.size_bytes >= max(size, 1)


@pytest.mark.parametrize("size", [1, 64, 65, 1000, 4097, (1 << 20) + 1, 12_345_678])
def test_size_classes_waste_at_most_a_quarter(size: int) -> None:
    chosen = size_class_bytes(size)
    assert chosen % 64 == 0
    assert size <= chosen <= max(64, size + 63, size * 5 // 4)
    assert size_class_bytes(chosen) == chosen


def test_memory_of_a_dead_block_is_used_again() -> None:
    pool = MemoryPool()
    block = pool.allocate(1 << 20)
    pointer = block.pointer
    del block
    assert pool.cached_bytes() == 1 << 20
    assert pool.allocate(1 << 20).pointer == pointer


def test_blocks_in_use_do_not_overlap() -> None:
    pool = MemoryPool()
    blocks = [pool.allocate(100) for _ in range(5000)]
    spans = sorted((b.pointer, b.pointer + b.size_bytes) for b in blocks)
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))


def test_the_limit_bounds_what_is_kept() -> None:
    pool = MemoryPool(limit_bytes=3 << 20)
    blocks = [pool.allocate(1 << 20) for _ in range(8)]
    assert pool.cached_bytes() == 0
    del blocks
    assert 0 < pool.cached_bytes() <= 3 << 20


def test_numpy_views_keep_a_block_alive() -> None:
    pool = MemoryPool()
    block = pool.allocate(1 << 20)
    view = np.asarray(block)[10:20]
    pointer = block.pointer
    del block
    assert pool.cached_bytes() == 0
    assert view.__array_interface__["data"][0] == pointer + 10
    del view
    assert pool.cached_bytes() == 1 << 20


def test_threads_never_share_a_block() -> None:
    pool = MemoryPool()
    wrong: list[int] = []

    def work(mark: int) -> None:
        for size in (64, 640, 40_000, 300_000) * 50:
            block = pool.allocate(size)
            memory = np.ctypeslib.as_array(
                (np.ctypeslib.ctypes.c_uint8 * 64).from_address(block.pointer)
            )
            memory[:] = mark
            if not (memory == mark).all():
                wrong.append(mark)
            del block

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
