"""Making complex numbers and taking them apart: complex, real, imag."""

from __future__ import annotations

import numpy as np

from haloc.ir import dtype as dt
from haloc.ops import reference_complex as cref
from haloc.ops.families import elementwise
from haloc.ops.reference import Array, wide
from haloc.ops.rules import COMPLEX, FLOAT
from haloc.ops.table import no_cost

COMPLEX_OF = {dt.F32: dt.C64, dt.F64: dt.C128}


def _real(x: Array) -> Array:
    return x.real if x.dtype.kind == "c" else x


def _imag(x: Array) -> Array:
    return x.imag if x.dtype.kind == "c" else np.zeros_like(wide(x))


elementwise(
    "complex",
    2,
    frozenset(COMPLEX_OF),
    cref.join,
    emit=lambda b, i, real, imag: b.complex(real, imag),
    result=lambda dtype: COMPLEX_OF[dtype],
)
elementwise(
    "real",
    1,
    FLOAT | COMPLEX,
    _real,
    emit=lambda b, i, x: b.real(x),
    cost=no_cost,
    result=lambda dtype: dtype.real,
)
elementwise(
    "imag",
    1,
    FLOAT | COMPLEX,
    _imag,
    emit=lambda b, i, x: b.imag(x),
    cost=no_cost,
    result=lambda dtype: dtype.real,
)
