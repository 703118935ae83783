"""Values and their leaves: tuples taken apart and put together; memory seen as arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np

from haloc.ir.literal import Value
from haloc.ir.shape import Shape


def flat(value: Value) -> list[np.ndarray | None]:
    """The leaves of a value, in depth-first order; None for a token."""
    if isinstance(value, tuple):
        return [leaf for member in value for leaf in flat(member)]
    return [None if value is None else np.asarray(value)]


def nested(shape: Shape, leaves: Iterator[np.ndarray | None]) -> Value:
    """A value of `shape` made of its leaves, in depth-first order."""
    if shape.is_tuple:
        return tuple(nested(e, leaves) for e in shape.elements)
    return next(leaves)


def memory_as_array(pointer: int | None, shape: Shape) -> np.ndarray | None:
    """A NumPy view of row-major memory that somebody else keeps alive, writable; None for a
    token."""
    if not shape.is_array:
        return None
    if not shape.byte_size:
        return np.empty(shape.dims, shape.dtype.numpy)
    assert pointer is not None
    memory = (ctypes.c_ubyte * shape.byte_size).from_address(pointer)
    return np.ctypeslib.as_array(memory).view(shape.dtype.numpy).reshape(shape.dims)


def laid_out_memory(pointer: int | None, shape: Shape) -> np.ndarray | None:
    """The same of memory in the shape's layout."""
    if shape.is_row_major:
        return memory_as_array(pointer, shape)
    memory = memory_as_array(pointer, shape.in_memory())
    assert memory is not None
    return memory.transpose(np.argsort(shape.major_to_minor))
