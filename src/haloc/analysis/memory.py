"""How many bytes a program's values take: at its boundary, and packed as XLA counts them."""

from __future__ import annotations

from haloc.ir.dtype import DType
from haloc.ir.shape import Shape

TUPLE_POINTER_BYTES = 8


def packed_size_bytes(dtype: DType, element_count: int) -> int:
    """Bytes of an array whose sub-byte elements share bytes, as XLA counts them."""
    bits = 8 if dtype.is_pred else dtype.bits
    return -(-element_count * bits // 8)


def output_size_bytes(shape: Shape) -> int:
    """Bytes of a result: its arrays, plus a table of 8-byte pointers for every tuple in it."""
    if not shape.is_tuple:
        return shape.byte_size
    table = TUPLE_POINTER_BYTES * len(shape.elements)
    return table + sum(output_size_bytes(e) for e in shape.elements)
