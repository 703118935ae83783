"""Element types of values in Python, and what they become together: JAX's rules.

64-bit types become 32-bit ones, unless HALOC_ENABLE_X64 (or JAX_ENABLE_X64) is set. Python's
numbers are weak: they take the type of what they meet, within its kind.
"""

from __future__ import annotations

import os
from functools import cache, reduce
from typing import Any

import numpy as np

from haloc.ir import dtype as dt
from haloc.ir.dtype import DType, dtype_from_numpy

_NARROW = {dt.S64: dt.S32, dt.U64: dt.U32, dt.F64: dt.F32, dt.C128: dt.C64}

WEAK_INT, WEAK_FLOAT, WEAK_COMPLEX = "int", "float", "complex"

_ABOVE: dict[Any, tuple[Any, ...]] = {
    dt.PRED: (WEAK_INT,),
    WEAK_INT: (dt.U8, dt.S8, dt.U4, dt.S4),
    dt.U4: (dt.U8,),
    dt.S4: (dt.S8,),
    dt.U8: (dt.U16, dt.S16),
    dt.U16: (dt.U32, dt.S32),
    dt.U32: (dt.U64, dt.S64),
    dt.U64: (WEAK_FLOAT,),
    dt.S8: (dt.S16,),
    dt.S16: (dt.S32,),
    dt.S32: (dt.S64,),
    dt.S64: (WEAK_FLOAT,),
    WEAK_FLOAT: (dt.BF16, dt.F16, WEAK_COMPLEX),
    dt.BF16: (dt.F32,),
    dt.F16: (dt.F32,),
    dt.F32: (dt.F64, dt.C64),
    dt.F64: (dt.C128,),
    WEAK_COMPLEX: (dt.C64,),
    dt.C64: (dt.C128,),
    dt.C128: (),
}
"""Each type and the next ones above it: two types become the least one above both."""


@cache
def x64_enabled() -> bool:
    names = ("HALOC_ENABLE_X64", "JAX_ENABLE_X64")
    return any(os.environ.get(n, "").lower() in ("1", "true") for n in names)


def canonical(dtype: DType) -> DType:
    return dtype if x64_enabled() else _NARROW.get(dtype, dtype)


def element_type(dtype: Any) -> DType:
    """Of a NumPy dtype, its name, or Python's bool, int, float, complex."""
    return canonical(dtype_from_numpy(np.dtype(dtype)))


DEFAULTS = {WEAK_INT: dt.S64, WEAK_FLOAT: dt.F64, WEAK_COMPLEX: dt.C128}


def scalar_type(value: Any) -> tuple[DType, bool]:
    """(element type, whether weak) of one of Python's numbers."""
    if isinstance(value, bool):
        return dt.PRED, False
    kind = {int: WEAK_INT, float: WEAK_FLOAT, complex: WEAK_COMPLEX}[
        next(t for t in (int, float, complex) if isinstance(value, t))
    ]
    return canonical(DEFAULTS[kind]), True


def _node(dtype: DType, weak: bool) -> Any:
    if not weak:
        return dtype
    if dtype.is_integer:
        return WEAK_INT
    return WEAK_COMPLEX if dtype.is_complex else WEAK_FLOAT


@cache
def _over(node: Any) -> frozenset[Any]:
    found = {node}
    for above in _ABOVE.get(node, ()):
        found |= _over(above)
    return frozenset(found)


@cache
def _join(a: Any, b: Any) -> Any:
    both = _over(a) & _over(b)
    least = [n for n in both if both <= _over(n)]
    if not least:
        raise TypeError(f"{a} and {b} do not promote to one type: convert one of them")
    return least[0]


def promoted(*types: tuple[DType, bool]) -> tuple[DType, bool]:
    """The type of values of these (type, weak) together."""
    if all(weak for _, weak in types) or len(set(types)) == 1:
        node = reduce(_join, (_node(*t) for t in types))
    else:
        node = reduce(_join, dict.fromkeys(_node(*t) for t in types))
    if isinstance(node, str):
        return canonical(DEFAULTS[node]), True
    return canonical(node), all(weak for _, weak in types)
