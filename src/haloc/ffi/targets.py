"""Custom call targets by name: native functions of XLA's ABIs, and Python functions."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from haloc.errors import InvalidArgumentError, NotFoundError
from haloc.ffi.c_api import Stage

if TYPE_CHECKING:
    from haloc.ffi.sites import PythonFunction

FFI_VERSION = "API_VERSION_TYPED_FFI"
"""The `api_version` of custom-calls to handlers of the FFI."""

_CAPSULE = "xla._CUSTOM_CALL_TARGET"


class Abi(Enum):
    """How a target is called. UNTYPED: `void f(void* out, const void** in)`, with the opaque string
    and the status as the instruction's api_version says."""

    UNTYPED = "untyped"
    FFI = "ffi"
    PYTHON = "python"


@dataclass(frozen=True)
class Target:
    """stages: addresses by stage; a function of the untyped ABI has EXECUTE only.

    given: what was registered: it is kept alive, and handed out again. traits: bit 0: may be
    recorded into a command buffer.
    """

    name: str
    abi: Abi
    given: Any
    stages: Mapping[Stage, int] = field(default_factory=dict)
    python: PythonFunction | None = None
    traits: int = 0


Key: TypeAlias = "tuple[str, bool]"
"""(name, whether of the FFI)"""

_lock = threading.Lock()
_targets: dict[Key, Target] = {}


def add(target: Target) -> None:
    """Register; registering the same function again changes nothing.

    InvalidArgumentError when the name has another function.
    """
    kinds = {Abi.UNTYPED: (False,), Abi.FFI: (True,), Abi.PYTHON: (False, True)}[target.abi]
    with _lock:
        for is_ffi in kinds:
            known = _targets.get((target.name, is_ffi))
            if known is None or (known.stages, known.python) == (target.stages, target.python):
                continue
            raise InvalidArgumentError(
                f"custom call target {target.name!r} is registered already, as {known.given!r}"
            )
        for is_ffi in kinds:
            _targets[target.name, is_ffi] = target


def remove(name: str) -> None:
    """Forget a target. Programs compiled with it keep working. NotFoundError if there is none."""
    with _lock:
        found = [key for key in _targets if key[0] == name]
        for key in found:
            del _targets[key]
    if not found:
        raise NotFoundError(f"no custom call target named {name!r} is registered")


def find(name: str, api_version: str) -> Target | None:
    """The registered target of a custom-call with this `api_version`, if there is one."""
    return _targets.get((name, api_version == FFI_VERSION))


def registered() -> dict[str, Any]:
    """What was registered, by name."""
    return {name: target.given for (name, _), target in sorted(_targets.items())}


def address_of(given: Any, name: str) -> int:
    """The address in a PyCapsule, a function of ctypes or numba, or an int.

    InvalidArgumentError for what is none, for null, and for a capsule named for something else.
    """
    label = capsule_name(given)
    if label not in (None, _CAPSULE, ""):
        raise InvalidArgumentError(
            f"custom call target {name!r} is a capsule of {label!r}; wanted {_CAPSULE!r}"
        )
    return pointer_in(given, f"custom call target {name!r}")


def pointer_in(given: Any, what: str) -> int:
    """The address that a PyCapsule of any name, a function of ctypes or numba, or an int is.

    InvalidArgumentError for what is none and for null; `what` begins its text.
    """
    if capsule_name(given) is not None:
        address = _pointer(given, _name(given))
    elif isinstance(given, ctypes._CFuncPtr):
        address = ctypes.cast(given, ctypes.c_void_p).value
    elif isinstance(given, int) and not isinstance(given, bool):
        address = given
    else:
        address = getattr(given, "address", None)  # a cfunc of numba
        if not isinstance(address, int):
            raise InvalidArgumentError(
                f"{what}: wanted a PyCapsule, a ctypes or numba function or an address, got "
                f"{type(given).__name__}"
            )
    if not address:
        raise InvalidArgumentError(f"{what} is a null pointer")
    return address


_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def capsule_name(given: Any) -> str | None:
    """A PyCapsule's name, "" if it has none; None for what is no capsule."""
    if type(given).__name__ != "PyCapsule":
        return None
    return (_name(given) or b"").decode(errors="replace")


def untyped(name: str, given: Any, traits: int = 0) -> Target:
    """A function of the untyped ABI."""
    return Target(name, Abi.UNTYPED, given, {Stage.EXECUTE: address_of(given, name)}, None, traits)
