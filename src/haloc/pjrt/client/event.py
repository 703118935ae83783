"""`Event`: something of the plugin's that will be ready, or will have failed."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable

from haloc.errors import HloError
from haloc.pjrt.client.plugin import Owned, Plugin

OnReady = Callable[[HloError | None], None]

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_waiting: dict[int, Callable[[int | None], None]] = {}
_numbers = itertools.count(1)


@_CALLBACK
def _deliver(error: int | None, number: int) -> None:
    """The one function that plugins call, on threads of theirs."""
    _waiting.pop(number)(error)


class Event:
    """A PJRT_Event. address 0: what is ready already, as plugins say it here and there."""

    def __init__(self, plugin: Plugin, address: int | None):
        self.plugin = plugin
        self._handle = Owned(plugin, "Event", address) if address else None

    def wait(self) -> None:
        """Until it is ready; raises the error of what failed."""
        if self._handle is not None:
            self.plugin.call("Event_Await", event=self._handle.address)

    def is_ready(self) -> bool:
        """Whether `wait` would return, or raise, at once."""
        if self._handle is None:
            return True
        return self.plugin.call("Event_IsReady", event=self._handle.address).is_ready

    def on_ready(self, callback: OnReady) -> None:
        """Call `callback(None)`, or with the error, when ready: on a thread of the plugin's, or at
        once."""
        if self._handle is None:
            callback(None)
            return
        plugin, number = self.plugin, next(_numbers)
        _waiting[number] = lambda error: callback(plugin.error(error) if error else None)
        function = ctypes.cast(_deliver, ctypes.c_void_p).value
        try:
            plugin.call(
                "Event_OnReady", event=self._handle.address, callback=function, user_arg=number
            )
        except HloError:
            _waiting.pop(number, None)
            raise


class Completion:
    """Several events as one."""

    def __init__(self, events: list[Event]):
        self._events = events

    def wait(self) -> None:
        for event in self._events:
            event.wait()
