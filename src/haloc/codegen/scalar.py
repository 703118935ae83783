"""`LlvmScalar`: the `Scalar` protocol of the op rows, in LLVM."""

from __future__ import annotations

from haloc.codegen.memory import Memory
from haloc.codegen.scalar_arithmetic import Arithmetic
from haloc.codegen.scalar_convert import Conversion
from haloc.codegen.scalar_functions import Functions
from haloc.codegen.scalar_value import LlvmValue

__all__ = ["LlvmScalar", "LlvmValue"]


class LlvmScalar(Conversion, Arithmetic, Functions, Memory):
    """Element arithmetic on values of one width (a width-1 operand is splatted to the other's).

    Everything is emitted through `builder.op`: pure, shared, and placed as far out as it can be.
    """
