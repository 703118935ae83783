"""Registrations of a platform wait until it has a handler: `register_custom_call_handler`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

xla_platform_names = {"cpu": "Host", "gpu": "CUDA"}
"""XLA's names of platforms, by jaxlib's."""


class Registrations:
    """Of one kind of thing. for_cpu: the handler of haloc's own platform."""

    def __init__(self, for_cpu: Callable[..., Any]):
        self._lock = threading.Lock()
        self._handlers = {"Host": for_cpu}
        self._waiting: dict[str, list[tuple[Any, ...]]] = {}

    def register(self, platform: str, *what: Any) -> None:
        """`handler(*what)`, as soon as the platform has a handler."""
        with self._lock:
            handler = self._handlers.get(platform)
            if handler is None:
                self._waiting.setdefault(platform, []).append(what)
        if handler is not None:
            handler(*what)

    def set_handler(self, platform: str, handler: Callable[..., Any]) -> None:
        """Let it handle what waits and what comes. The first handler of a platform stays."""
        with self._lock:
            if platform in self._handlers:
                return
            self._handlers[platform] = handler
            waiting = self._waiting.pop(platform, [])
        for what in waiting:
            handler(*what)


def xla_platform(platform: str) -> str:
    """XLA's name of a platform."""
    return xla_platform_names.get(platform, platform)
