"""`ShapedArray`: the shape and element type of an array, without its elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class ShapedArray:
    """What `aval` arguments may be; any object with `shape` and `dtype` will do as well."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape: Sequence[int], dtype: Any, weak_type: bool = False):
        self.shape = tuple(int(size) for size in shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.weak_type = weak_type

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def _key(self) -> tuple[Any, ...]:
        return (self.shape, self.dtype, self.weak_type)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, ShapedArray) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"

    def __repr__(self) -> str:
        return f"ShapedArray({self})"
