"""Reads a sort's comparator: does it order lexicographically by keys that are integers at heart?

The region becomes a tree of tuples; a key is recognised in the forms

    compare(x, y), direction=LT or GT                 x of operand k's left element, y its right one
    compare(x, y), direction=LE or GE                 the same: a tie is a tie either way
    or(less, and(equal, rest)), select(equal, rest, less), select(unequal, less, rest)

where x is the element, its real or imaginary part, and may be made canonical first, as JAX does:
select(x != x, NaN, x) and select(x == 0, 0, x).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from haloc.ir.dtype import BF16, F16, F32, F64, DType
from haloc.ir.module import HloComputation, HloInstruction

RADIX_FLOATS = (F16, BF16, F32, F64)
"""Floats whose bits are sign and magnitude, with NaNs above infinity."""


@dataclass(frozen=True, slots=True)
class SortKey:
    """Order by operand `operand` (or its real, imaginary part: component 0, 1 of a complex one).

    dtype: of the key. nan, zero: the bits every NaN, every zero counts as, or None: as its own.
    Floats compare in total order after that.
    """

    operand: int
    component: int
    dtype: DType
    is_descending: bool = False
    nan: int | None = None
    zero: int | None = None


def keys_of(comparator: HloComputation) -> list[SortKey] | None:
    """The keys, most significant first; None if the comparator is not in a form known here."""
    return _lexicographic(_tree(comparator.root))


Tree = tuple[Any, ...]


def _tree(instruction: HloInstruction) -> Tree:
    if instruction.opcode == "parameter":
        return ("parameter", instruction.attrs["parameter_number"], instruction.shape.dtype)
    if instruction.opcode == "constant":
        return ("constant", instruction.attrs["literal"])
    operands = tuple(_tree(o) for o in instruction.operands)
    if instruction.opcode == "compare":
        kind = instruction.attrs.get("type") or "FLOAT"
        is_total = kind == "TOTALORDER" or not instruction.operands[0].shape.dtype.is_float
        return ("compare", instruction.attrs["direction"], is_total, *operands)
    return (instruction.opcode, *operands)


def _lexicographic(tree: Tree) -> list[SortKey] | None:
    match tree:
        case ("compare", "LT" | "GT" | "LE" | "GE", *_):
            key = _compared(tree)
            return [key] if key else None
        case ("or", x, y):
            for less, rest in ((x, y), (y, x)):
                if rest[0] == "and":
                    for equal, tail in (rest[1:], rest[:0:-1]):
                        if (keys := _then(less, equal, "EQ", tail)) is not None:
                            return keys
        case ("select", condition, x, y):
            return _then(y, condition, "EQ", x) or _then(x, condition, "NE", y)
    return None


def _then(less: Tree, equal: Tree, direction: str, tail: Tree) -> list[SortKey] | None:
    """less, or (equal on the same key and tail)."""
    if less[0] != "compare" or less[1] not in ("LT", "GT") or equal[:2] != ("compare", direction):
        return None
    key, tied = _compared(less), _compared(equal)
    if key is None or tied is None or replace(key, is_descending=False) != tied:
        return None
    rest = _lexicographic(tail)
    return None if rest is None else [key, *rest]


def _compared(tree: Tree) -> SortKey | None:
    """The key a compare node compares; its direction as if the left element stood left."""
    _, direction, is_total, x, y = tree
    left, right = _side(x), _side(y)
    if left is None or right is None:
        return None
    if left[1:] != right[1:] or left[0] ^ 1 != right[0]:
        return None
    number, component, dtype, nan, zero = left
    is_descending = direction in ("GT", "GE")
    if direction not in ("EQ", "NE") and number % 2 == 1:
        is_descending = not is_descending
    if not is_total:
        # IEEE comparison: zeros are equal. NaN has no place in such an order; here it is greatest.
        nan = _nan_bits(dtype) if nan is None else nan
        zero = 0 if zero is None else zero
    if (dtype.is_float and dtype not in RADIX_FLOATS) or dtype.is_complex:
        return None
    return SortKey(number // 2, component, dtype, is_descending, nan, zero)


_Side = tuple[int, int, DType, int | None, int | None]


def _side(tree: Tree) -> _Side | None:
    """(parameter, component, dtype of the key, canonical NaN's bits, canonical zero's bits)."""
    match tree:
        case ("parameter", number, dtype):
            return (number, 0, dtype, None, None)
        case ("real" | "imag" as part, ("parameter", number, dtype)) if dtype.is_complex:
            return (number, int(part == "imag"), dtype.real, None, None)
        case ("select", ("compare", direction, False, x, y), ("constant", literal), rest):
            side, tested = _side(rest), _side(x)
            if side is None or tested is None or tested[3:] != (None, None):
                return None
            if tested[:3] != side[:3] or side[2] not in RADIX_FLOATS:
                return None
            value = literal.array
            if direction == "NE" and x == y and np.isnan(value):
                return (*side[:3], _bits(value), side[4])
            if direction == "EQ" and _is_zero(y) and value == 0:
                return (*side[:4], _bits(value))
    return None


def _is_zero(tree: Tree) -> bool:
    return tree[0] == "constant" and bool(tree[1].array == 0)


def _bits(value: np.ndarray) -> int:
    return int.from_bytes(value.tobytes(), "little")


def _nan_bits(dtype: DType) -> int:
    return _bits(np.array(np.nan, dtype.numpy))
