"""Registering custom call targets: jaxlib's functions, and a decorator."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from enum import IntFlag
from typing import Any, TypeAlias, TypeVar

import haloc.ffi.host  # noqa: F401  (registers the host callbacks)
from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.ffi import c_api, call_site, targets, types
from haloc.ffi.by_platform import Registrations, xla_platform
from haloc.ffi.handlers import handler
from haloc.ffi.python_targets import python_target
from haloc.ffi.targets import pointer_in
from haloc.ops.custom_call import CUSTOM_CALLS, REGISTERED

Handler: TypeAlias = Callable[[str, Any, str, int, Any], None]
"""(name, function, platform, api_version, traits)"""

_F = TypeVar("_F")


class CustomCallTargetTraits(IntFlag):
    """Bits of a target's traits. COMMAND_BUFFER_COMPATIBLE makes no difference on a CPU."""

    DEFAULT = 0
    COMMAND_BUFFER_COMPATIBLE = 1


def register_custom_call_target(
    name: str,
    fn: Any,
    platform: str = "cpu",
    api_version: int = 0,
    traits: int = CustomCallTargetTraits.DEFAULT,
) -> None:
    """Make a native function the target of custom-calls to `name`.

    fn: a PyCapsule, a ctypes or numba function, or an address; of the FFI (api_version=1) also a
    dict of them by stage: "instantiate", "prepare", "initialize", "execute". api_version=0 is the
    untyped ABI, `void (void* out, const void** in)` and what the custom-call's own api_version adds
    to it. For a platform other than "cpu" the call waits for `register_custom_call_handler`.
    Raises InvalidArgumentError for other functions and for a name that has another function,
    UnimplementedError for another api_version and for FFI versions that haloc does not speak.
    """
    where = xla_platform(platform)
    _targets.register(where, name, fn, where, api_version, traits)


def _register_for_cpu(name: str, fn: Any, platform: str, api_version: int, traits: Any) -> None:
    if api_version == 0:
        call_site.add(targets.untyped(name, fn, int(traits)))
    elif api_version == 1:
        call_site.add(handler(name, fn, int(traits)))
    else:
        raise UnimplementedError(
            f"API version {api_version} is not supported by RegisterCustomCallTarget. Supported "
            "versions are 0 and 1."
        )


_targets = Registrations(_register_for_cpu)


def register_custom_call_handler(platform: str, handler: Handler) -> None:
    """Let `handler(name, fn, platform, api_version, traits)` register the targets of a platform,
    beginning with those that were registered already. The first handler stays; "cpu" has one."""
    _targets.set_handler(xla_platform(platform), handler)


def custom_call_targets(platform: str) -> dict[str, Any]:
    """What custom-calls may name on a platform: what was registered, and the NumPy meanings of
    haloc's own targets. {} for a platform that haloc has no targets for."""
    if xla_platform(platform) != "Host":
        return {}
    return {**CUSTOM_CALLS, **targets.registered()}


def unregister_custom_call_target(name: str) -> None:
    """Forget a registered target; programs compiled with it keep it. NotFoundError if there is
    none of that name."""
    targets.remove(name)
    REGISTERED.pop(name, None)


def register_custom_type(type_name: str, type_id: Any, platform: str = "cpu") -> None:
    """Register a type of user data or state of FFI handlers.

    type_id: a PyCapsule of an `XLA_FFI_TypeId` (or its address), which is given an id if it has
    none; or a dict of that, "type_id", and of an `XLA_FFI_TypeInfo`, "type_info", which says how
    objects are destroyed. Raises InvalidArgumentError for a name or id that is taken. For another
    platform than "cpu" the call waits for `register_custom_type_id_handler`.
    """
    _types.register(xla_platform(platform), type_name, type_id)


def _register_type_for_cpu(type_name: str, type_id: Any) -> None:
    what = f"the FFI type {type_name!r}"
    parts = type_id if isinstance(type_id, Mapping) else {"type_id": type_id}
    if not {"type_id"} <= parts.keys() <= {"type_id", "type_info"}:
        raise InvalidArgumentError(
            f"{what}: wanted 'type_id' and perhaps 'type_info', got {sorted(map(str, parts))}"
        )
    deleter = None
    if parts.get("type_info") is not None:
        deleter = c_api.TypeInfo.from_address(pointer_in(parts["type_info"], what)).deleter
    cell = c_api.TypeId.from_address(pointer_in(parts["type_id"], what))
    cell.type_id = types.register(type_name, cell.type_id, deleter)


_types = Registrations(_register_type_for_cpu)

register_custom_type_id = register_custom_type
"""jaxlib 0.7's name."""


def register_custom_type_id_handler(platform: str, handler: Callable[[str, Any], Any]) -> None:
    """Let `handler(type_name, type_id)` register the types of a platform, beginning with those that
    were registered already. The first handler stays; "cpu" has one."""
    _types.set_handler(xla_platform(platform), handler)


def custom_call(
    name: str, *, api_version: int = 0, writes_results: bool = False
) -> Callable[[_F], _F]:
    """`haloc.custom_call`."""

    def register(function: _F) -> _F:
        if isinstance(function, ctypes._CFuncPtr) or hasattr(function, "address"):
            register_custom_call_target(name, function, "cpu", api_version)
        elif callable(function):
            call_site.add(python_target(name, function, writes_results))
        else:
            raise InvalidArgumentError(
                f"custom_call({name!r}): {type(function).__name__} cannot be called"
            )
        return function

    return register
