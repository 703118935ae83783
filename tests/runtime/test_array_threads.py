"""Arrays made, shared, read, reported and deleted by several threads at once."""

from __future__ import annotations

import gc
import threading

import numpy as np

from haloc.xla_client import (
    Mesh,
    NamedSharding,
    PartitionSpec,
    ShapedArray,
    batched_device_put,
    make_interpreter_client,
)

THREADS, ROUNDS = 4, 150


def test_no_value_is_wrong_and_no_memory_is_lost() -> None:
    client = make_interpreter_client(num_devices=8)
    client.pool.limit_bytes = 1 << 20
    devices = client.devices()
    sharding = NamedSharding(Mesh(np.array(devices), ("x",)), PartitionSpec("x"))
    aval = ShapedArray((8 * 5000,), np.float64)
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for round in range(ROUNDS):
                value = float(1000 * seed + round)
                size = int(rng.choice([1, 3, 1000, 40_000, 200_000]))
                array = client.buffer_from_pyval(
                    np.full(size, value), devices[round % 8], force_copy=True
                )
                clone = array.clone()
                array.delete()
                parts = [np.full(5000, value + i) for i in range(8)]
                split = batched_device_put(aval, sharding, parts, devices, force_copy=True)
                if round % 10 == 0:
                    client.heap_profile()
                    devices[seed % 8].memory_stats()
                    gc.collect()
                assert (np.asarray(clone) == value).all()
                assert np.asarray(split)[::5000].tolist() == [value + i for i in range(8)]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert errors == []
    gc.collect()
    assert client.live_arrays() == []
    assert [d.memory_stats()["bytes_in_use"] for d in devices] == [0] * 8
    client.pool.trim(0)
    stats = devices[0].memory_stats()
    assert stats["pool_bytes"] < stats["peak_pool_bytes"]
