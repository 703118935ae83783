"""Host callbacks made of send and recv: a function called when all its operands have been sent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.ffi.python_targets import store
from haloc.ir.literal import Value
from haloc.ir.shape import Shape


class SendRecvCallback:
    """One of `host_callbacks`: `function(*operands)` gives a tuple of results.

    The program sends operand k to the host on send_channel_ids[k], and receives result k from it on
    recv_channel_ids[k].
    """

    def __init__(
        self,
        function: Callable[..., Any],
        operand_shapes: Sequence[Shape],
        result_shapes: Sequence[Shape],
        send_channel_ids: Sequence[int],
        recv_channel_ids: Sequence[int],
    ):
        for shapes, channels, what in (
            (operand_shapes, send_channel_ids, "operand_shapes and send_channel_ids"),
            (result_shapes, recv_channel_ids, "result_shapes and recv_channel_ids"),
        ):
            if len(shapes) != len(channels):
                raise InvalidArgumentError(
                    f"a send and recv callback has {len(shapes)} and {len(channels)} {what}"
                )
        self.function = function
        self.operand_shapes, self.result_shapes = list(operand_shapes), list(result_shapes)
        self.send_channels, self.recv_channels = list(send_channel_ids), list(recv_channel_ids)
        self._lock = threading.Lock()
        self._sent: dict[int, dict[int, list[Value]]] = {}

    def sent(self, participant: int, channel: int, value: Value) -> dict[int, Value] | None:
        """Take an operand; the results by channel, when it was the last that was missing."""
        with self._lock:
            waiting = self._sent.setdefault(participant, {c: [] for c in self.send_channels})
            waiting[channel].append(value)
            if not all(waiting.values()):
                return None
            operands = [waiting[c].pop(0) for c in self.send_channels]
        return self.call(operands)

    def call(self, operands: Sequence[Value]) -> dict[int, Value]:
        """The function's results by channel. InvalidArgumentError where they or the operands are
        not of the shapes that were given."""
        for number, (value, shape) in enumerate(zip(operands, self.operand_shapes, strict=True)):
            array = np.asarray(value)
            if array.dtype != shape.dtype.numpy or array.shape != shape.dims:
                raise InvalidArgumentError(
                    f"operand {number} of a send and recv callback is {array.dtype}"
                    f"{list(array.shape)}, wanted {shape}"
                )
            array.flags.writeable = False
        returned = self.function(*operands)
        if not isinstance(returned, tuple | list):
            raise InvalidArgumentError(
                f"a send and recv callback returned {type(returned).__name__}; wanted a tuple of "
                f"{len(self.result_shapes)} arrays"
            )
        results = [np.empty(s.dims, s.dtype.numpy) for s in self.result_shapes]
        store(returned, results, "a send and recv callback")
        return dict(zip(self.recv_channels, results, strict=True))
