"""Element types of MLIR tensors, in NumPy and in HLO."""

from __future__ import annotations

import numpy as np

from haloc.formats.stablehlo.mlir import Quantized
from haloc.ir import dtype as ir
from haloc.ir.dtype import DType

ELEMENT_TYPES: dict[str, DType] = {
    "i1": ir.PRED,
    "index": ir.S64,
    "complex<f32>": ir.C64,
    "complex<f64>": ir.C128,
    **{f"i{d.bits}": d for d in (ir.S2, ir.S4, ir.S8, ir.S16, ir.S32, ir.S64)},
    **{f"si{d.bits}": d for d in (ir.S2, ir.S4, ir.S8, ir.S16, ir.S32, ir.S64)},
    **{f"ui{d.bits}": d for d in (ir.U2, ir.U4, ir.U8, ir.U16, ir.U32, ir.U64)},
    **{d.name: d for d in (ir.F16, ir.BF16, ir.F32, ir.F64)},
    **{
        # f8e4m3fn in HLO is f8E4M3FN in MLIR.
        "f" + d.name[1:].upper(): d
        for d in (
            ir.F8E5M2,
            ir.F8E4M3,
            ir.F8E4M3FN,
            ir.F8E4M3B11FNUZ,
            ir.F8E3M4,
            ir.F8E5M2FNUZ,
            ir.F8E4M3FNUZ,
            ir.F8E8M0FNU,
            ir.F6E2M3FN,
            ir.F6E3M2FN,
            ir.F4E2M1FN,
        )
    },
}
"""HLO's type for each element type of MLIR."""


def numpy_of(element: str | Quantized) -> np.dtype | None:
    """The NumPy type of an element, None where there is none ("i128", quantized)."""
    found = ELEMENT_TYPES.get(element) if isinstance(element, str) else None
    return None if found is None else found.numpy
