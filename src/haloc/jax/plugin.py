"""Registering haloc with JAX."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from haloc.flags import Flags
from haloc.jax.lowerings import lower_as_for_cpu
from haloc.pjrt.abi.capsule import capsule_at
from haloc.pjrt.plugin.api import pjrt_api

PLATFORM = "haloc"


def initialize() -> None:
    """Called by JAX, which finds it through the entry point group `jax_plugins`.

    Registers platform haloc if jax_platforms (JAX_PLATFORMS) names it; with HALOC_AS_CPU=1 in the
    environment, haloc takes the place of JAX's CPU platform instead. Else does nothing: that
    haloc is installed changes nothing for programs that do not ask for it.
    """
    from jax._src import config  # noqa: PLC0415  # JAX is there only where it is used

    if os.environ.get("HALOC_AS_CPU", "0") not in ("", "0"):
        install("cpu")
    elif PLATFORM in (config.jax_platforms.value or "").split(","):
        install(PLATFORM)


def install(as_platform: str = PLATFORM) -> None:
    """Register haloc as the JAX platform of this name, before JAX makes its first backend.

    "haloc" is a platform beside the others: choose it with JAX_PLATFORMS=haloc,cpu. "cpu" replaces
    JAX's own CPU client, so that everything JAX does on CPUs is done by haloc.
    """
    from jax._src import xla_bridge  # noqa: PLC0415  # JAX is there only where it is used
    from jax._src.interpreters import mlir  # noqa: PLC0415

    xla_bridge.register_plugin(
        as_platform, c_api=api_capsule(), options=lambda: _options(as_platform), priority=500
    )
    # JAX marks donated arguments only for platforms on this list.
    if as_platform not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(as_platform)
    if as_platform != "cpu":
        lower_as_for_cpu(as_platform)


def api_capsule() -> Any:
    """The PyCapsule `pjrt_c_api` that JAX takes a plugin in."""
    return capsule_at(ctypes.addressof(pjrt_api()))


def _options(platform: str) -> dict[str, Any]:
    """What the client is created with: as many devices as JAX is asked for."""
    from jax._src import config  # noqa: PLC0415

    asked = getattr(config, "num_cpu_devices", None)
    count = asked.value if asked is not None else -1
    if count is None or count < 1:
        count = Flags.from_environment().xla_force_host_platform_device_count
    return {"num_devices": count, "platform_name": platform}
