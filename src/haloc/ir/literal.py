"""Literals: the values of constants. An array of a primitive type, or a tuple of literals."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from haloc.ir.dtype import dtype_from_numpy
from haloc.ir.shape import Shape, tuple_shape

Value: TypeAlias = "np.ndarray | tuple[Value, ...] | None"
"""A run-time value in Python: an array, a tuple of values, or None for a token."""


class Literal:
    """An immutable constant. `value` is a read-only array, or a tuple of values for a tuple shape.

    Two literals are equal when shape and bits are: NaN equals the same NaN, -0 is not +0.
    """

    __slots__ = ("_hash", "shape", "value")

    def __init__(self, shape: Shape, value: Value):
        self.shape = shape
        self.value = _frozen(value)
        self._hash = 0

    @classmethod
    def of(cls, array: object) -> Literal:
        """The literal with the shape and element type of a NumPy array or scalar."""
        array = np.asarray(array)
        return cls(Shape(dtype_from_numpy(array.dtype), array.shape), array)

    @property
    def array(self) -> np.ndarray:
        """The value of an array literal."""
        assert isinstance(self.value, np.ndarray), self.shape
        return self.value

    @property
    def is_splat(self) -> bool:
        """True for a non-empty array whose elements all have the same bits."""
        if not isinstance(self.value, np.ndarray) or self.value.size == 0:
            return False
        flat = self.value.reshape(-1)
        if flat[:1].tobytes() != flat[-1:].tobytes():
            return False
        return flat.tobytes() == flat[:1].tobytes() * flat.size

    def leaves(self) -> list[Literal]:
        if not isinstance(self.value, tuple):
            return [self]
        pairs = zip(self.shape.elements, self.value, strict=True)
        return [leaf for s, v in pairs for leaf in Literal(s, v).leaves()]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Literal):
            return NotImplemented
        return self.shape == other.shape and _bits(self.value) == _bits(other.value)

    def __hash__(self) -> int:
        if not self._hash:
            self._hash = hash((self.shape, _bits(self.value)))
        return self._hash

    def __repr__(self) -> str:
        return f"Literal({self.shape}, {self.value!r})"


def tuple_literal(*members: Literal) -> Literal:
    return Literal(tuple_shape(*(m.shape for m in members)), tuple(m.value for m in members))


def _frozen(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(_frozen(v) for v in value)
    if value is None:
        return None
    array = np.asarray(value, order="C")
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def _bits(value: Value) -> object:
    if isinstance(value, tuple):
        return tuple(_bits(v) for v in value)
    return b"" if value is None else value.tobytes()
