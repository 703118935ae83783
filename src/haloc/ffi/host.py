"""Host callbacks: Python functions that an executable brings along, called by their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from haloc.cpu.run_context import RunContext
from haloc.errors import InvalidArgumentError
from haloc.ffi import call_site
from haloc.ffi.python_targets import store
from haloc.ffi.send_recv import SendRecvCallback
from haloc.ffi.sites import Site
from haloc.ffi.targets import Abi, Target
from haloc.interpreter import HostTransfers
from haloc.interpreter.host_transfers import Way
from haloc.ir.literal import Value

CALLBACK_TARGETS = (
    "xla_ffi_python_cpu_callback",
    "xla_ffi_partitioned_python_cpu_callback",
    "xla_python_cpu_callback",
)
"""Custom calls to `host_callbacks[index]`; the last, older one has the index as its string."""


class Host(HostTransfers):
    """What an execution has on the host's side: `RunContext.host`.

    callbacks: the executable's host_callbacks. device_ordinals: of the participants, by flattened
    logical id; the transfers of a participant go through the queues of its device in `transfers`,
    which all executables of a client share. user_data: addresses by type id, for handlers of the
    FFI.
    """

    def __init__(
        self,
        callbacks: Sequence[Callable[..., Any] | SendRecvCallback] = (),
        device_ordinals: Sequence[int] = (0,),
        num_partitions: int = 1,
        transfers: HostTransfers | None = None,
    ):
        self.callbacks = callbacks
        self._of_send = {
            channel: callback
            for callback in callbacks
            if isinstance(callback, SendRecvCallback)
            for channel in callback.send_channels
        }
        self.device_ordinals = device_ordinals
        self.num_partitions = num_partitions
        self.user_data: dict[int, int] = {}
        self._transfers = transfers or HostTransfers()

    def device_ordinal(self, run: RunContext) -> int:
        """Of a participant's device."""
        return self.device_ordinals[self.participant(run)]

    def participant(self, run: RunContext) -> int:
        """The flattened logical id: executables number devices by replica, then partition."""
        return run.replica_id * self.num_partitions + run.partition_id

    def put(self, way: Way, value: Value, participant: int = 0, channel_id: int = 0) -> None:
        callback = self._of_send.get(channel_id) if way is Way.TO_HOST else None
        if callback is None:
            self._transfers.put(way, value, self.device_ordinals[participant], channel_id)
            return
        results = callback.sent(participant, channel_id, value)
        for channel, result in (results or {}).items():
            self._transfers.put(Way.TO_DEVICE, result, self.device_ordinals[participant], channel)

    def take(self, way: Way, participant: int = 0, channel_id: int = 0) -> Value:
        return self._transfers.take(way, self.device_ordinals[participant], channel_id)


def callback_index(site: Site) -> int:
    """Which host callback a call is to."""
    index = site.attributes.get("index") if site.attributes else site.opaque.decode()
    if isinstance(index, np.integer) or (isinstance(index, str) and index.isdigit()):
        return int(index)
    raise InvalidArgumentError(
        f"{site.where}: its backend_config must say which host callback it calls, "
        f"{{index = 0 : ui64}}; it is {site.opaque.decode(errors='replace')!r}"
    )


def _call(
    site: Site, operands: list[np.ndarray], results: list[np.ndarray], run: RunContext | None
) -> None:
    index = callback_index(site)
    host = run.host if run is not None else None
    callbacks = host.callbacks if isinstance(host, Host) else ()
    try:
        callback = callbacks[index]
    except IndexError as missing:
        raise InvalidArgumentError(
            f"{site.where} is to host callback {index}, but the executable has {len(callbacks)} "
            "host_callbacks"
        ) from missing
    if isinstance(callback, SendRecvCallback):
        raise InvalidArgumentError(f"{site.where} is to {index}, a callback for send and recv")
    arrays = iter(operands)
    # A token is None to the function, and what it returns in a token's place is nobody's.
    returned = callback(*(next(arrays) if s.is_array else None for s in site.operands))
    if not isinstance(returned, tuple | list):
        raise InvalidArgumentError(
            f"host callback {index} returned {type(returned).__name__}; wanted a tuple of "
            f"{len(site.results)} arrays"
        )
    if len(returned) == len(site.results):
        returned = [r for r, s in zip(returned, site.results, strict=True) if s.is_array]
    store(returned, results, f"host callback {index}")


for _name in CALLBACK_TARGETS:
    call_site.add(Target(_name, Abi.PYTHON, _call, python=_call))


def check_host_callbacks(callbacks: Sequence[Any]) -> None:
    """TypeError unless all can be called."""
    for number, callback in enumerate(callbacks):
        if not callable(callback) and not isinstance(callback, SendRecvCallback):
            raise TypeError(
                f"host_callbacks[{number}] is a {type(callback).__name__}; wanted a callable"
            )
