"""What an execution on several devices gives back: outputs by device, and tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from haloc.errors import InvalidArgumentError
from haloc.runtime.array import ArrayImpl


class Token:
    """An execution's completion on one device."""

    def block_until_ready(self) -> None:
        """Returns at once: execution has finished when `execute` returns."""


class ShardedToken:
    """An execution's completion on all its devices."""

    def __init__(self, device_count: int):
        self._tokens = [Token() for _ in range(device_count)]

    def block_until_ready(self) -> None:
        for token in self._tokens:
            token.block_until_ready()

    def get_token(self, device_id: int) -> Token:
        if not 0 <= device_id < len(self._tokens):
            raise InvalidArgumentError(
                f"get_token({device_id}): the execution ran on {len(self._tokens)} device(s)"
            )
        return self._tokens[device_id]


class ExecuteResults:
    """Outputs by [output][device]. They can be taken out once."""

    def __init__(self, outputs: list[list[ArrayImpl]], token: ShardedToken):
        self._outputs: list[list[ArrayImpl]] | None = outputs
        self._token: ShardedToken | None = token

    def _left(self) -> list[list[ArrayImpl]]:
        if self._outputs is None:
            raise ValueError("ExecuteResults already exploded.")
        return self._outputs

    def __len__(self) -> int:
        """Number of outputs not taken out yet."""
        return len(self._left())

    def disassemble_into_single_device_arrays(self) -> list[list[ArrayImpl]]:
        """All outputs: [output][device]."""
        outputs = self._left()
        self._outputs = None
        return outputs

    def disassemble_prefix_into_single_device_arrays(self, n: int) -> list[list[ArrayImpl]]:
        """The first n outputs, which are taken off; the rest stay."""
        outputs = self._left()
        if not 0 <= n <= len(outputs):
            raise ValueError(f"In DisassemblePrefixIntoSingleDeviceArrays: {n} > {len(outputs)}")
        self._outputs = outputs[n:]
        return outputs[:n]

    def consume_with_handlers(self, handlers: Sequence[Callable[[list[ArrayImpl]], Any]]) -> list:
        """handlers[i](the arrays of output i), for every output."""
        outputs = self._left()
        if len(handlers) != len(outputs):
            raise ValueError(
                f"Mismatch between out_handlers and num_results: {len(handlers)} vs {len(outputs)}"
            )
        self._outputs = None
        return [handler(arrays) for handler, arrays in zip(handlers, outputs, strict=True)]

    def consume_token(self) -> ShardedToken:
        token, self._token = self._token, None
        if token is None:
            raise ValueError("ExecuteResults token already consumed.")
        return token
