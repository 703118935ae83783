"""Pending: work that ends once, and the arrays that wait for it."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable

import numpy as np
import pytest

from haloc.errors import DeadlineExceededError, InternalError
from haloc.runtime.pending import Pending
from haloc.runtime.single_device_array import SingleDeviceArray, view_of
from haloc.xla_client import batched_block_until_ready, make_interpreter_client

CLIENT = make_interpreter_client()


def pending_array(pending: Pending, value: float = 0) -> SingleDeviceArray:
    """An array of two floats that `pending` is to give their value."""
    full = CLIENT.buffer_from_pyval(np.full(2, value, np.float64), force_copy=True)
    return SingleDeviceArray(full._spec, full._block, True, pending)


def fill(array: SingleDeviceArray, value: float) -> None:
    view_of(array._block, array._spec, read_only=False)[:] = value


class TestPending:
    def test_success(self) -> None:
        pending = Pending()
        assert not pending.done()
        pending.finish()
        assert pending.done()
        assert pending.error is None
        pending.wait()
        pending.wait()

    def test_every_waiter_is_woken(self) -> None:
        pending = Pending()
        woken: list[int] = []

        def wait(number: int) -> None:
            pending.wait()
            woken.append(number)

        threads = [threading.Thread(target=wait, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        time.sleep(0.02)
        assert woken == []
        pending.finish()
        for thread in threads:
            thread.join(5)
        assert sorted(woken) == list(range(8))

    def test_every_waiter_gets_the_error(self) -> None:
        pending = Pending()
        error = InternalError("lost")
        pending.fail(error)
        for _ in range(2):
            with pytest.raises(InternalError, match="lost") as caught:
                pending.wait()
            assert caught.value is error
        assert pending.error is error

    def test_the_error_shows_where_it_arose_and_does_not_grow(self) -> None:
        pending = Pending()

        def fails() -> None:
            raise ValueError("boom")

        try:
            fails()
        except ValueError as error:
            pending.fail(error)
        lengths = set()
        for _ in range(3):
            with pytest.raises(ValueError, match="boom") as caught:
                pending.wait()
            frames = traceback.extract_tb(caught.value.__traceback__)
            assert "fails" in [f.name for f in frames]
            lengths.add(len(frames))
        assert len(lengths) == 1

    def test_a_limit(self) -> None:
        with pytest.raises(DeadlineExceededError, match=r"not ready after 0\.01 seconds"):
            Pending().wait(timeout_s=0.01)


READS: list[Callable[[SingleDeviceArray], object]] = [
    np.asarray,
    lambda a: a.block_until_ready(),
    lambda a: batched_block_until_ready([a]),
    lambda a: a.unsafe_buffer_pointer(),
    lambda a: a.__dlpack__(),
    lambda a: a.tolist(),
    lambda a: a.item(0),
    str,
    repr,
]


class TestArrays:
    @pytest.mark.parametrize("read", READS)
    def test_reading_waits(self, read: Callable[[SingleDeviceArray], object]) -> None:
        pending = Pending()
        array = pending_array(pending)
        results: list[object] = []
        thread = threading.Thread(target=lambda: results.append(read(array)))
        thread.start()
        time.sleep(0.02)
        assert results == []
        assert not array.is_ready()
        fill(array, 5)
        pending.finish()
        thread.join(5)
        assert len(results) == 1
        assert array.is_ready()
        assert np.asarray(array).tolist() == [5, 5]

    @pytest.mark.parametrize("read", READS)
    def test_reading_raises_the_error_every_time(
        self, read: Callable[[SingleDeviceArray], object]
    ) -> None:
        pending = Pending()
        array = pending_array(pending)
        pending.fail(InternalError("the run failed"))
        assert array.is_ready()
        for _ in range(2):
            with pytest.raises(InternalError, match="the run failed"):
                read(array)

    def test_what_needs_no_value_does_not_wait(self) -> None:
        array = pending_array(Pending())
        assert (array.shape, array.dtype, array.nbytes) == ((2,), np.float64, 16)
        assert array.devices() == set(CLIENT.devices())
        assert array.on_device_size_in_bytes() == 16
        array.copy_to_host_async()
        assert not array.clone().is_ready()
        array.delete()
        assert array.is_deleted()

    def test_a_clone_waits_for_the_same(self) -> None:
        pending = Pending()
        array = pending_array(pending)
        clone = array.clone()
        array.delete()
        fill(clone, 2)
        pending.finish()
        assert np.asarray(clone).tolist() == [2, 2]
