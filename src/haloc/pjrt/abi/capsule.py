"""The PyCapsule in which Python programs hand tables of functions to each other."""

from __future__ import annotations

import ctypes
from typing import Any

_NAME = ctypes.create_string_buffer(b"pjrt_c_api")


def capsule_at(address: int) -> Any:
    """The PyCapsule `pjrt_c_api` of the PJRT_Api at an address, as JAX takes it."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    return new(address, ctypes.addressof(_NAME), None)


def address_in(capsule: Any) -> int:
    """Of the PJRT_Api in a capsule; 0 for any other object."""
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    get = ctypes.pythonapi.PyCapsule_GetPointer
    is_valid.argtypes = get.argtypes = [ctypes.py_object, ctypes.c_char_p]
    get.restype = ctypes.c_void_p
    return get(capsule, _NAME.value) if is_valid(capsule, _NAME.value) else 0
