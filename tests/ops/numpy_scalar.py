"""The `Scalar` protocol on NumPy arrays: runs a row's `emit` on all result elements at once.

A second implementation beside the one for LLVM: it tells whether the rows themselves are right,
and checks that every read without a mask is in bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from haloc.ir.dtype import PRED, DType
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.bitcast import bitcast_array
from haloc.ops.convert import convert_array
from haloc.ops.reference import store
from haloc.ops.table import OPS, Elementwise, Indexed


@dataclass
class ArrayValue:
    dtype: DType
    array: np.ndarray


class NumpyScalar:
    """Methods named after opcodes are added below, each by the row of that opcode."""

    def constant(self, dtype: DType, number: object) -> ArrayValue:
        with np.errstate(all="ignore"):
            return ArrayValue(dtype, store(np.asarray(number), dtype))

    def convert(self, x: ArrayValue, dtype: DType) -> ArrayValue:
        with np.errstate(all="ignore"):
            return ArrayValue(dtype, store(convert_array(x.array, x.dtype, dtype), dtype))

    def bitcast(self, x: ArrayValue, dtype: DType) -> ArrayValue:
        assert x.dtype.bits == dtype.bits
        return ArrayValue(dtype, bitcast_array(x.array, x.dtype, dtype))

    def reduce_precision(self, x: ArrayValue, exponent: int, mantissa: int) -> ArrayValue:
        widths = {"exponent_bits": exponent, "mantissa_bits": mantissa}
        return apply("reduce-precision", x, **widths)

    def compare(
        self, x: ArrayValue, y: ArrayValue, direction: str, total_order: bool = False
    ) -> ArrayValue:
        kind = {"type": "TOTALORDER"} if total_order else {}
        return apply("compare", x, y, direction=direction, **kind)

    def select(self, pred: ArrayValue, x: ArrayValue, y: ArrayValue) -> ArrayValue:
        assert pred.dtype is PRED and x.dtype is y.dtype
        return ArrayValue(x.dtype, np.where(pred.array, x.array, y.array))

    def index_constant(self, number: int) -> np.ndarray:
        return np.asarray(number, np.int64)

    def from_index(self, index: np.ndarray, dtype: DType) -> ArrayValue:
        wide = index if dtype.is_integer else np.asarray(index).astype(np.float64)
        with np.errstate(all="ignore"):
            return ArrayValue(dtype, store(wide, dtype))

    def to_index(self, x: ArrayValue) -> np.ndarray:
        assert x.dtype.is_integer
        return np.asarray(x.array).astype(np.int64)

    def clamp_index(self, index: np.ndarray, low: int, high: int) -> np.ndarray:
        return np.clip(index, low, high)

    def index_in_range(self, index: np.ndarray, low: int, high: int) -> ArrayValue:
        return ArrayValue(PRED, np.asarray((low <= index) & (index < high)))


def apply(opcode: str, *operands: ArrayValue, **attrs: Any) -> ArrayValue:
    """A row's own evaluate, on arrays of a common shape."""
    assert len({x.dtype for x in operands}) == 1, (opcode, [x.dtype for x in operands])
    arrays = np.broadcast_arrays(*(x.array for x in operands))
    parameters = [HloInstruction("parameter", Shape(x.dtype, arrays[0].shape)) for x in operands]
    instruction = HloInstruction(opcode, parameters[0].shape, parameters, attrs)
    instruction.shape = OPS[opcode].infer(instruction)
    value = OPS[opcode].evaluate(instruction, list(arrays), None)  # type: ignore[arg-type]
    assert isinstance(value, np.ndarray)
    return ArrayValue(instruction.shape.dtype, value)


def _method(opcode: str) -> Callable[..., ArrayValue]:
    return lambda self, *operands: apply(opcode, *operands)


KEYWORDS = {"and": "and_", "or": "or_", "not": "not_"}
for _opcode, _row in OPS.items():
    if isinstance(_row.lower, Elementwise):
        _name = KEYWORDS.get(_opcode, _opcode.replace("-", "_"))
        if not hasattr(NumpyScalar, _name):
            setattr(NumpyScalar, _name, _method(_opcode))


def run_emit(instruction: HloInstruction, operands: list[np.ndarray]) -> np.ndarray:
    """The instruction's value by its row's `emit`."""
    b, dims = NumpyScalar(), instruction.shape.dims
    index = tuple(np.indices(dims, np.int64)) if dims else ()
    values = [ArrayValue(o.shape.dtype, x) for o, x in zip(instruction.operands, operands)]

    def read(
        operand: int, at: tuple[np.ndarray, ...], mask: ArrayValue | None = None
    ) -> ArrayValue:
        x = values[operand]
        assert len(at) == x.array.ndim
        places = np.broadcast_arrays(*at, *index)[: len(at)] if at else []
        for d, place in enumerate(places):
            inside = (place >= 0) & (place < x.array.shape[d])
            assert inside.all() if mask is None else (inside | ~mask.array).all()
        if x.array.size == 0:
            return ArrayValue(x.dtype, np.zeros(places[0].shape, x.dtype.numpy))
        clipped = [np.clip(p, 0, n - 1) for p, n in zip(places, x.array.shape)]
        return ArrayValue(x.dtype, np.asarray(x.array[tuple(clipped)]))

    lower = OPS[instruction.opcode].lower
    if isinstance(lower, Elementwise):
        result = lower.emit(b, instruction, *values)
    else:
        assert isinstance(lower, Indexed)
        result = lower.emit(b, instruction, index, read)
    assert result.dtype is instruction.shape.dtype
    return np.array(np.broadcast_to(result.array, dims))
