"""What an execution gives back: outputs by device, and tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from haloc.errors import InvalidArgumentError
from haloc.runtime.array import ArrayImpl
from haloc.runtime.pending import Pending

Outputs = list[list[ArrayImpl]]


class Token:
    """An execution's completion on one device."""

    def __init__(self, pending: Pending | None = None):
        self._pending = pending

    def block_until_ready(self) -> None:
        """Wait for the execution to end; raises its error."""
        if self._pending is not None:
            self._pending.wait()


class ShardedToken:
    """An execution's completion on all its devices."""

    def __init__(self, device_count: int, pending: Pending | None = None):
        self._tokens = [Token(pending) for _ in range(device_count)]

    def block_until_ready(self) -> None:
        """Wait for the execution to end; raises its error."""
        for token in self._tokens:
            token.block_until_ready()

    def get_token(self, device_id: int) -> Token:
        """device_id: the device's position among the execution's."""
        if not 0 <= device_id < len(self._tokens):
            raise InvalidArgumentError(
                f"get_token({device_id}): the execution has tokens of {len(self._tokens)} device(s)"
            )
        return self._tokens[device_id]


class ExecuteResults:
    """Outputs of an execution, by [output][device]. They can be taken out once.

    Of an execution whose arguments were given by device, the two `disassemble` methods give
    outputs by device, too: [device][output].
    """

    def __init__(self, outputs: Outputs, token: ShardedToken, by_device: bool = False):
        self._outputs: Outputs | None = outputs
        self._token: ShardedToken | None = token
        self._by_device = by_device

    def _left(self) -> Outputs:
        if self._outputs is None:
            raise ValueError("ExecuteResults already exploded.")
        return self._outputs

    def __len__(self) -> int:
        """Number of outputs not taken out yet."""
        return len(self._left())

    def disassemble_into_single_device_arrays(self) -> Outputs:
        """All outputs: [output][device]."""
        outputs = self._left()
        self._outputs = None
        return self._oriented(outputs)

    def disassemble_prefix_into_single_device_arrays(self, n: int) -> Outputs:
        """The first n outputs, which are taken off; the rest stay."""
        outputs = self._left()
        if not 0 <= n <= len(outputs):
            raise ValueError(f"In DisassemblePrefixIntoSingleDeviceArrays: {n} > {len(outputs)}")
        self._outputs = outputs[n:]
        return self._oriented(outputs[:n])

    def _oriented(self, outputs: Outputs) -> Outputs:
        return [list(own) for own in zip(*outputs)] if self._by_device else outputs

    def consume_with_handlers(
        self, handlers: Sequence[Callable[[list[ArrayImpl]], Any]], strict: bool = True
    ) -> list[Any]:
        """handlers[i](the arrays of output i), for every output.

        ValueError for another number of handlers; not strict: what has no partner is left out.
        """
        outputs = self._left()
        if strict and len(handlers) != len(outputs):
            raise ValueError(
                f"Mismatch between out_handlers and num_results: {len(handlers)} vs {len(outputs)}"
            )
        self._outputs = None
        return [handler(arrays) for handler, arrays in zip(handlers, outputs)]

    def consume_token(self) -> ShardedToken:
        """What is ready when the execution is; it can be taken once."""
        token, self._token = self._token, None
        if token is None:
            raise ValueError("ExecuteResults token already consumed.")
        return token
