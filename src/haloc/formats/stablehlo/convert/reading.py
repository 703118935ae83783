"""Reads the attributes of an op as plain Python values, with an error that names op and attribute.

Lists of integers come in several forms (array<i64>, dense<> of i64, arrays of integers): all read.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from haloc.errors import HloError, InvalidArgumentError, UnimplementedError
from haloc.formats.stablehlo.mlir import (
    Attribute,
    DenseElements,
    Enum,
    Float,
    Integer,
    MlirOp,
    Struct,
    SymbolRef,
    Unit,
)

MISSING: Any = object()


def fail(op: MlirOp, message: str) -> NoReturn:
    """InvalidArgumentError: "stablehlo.slice: <message>"."""
    raise InvalidArgumentError(f"{op.name}: {message}")


def unimplemented(op: MlirOp, message: str) -> NoReturn:
    raise UnimplementedError(f"{op.name}: {message}")


def _wrong(op: MlirOp, name: str, wanted: str) -> NoReturn:
    fail(op, f"attribute {name} must be {wanted}")


def get(op: MlirOp, name: str, default: Any = MISSING) -> Any:
    value = op.attributes.get(name, default)
    if value is MISSING:
        fail(op, f"attribute {name} is missing")
    return value


def ints(op: MlirOp, name: str, default: Any = MISSING) -> tuple[int, ...]:
    """A list of integers, flat."""
    value = get(op, name, default)
    if value is default:
        return default
    return int_list(op, name, value)


def int_list(op: MlirOp, name: str, value: Attribute) -> tuple[int, ...]:
    if isinstance(value, DenseElements) and value.array.dtype.kind in "iub":
        _bounded(op, name, value)
        return tuple(int(v) for v in value.array.reshape(-1).tolist())
    if isinstance(value, tuple):
        flat = [v.value if isinstance(v, Integer) else v for v in value]
        if all(isinstance(v, int) for v in flat):
            return tuple(int(v) for v in flat)  # type: ignore[arg-type]
    return _wrong(op, name, "a list of integers")


_MOST_INTEGERS = 1_000_000


def _bounded(op: MlirOp, name: str, value: DenseElements) -> None:
    """One number can stand for any count of elements: that is no list to go through."""
    if value.array.size > _MOST_INTEGERS:
        fail(op, f"attribute {name} has {value.array.size} elements")


def pairs(op: MlirOp, name: str, default: Any = MISSING) -> list[tuple[int, int]]:
    """The rows of an integer tensor with two columns."""
    rows = matrix(op, name, default)
    if name not in op.attributes:
        return default
    if rows.shape[1] != 2:
        _wrong(op, name, "a tensor of pairs of integers")
    return [(int(a), int(b)) for a, b in rows]


def matrix(op: MlirOp, name: str, default: Any = MISSING) -> np.ndarray:
    """An integer tensor of rank 2."""
    value = get(op, name, default)
    if value is default:
        return default
    if not isinstance(value, DenseElements) or value.array.ndim != 2:
        _wrong(op, name, "a tensor of integers of rank 2")
    if value.array.dtype.kind not in "iu":
        _wrong(op, name, "a tensor of integers of rank 2")
    _bounded(op, name, value)
    return value.array


def integer(op: MlirOp, name: str, default: Any = MISSING) -> int:
    value = get(op, name, default)
    if value is default:
        return default
    if isinstance(value, Integer):
        return value.value
    if isinstance(value, int):
        return value
    return _wrong(op, name, "an integer")


def number(op: MlirOp, name: str, default: Any = MISSING) -> float:
    value = get(op, name, default)
    if value is default:
        return default
    if isinstance(value, Float | Integer):
        return float(value.value)
    return _wrong(op, name, "a number")


def flag(op: MlirOp, name: str, default: bool = False) -> bool:
    value = op.attributes.get(name, default)
    if isinstance(value, Unit):
        return True
    if isinstance(value, bool):
        return value
    return _wrong(op, name, "true or false")


def text(op: MlirOp, name: str, default: Any = MISSING) -> str:
    value = get(op, name, default)
    if value is default or isinstance(value, str):
        return value
    return _wrong(op, name, "a string")


def enum(op: MlirOp, name: str, default: Any = MISSING) -> str:
    value = get(op, name, default)
    if value is default:
        return default
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return value
    return _wrong(op, name, "an enum")


def symbol(op: MlirOp, name: str) -> str:
    value = get(op, name)
    if not isinstance(value, SymbolRef):
        _wrong(op, name, "a symbol")
    return value.name


def struct(op: MlirOp, name: str, kind: str) -> dict[str, Any]:
    value = get(op, name)
    if not isinstance(value, Struct) or value.name != "stablehlo." + kind:
        _wrong(op, name, f"#stablehlo.{kind}<...>")
    return value.fields


def at_op(error: HloError, op: MlirOp, source: str, filename: str) -> None:
    """Add to an error where in the text its op stands, once."""
    if op.position < 0 or not source or getattr(error, "__notes__", None):
        return
    line = source.count("\n", 0, op.position) + 1
    start = source.rfind("\n", 0, op.position) + 1
    end = source.find("\n", op.position)
    content = source[start : end if end >= 0 else len(source)]
    shown = content if len(content) <= 160 else content[:157] + "..."
    error.add_note(f"  {filename}:{line}:{op.position - start + 1}   {shown.strip()}")
