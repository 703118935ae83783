"""Participants that do not come, that fail, that are stuck: everyone gets an error, and the next
run works."""

import threading
import time

import numpy as np
import pytest

from haloc.errors import DeadlineExceededError, InvalidArgumentError
from tests.cpu.collective.programs import Native
from tests.cpu.collective.test_collectives import RAGGED, ragged_arguments, region

SKIPPED = f"""
HloModule m
{region("f32", "add")}
meet {{
  x = f32[4] parameter(0)
  ROOT sum = f32[4] all-reduce(x), replica_groups={{}}, to_apply=r
}}
skip {{
  ROOT x = f32[4] parameter(0)
}}
ENTRY e {{
  p = pred[] parameter(0)
  x = f32[4] parameter(1)
  ROOT c = f32[4] conditional(p, x, x), true_computation=meet, false_computation=skip
}}
"""


def test_a_missing_participant_is_named_within_the_timeout():
    native = Native(SKIPPED, 2, 2)
    x = np.ones(4, np.float32)
    start = time.monotonic()
    with pytest.raises(DeadlineExceededError) as caught:
        native.run([[np.bool_(k != 2), x] for k in range(4)], timeout_s=0.2)
    assert time.monotonic() - start < 2
    message = caught.value.message
    assert message.startswith("sum: waited 0.2 s for participant 2 (replica 1, partition 0)")
    ((first,), *_) = native.run([[np.bool_(True), x] for _ in range(4)])
    np.testing.assert_array_equal(first, 2 * x)  # the replicas' sum, in each partition


def test_slices_that_do_not_fit():
    arguments = ragged_arguments()
    arguments[1][3] = np.array([1, 7], np.int32)
    native = Native(RAGGED, 2)
    with pytest.raises(InvalidArgumentError, match=r"^INVALID_ARGUMENT: r: send_sizes, "):
        native.run(arguments)
    assert native.run(ragged_arguments())


def test_many_gangs_at_once():
    """Far more participants wait than there are processors."""
    text = f"""
HloModule m
{region("s32", "add")}
ENTRY e {{
  x = s32[100] parameter(0)
  a = s32[100] all-reduce(x), replica_groups={{}}, to_apply=r
  b = s32[100] all-reduce(a), replica_groups={{{{0,1}},{{2,3}},{{4,5}},{{6,7}}}}, to_apply=r
  ROOT c = s32[100] all-reduce(b), replica_groups={{{{0,2,4,6}},{{1,3,5,7}}}}, to_apply=r
}}
"""
    native = Native(text, 8)
    failures = []

    def work(seed):
        for n in range(20):
            x = np.full(100, seed + n, np.int32)
            for (result,) in native.run([[x]] * 8):
                if not np.array_equal(result, x * 8 * 2 * 4):
                    failures.append((seed, n))

    threads = [threading.Thread(target=work, args=(100 * k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not failures
