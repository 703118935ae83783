"""`DeviceTopology`: the devices of a client as a description that programs can be compiled for."""

from __future__ import annotations

import hashlib
from typing import Any

from haloc.errors import UnimplementedError
from haloc.runtime.client import Client
from haloc.runtime.device import Device


class DeviceTopology:
    """The kind and number of a client's devices."""

    def __init__(self, client: Client):
        self._client = client

    @property
    def platform(self) -> str:
        return self._client.platform

    @property
    def platform_version(self) -> str:
        return self._client.platform_version

    @property
    def fingerprint(self) -> int:
        """64 bits, the same in every process for the same devices."""
        return int.from_bytes(hashlib.sha256(self.serialize()).digest()[:8], "little")

    def serialize(self) -> bytes:
        """The platform, the CPU that code is made for, and the devices' ids, as text."""
        from haloc.codegen.target import host_target  # noqa: PLC0415  (LLVM only where it must be)

        target = host_target()
        ids = ",".join(str(d.id) for d in self._client.devices())
        parts = (self.platform, target.triple, target.cpu, target.feature_string, ids)
        return "\n".join(parts).encode()

    def _make_compile_only_devices(self) -> list[Device]:
        """Devices like these of a client that compiles, and holds and runs nothing."""
        client = self._client
        return CompileOnlyClient(
            client._backend, client.device_count(), client.process_index()
        ).devices()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Unknown attribute {name}")

    def __repr__(self) -> str:
        return f"<DeviceTopology {self.platform}, {self._client.device_count()} device(s)>"


class CompileOnlyClient(Client):
    """A client whose `compile` works, and nothing else that needs devices."""

    def compile_and_load(self, *arguments: Any, **named: Any) -> Any:
        raise UnimplementedError("Compile not implemented.")

    def deserialize_executable(self, *arguments: Any, **named: Any) -> Any:
        raise UnimplementedError("Deserialize not implemented.")

    def buffer_from_pyval(self, *arguments: Any, **named: Any) -> Any:
        raise UnimplementedError("a device of a topology has no memory")
