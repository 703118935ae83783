"""Where LAPACK's and BLAS's C functions are in this process.

SciPy exports them to Cython code as capsules in `__pyx_capi__`; a capsule holds a plain C function
with Fortran's signature (all arguments by address, 32-bit integers).
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module

from haloc.errors import UnimplementedError

PREFIXES = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}
"""LAPACK's letter for an element type."""

SYMBOL_PREFIX = "haloc_lapack_"

_MODULES = ("scipy.linalg.cython_lapack", "scipy.linalg.cython_blas")


@cache
def address(name: str) -> int:
    """The address of a routine ("dpotrf", "strsm").

    UnimplementedError where SciPy is not installed, or its LAPACK lacks the routine.
    """
    for capsules in _capsules():
        if name in capsules:
            return _pointer(capsules[name])
    raise UnimplementedError(f"SciPy's LAPACK has no routine {name}")


def address_of(symbol: str) -> int:
    """The address of a routine by its symbol in native programs, "haloc_lapack_dpotrf"."""
    return address(symbol.removeprefix(SYMBOL_PREFIX))


@cache
def _capsules() -> tuple[dict[str, object], ...]:
    try:
        return tuple(import_module(module).__pyx_capi__ for module in _MODULES)
    except ImportError:
        raise UnimplementedError(
            "linear algebra needs LAPACK, which comes with SciPy: pip install haloc[linalg]"
        ) from None


def _pointer(capsule: object) -> int:
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.argtypes, name_of.restype = [ctypes.py_object], ctypes.c_char_p
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.argtypes, pointer_of.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    return pointer_of(capsule, name_of(capsule))
