"""Asks LAPACK, when a kernel is made, how much work memory a call needs."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from math import ceil

from haloc.cpu.linalg.arguments import Call, Char, Int, Null, Work, WorkSize
from haloc.cpu.linalg.lapack import address

_NUMBERS = {
    "f32": ctypes.c_float,
    "c64": ctypes.c_float,
    "f64": ctypes.c_double,
    "c128": ctypes.c_double,
    "s32": ctypes.c_int32,
}


def with_work_sizes(call: Call) -> Call:
    """The call with every `Work` sized. A size of -1 makes a routine write the size it wants into
    the work memory, and touch nothing else."""
    if all(a.count is not None for a in call.arguments if isinstance(a, Work)):
        return call
    held: list[object] = []
    for argument in call.arguments:
        match argument:
            case Char(code):
                held.append(ctypes.c_char(code))
            case Int(value):
                held.append(ctypes.c_int32(value))
            case WorkSize():
                held.append(ctypes.c_int32(-1))
            case Null():
                held.append(None)
            case Work(dtype):
                held.append((_NUMBERS[dtype.name] * 2)())
            case _:
                held.append((ctypes.c_double * 4)())
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(held))(address(call.symbol))
    function(*(None if h is None else ctypes.addressof(h) for h in held))  # type: ignore[arg-type]
    arguments = tuple(
        replace(a, count=_count(h)) if isinstance(a, Work) and a.count is None else a
        for a, h in zip(call.arguments, held, strict=True)
    )
    return replace(call, arguments=arguments)


def _count(answer: object) -> int:
    """A size above 2**24 may have been rounded down when it was made a float."""
    return max(1, ceil(answer[0] * (1 + 2.0**-22)))  # type: ignore[index]
