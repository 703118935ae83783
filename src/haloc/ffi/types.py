"""Types that handlers name: ids of user data and of state, and how states are destroyed."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from haloc.errors import InvalidArgumentError


@dataclass(frozen=True)
class _Type:
    type_id: int
    deleter: int | None


_lock = threading.Lock()
_types: dict[str, _Type] = {}


def register(name: str, type_id: int = 0, deleter: int | None = None) -> int:
    """The id of the type of this name: the one given, or for 0 the one it has, or a new one.

    deleter: address of `void (void*)`, which destroys an object of the type. InvalidArgumentError
    for an id that is another type's, or not this one's.
    """
    with _lock:
        known = _types.get(name)
        if known is not None:
            if type_id not in (0, known.type_id):
                raise InvalidArgumentError(
                    f"FFI type {name!r} is registered with id {known.type_id}, not {type_id}"
                )
            return known.type_id
        taken = {t.type_id: n for n, t in _types.items()}
        if type_id in taken:
            raise InvalidArgumentError(f"FFI type id {type_id} is that of {taken[type_id]!r}")
        type_id = type_id or max(taken, default=0) + 1
        _types[name] = _Type(type_id, deleter)
        return type_id


def deleter(type_id: int) -> int | None:
    """The deleter registered with the type of this id."""
    return next((t.deleter for t in _types.values() if t.type_id == type_id), None)
