"""The static allocator never hands out overlapping memory, and reuses what is free."""

import numpy as np

from haloc.cpu.arena import ALIGNMENT, Arena


def test_freed_memory_is_reused():
    arena = Arena()
    a = arena.allocate(1000)
    b = arena.allocate(500)
    arena.free(a)
    assert arena.allocate(900).place == a.place
    assert b.place >= 1000
    assert arena.size_bytes <= 1024 + 512


def test_random_lives_do_not_overlap():
    rng = np.random.default_rng(0)
    arena = Arena()
    live = []
    peak = 0
    for _ in range(2000):
        if live and rng.random() < 0.5:
            arena.free(live.pop(int(rng.integers(len(live)))))
            continue
        slot = arena.allocate(int(rng.integers(0, 5000)))
        assert slot.place % ALIGNMENT == 0
        for other in live:
            apart = slot.place + max(slot.size_bytes, 1) <= other.place
            assert apart or other.place + max(other.size_bytes, 1) <= slot.place
        live.append(slot)
        peak = max(peak, sum(s.size_bytes for s in live))
    assert arena.size_bytes < 1.6 * peak + 4096
