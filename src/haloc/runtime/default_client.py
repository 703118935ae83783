"""The client that a process uses unless it says otherwise: made once, for the CPU."""

from __future__ import annotations

import threading

from haloc.flags import Flags
from haloc.runtime.backend import CpuBackend
from haloc.runtime.client import Client

_lock = threading.Lock()
_client: Client | None = None


def default_client() -> Client:
    """A CPU client with as many devices as xla_force_host_platform_device_count said when it was
    made."""
    global _client  # noqa: PLW0603  # the one client of the process
    with _lock:
        if _client is None:
            devices = Flags.from_environment().xla_force_host_platform_device_count
            _client = Client(CpuBackend(), devices)
        return _client
