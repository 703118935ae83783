"""execution_stream_id: set in a block, a thread at a time."""

import threading

import pytest

from haloc.xla_client import execution_stream_id, get_execution_stream_id, set_execution_stream_id


def test_a_block_sets_and_restores_it():
    assert get_execution_stream_id() == 0
    with execution_stream_id(42):
        assert get_execution_stream_id() == 42
        with pytest.raises(KeyError), execution_stream_id(-3):
            assert get_execution_stream_id() == -3
            raise KeyError
        assert get_execution_stream_id() == 42
    assert get_execution_stream_id() == 0


def test_other_threads_have_their_own():
    seen = []
    with execution_stream_id(7):
        thread = threading.Thread(target=lambda: seen.append(get_execution_stream_id()))
        thread.start()
        thread.join()
    assert seen == [0]


def test_only_integers():
    with pytest.raises(TypeError):
        set_execution_stream_id("a")
    with pytest.raises(TypeError), execution_stream_id(1.5):
        pass
    assert get_execution_stream_id() == 0
