"""`HostTransfers`: values that go between a running program and its host, in queues."""

from __future__ import annotations

import queue
import threading
from collections import defaultdict
from enum import Enum

from haloc.errors import DeadlineExceededError
from haloc.ir.literal import Value


class Way(Enum):
    """Which way a value goes, and by which ops."""

    INFEED = "infeed"
    OUTFEED = "outfeed"
    TO_DEVICE = "recv"
    TO_HOST = "send"


class HostTransfers:
    """First-in, first-out queues of values: infeed, outfeed, and send and recv with the host.

    A participant (a flattened logical id; 0 where there is one) has queues of its own, and of send
    and recv each channel. Values are NumPy arrays, or tuples of them. Thread-safe: the program may
    run in another thread than its host.

    timeout_s: how many seconds either side waits for the other before DeadlineExceededError.
    """

    def __init__(self, timeout_s: float = 10.0):
        self.timeout_s = timeout_s
        self._lock = threading.Lock()
        self._queues: defaultdict[tuple[Way, int, int], queue.SimpleQueue[Value]]
        self._queues = defaultdict(queue.SimpleQueue)

    # --- The host's side -------------------------------------------------------------------

    def transfer_to_infeed(self, value: Value, participant: int = 0) -> None:
        """Queue a value for the participant's infeed ops."""
        self.put(Way.INFEED, value, participant)

    def transfer_from_outfeed(self, participant: int = 0) -> Value:
        """The next value of the participant's outfeed ops; waits for it."""
        return self.take(Way.OUTFEED, participant)

    def send_to_device(self, value: Value, channel_id: int, participant: int = 0) -> None:
        """Queue a value for recv ops of this channel that are host transfers."""
        self.put(Way.TO_DEVICE, value, participant, channel_id)

    def receive_from_device(self, channel_id: int, participant: int = 0) -> Value:
        """The next value of the channel's send ops that are host transfers; waits for it."""
        return self.take(Way.TO_HOST, participant, channel_id)

    # --- Both sides ------------------------------------------------------------------------

    def put(self, way: Way, value: Value, participant: int = 0, channel_id: int = 0) -> None:
        self._queue(way, participant, channel_id).put(value)

    def take(self, way: Way, participant: int = 0, channel_id: int = 0) -> Value:
        """The oldest value. Raises DeadlineExceededError when none comes within `timeout_s`."""
        try:
            return self._queue(way, participant, channel_id).get(timeout=self.timeout_s)
        except queue.Empty:
            channel = f" on channel {channel_id}" if channel_id else ""
            raise DeadlineExceededError(
                f"{way.value}: nothing came for participant {participant}{channel} within "
                f"{self.timeout_s:g} s"
            ) from None

    def _queue(self, way: Way, participant: int, channel_id: int) -> queue.SimpleQueue[Value]:
        with self._lock:
            return self._queues[way, participant, channel_id]
