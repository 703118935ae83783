"""How Python and NumPy read arrays: `__array__`, buffers, DLPack, numbers, text, pickles."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np


class ArrayProtocols:
    """Everything that follows from the elements (`_value`, read-only), the shape and the dtype."""

    __slots__ = ()

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def _value(self) -> np.ndarray:
        raise NotImplementedError  # by every kind of array

    def is_deleted(self) -> bool:
        raise NotImplementedError  # by every kind of array

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def weak_type(self) -> bool:
        """False: the dtype is what it says."""
        return False

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        value = self._value
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise ValueError(
                    f"an array of {value.dtype} cannot be read as {np.dtype(dtype)} without a copy"
                )
            return value.astype(dtype)
        return value.copy() if copy else value

    def __buffer__(self, flags: int, /) -> memoryview:
        """Python 3.12's buffer protocol; read-only. On 3.11 only C types have buffers, and
        `memoryview(np.asarray(x))` does the same."""
        return memoryview(self._value)  # type: ignore[arg-type]  # NumPy's are older than PEP 688

    def item(self, *index: int) -> Any:
        """One element as a Python number; ValueError unless the index or the size names one."""
        return self._value.item(*index)

    def tolist(self) -> Any:
        return self._value.tolist()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __bool__(self) -> bool:
        return bool(self._value)

    def __int__(self) -> int:
        return int(self._scalar().item())

    def __float__(self) -> float:
        return float(self._scalar().item())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        if self.shape or self.dtype.kind not in "iu":
            raise TypeError("Only integer scalar arrays can be converted to a scalar index.")
        return operator.index(self._value[()])

    def _scalar(self) -> Any:
        if self.shape:
            raise TypeError(
                "Only scalar arrays can be converted to Python scalars; "
                f"got arr.ndim={len(self.shape)}"
            )
        return self._value[()]

    __hash__ = None  # type: ignore[assignment]  # a value, not an identity, as in jaxlib

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"<deleted Array {name_of(self.dtype, self.shape)}>"
        dtype = self.dtype.name
        if not self.size:
            return f"Array([], shape={self.shape}, dtype={dtype})"
        body = np.array2string(self._value, prefix="Array(", separator=", ", suffix=",")
        return f"Array({body}, dtype={dtype})"

    def __str__(self) -> str:
        return str(self._value)

    def __format__(self, spec: str) -> str:
        return format(self._value[()], spec) if not self.shape else format(self._value, spec)


def name_of(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    """`float32[2,3]`."""
    return f"{dtype.name}[{','.join(map(str, shape))}]"
