"""Evaluates the small integer programs that compute shapes: `concatenate(b, 2 * b)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from haloc.formats.stablehlo.mlir import DenseElements, MlirOp, RankedTensor

SIZE_LIMIT = 4096
"""Larger arrays are no shapes; they are left to the program."""

_DTYPES = {f"{s}{b}": np.dtype(f"{k}{b // 8}") for s, k in (("i", "i"), ("ui", "u"))
           for b in (8, 16, 32, 64)} | {"i1": np.dtype(np.bool_)}  # fmt: skip


def _trunc_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Towards zero; -1 for a zero divisor, as XLA has it."""
    safe = np.where(y == 0, 1, y)
    quotient = np.floor_divide(np.abs(x), np.abs(safe)) * (np.sign(x) * np.sign(safe))
    return np.where(y == 0, -1, quotient)


def _trunc_remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """With the dividend's sign; the dividend for a zero divisor."""
    safe = np.where(y == 0, 1, y)
    return np.where(y == 0, x, np.fmod(x, safe))


_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "stablehlo.abs": np.abs,
    "stablehlo.add": np.add,
    "stablehlo.and": np.bitwise_and,
    "stablehlo.clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
    "stablehlo.convert": lambda x: x,
    "stablehlo.divide": _trunc_divide,
    "stablehlo.maximum": np.maximum,
    "stablehlo.minimum": np.minimum,
    "stablehlo.multiply": np.multiply,
    "stablehlo.negate": np.negative,
    "stablehlo.not": np.invert,
    "stablehlo.optimization_barrier": lambda x: x,
    "stablehlo.or": np.bitwise_or,
    "stablehlo.remainder": _trunc_remainder,
    "stablehlo.select": np.where,
    "stablehlo.sign": np.sign,
    "stablehlo.subtract": np.subtract,
    "stablehlo.xor": np.bitwise_xor,
}

_COMPARE: dict[str, Callable[..., Any]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}


def _ints(op: MlirOp, name: str) -> tuple[int, ...]:
    value = op.attributes.get(name)
    return tuple(value.array.ravel().tolist()) if isinstance(value, DenseElements) else ()


def _number(op: MlirOp, name: str) -> int:
    value: Any = op.attributes[name]
    return value.value


def _broadcast(op: MlirOp, x: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    where = [1] * len(dims)
    for size, d in zip(x.shape, _ints(op, "broadcast_dimensions"), strict=True):
        where[d] = size
    return np.broadcast_to(x.reshape(where), dims)


def _slice(op: MlirOp, x: np.ndarray) -> np.ndarray:
    bounds = (_ints(op, n) for n in ("start_indices", "limit_indices", "strides"))
    return x[tuple(slice(a, b, s) for a, b, s in zip(*bounds, strict=True))]


def evaluate(op: MlirOp, values: Sequence[np.ndarray], result: RankedTensor) -> np.ndarray | None:
    """The value of an op of one result from its operands' values; None when it is no shape.

    result: the type after refinement, all sizes known.
    """
    dtype = _DTYPES.get(result.element) if isinstance(result.element, str) else None
    dims = tuple([d or 0 for d in result.dims])
    if dtype is None or int(np.prod(dims, dtype=np.float64)) > SIZE_LIMIT:
        return None
    name = op.name
    with np.errstate(all="ignore"):
        if name == "stablehlo.constant":
            value: Any = op.attributes["value"]
            found: Any = value.array
        elif name in _ELEMENTWISE:
            found = _ELEMENTWISE[name](*values)
        elif name == "stablehlo.compare":
            direction: Any = op.attributes["comparison_direction"]
            found = _COMPARE[direction.value](*values)
        elif name == "stablehlo.reshape":
            found = values[0].reshape(dims)
        elif name == "stablehlo.concatenate":
            found = np.concatenate(values, _number(op, "dimension"))
        elif name == "stablehlo.broadcast_in_dim":
            found = _broadcast(op, values[0], dims)
        elif name == "stablehlo.slice":
            found = _slice(op, values[0])
        elif name == "stablehlo.iota":
            axis = _number(op, "iota_dimension")
            shape = [1] * len(dims)
            shape[axis] = dims[axis]
            found = np.broadcast_to(np.arange(dims[axis]).reshape(shape), dims)
        else:
            return None
    array = np.asarray(found).astype(dtype)
    if array.shape != dims:
        raise ValueError(f"a value of sizes {list(array.shape)} for {result}")
    return array
