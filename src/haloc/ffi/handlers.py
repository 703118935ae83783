"""Handlers of the FFI: asked for their metadata when they are registered."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import haloc.ffi.functions  # noqa: F401  (fills the table)
from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.ffi import c_api, call_site, errors
from haloc.ffi.api import api_pointer, implements
from haloc.ffi.c_api import Stage
from haloc.ffi.targets import Abi, Target, address_of


def handler(name: str, given: Any, traits: int = 0) -> Target:
    """The target that `given` is: one handler, or a dict of handlers by stage ("execute", ...).

    InvalidArgumentError for other things, UnimplementedError for a handler compiled for a version
    of the FFI that haloc does not speak.
    """
    if not isinstance(given, Mapping):
        return _target(name, given, {Stage.EXECUTE: address_of(given, name)}, traits)
    known = {stage.name.lower(): stage for stage in Stage}
    if not given.keys() <= known.keys() or "execute" not in given:
        raise InvalidArgumentError(
            f"custom call target {name!r}: stages {sorted(map(str, given))}; a handler has "
            '"execute" and may have "instantiate", "prepare", "initialize"'
        )
    stages = {known[word]: address_of(fn, name) for word, fn in given.items() if fn is not None}
    return _target(name, given, stages, traits)


def _target(name: str, given: Any, stages: dict[Stage, int], traits: int) -> Target:
    for stage, address in stages.items():
        found = _metadata(name, stage, address)
        traits |= found.traits
    return Target(name, Abi.FFI, given, stages, None, traits)


def _metadata(name: str, stage: Stage, address: int) -> c_api.Metadata:
    metadata = c_api.Metadata(ctypes.sizeof(c_api.Metadata), c_api.ApiVersion())
    extension = c_api.MetadataExtension(
        ctypes.sizeof(c_api.MetadataExtension),
        c_api.EXTENSION_METADATA,
        None,
        ctypes.pointer(metadata),
    )
    frame = c_api.CallFrame(
        extension_start=ctypes.addressof(extension),
        api=api_pointer(),
        stage=stage,
        args=c_api.Args(),
        rets=c_api.Rets(),
        attrs=c_api.Attrs(),
    )
    error = c_api.HANDLER(address)(ctypes.pointer(frame))
    if error:
        raise errors.take(error)
    version = (metadata.api_version.major_version, metadata.api_version.minor_version)
    if not (c_api.API_VERSION[0], c_api.OLDEST_MINOR_VERSION) <= version <= c_api.API_VERSION:
        raise UnimplementedError(
            f"custom call target {name!r} was compiled for version {version[0]}.{version[1]} of "
            f"the FFI; haloc speaks {c_api.API_VERSION[0]}.{c_api.OLDEST_MINOR_VERSION} to "
            f"{c_api.API_VERSION[0]}.{c_api.API_VERSION[1]}"
        )
    return metadata


@implements("Handler_Register")
def _register(arguments: c_api.HandlerRegisterArgs) -> None:
    platform = arguments.platform.text()
    if platform.lower() not in ("cpu", "host"):
        raise UnimplementedError(f"FFI handlers for platform {platform!r}")
    stages = {s.name.lower(): getattr(arguments.bundle, s.name.lower()) for s in Stage}
    given = {word: address for word, address in stages.items() if address}
    call_site.add(handler(arguments.name.text(), given, arguments.traits))
