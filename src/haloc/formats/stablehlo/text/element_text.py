"""Numbers and dense elements back to MLIR text, exactly: what is printed reads back bit for bit."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from haloc.formats.stablehlo.element_types import numpy_of
from haloc.formats.stablehlo.mlir import DenseElements

_LONGEST_LIST = 100
"""Arrays with more elements than this are written in hexadecimal, as MLIR does."""

_NARROW = frozenset({"i1", "i2", "i4", "ui2", "ui4", "f4E2M1FN", "f6E2M3FN", "f6E3M2FN"})
"""Elements that do not fill their bytes: always listed."""


def number_text(value: float, element: str = "f64") -> str:
    """A float: six digits where they say it all, else as many as it takes; bits where there are
    no digits."""
    dtype = numpy_of(element) or np.dtype(np.float64)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        exact = np.array(value, np.float64).astype(dtype)
    return _float_texts(exact.reshape(1))[0]


def dense_text(value: DenseElements) -> str:
    """`dense<[1, 2]> : tensor<2xi32>`; one number stands for many equal ones."""
    return f"dense<{_content(value)}> : {value.type}"


def array_text(value: DenseElements) -> str:
    """`array<i64: 1, 2>`, as MLIR writes lists that are attributes of ops; "" for what is none:
    several dimensions, or the elements that layouts have."""
    element = value.type.element
    if len(value.type.dims) != 1 or element == "index" or not isinstance(element, str):
        return ""
    if element.startswith(("complex", "ui", "si")) or element in _NARROW - {"i1"}:
        return ""
    listed = ", ".join(_element_texts(value.array))
    return f"array<{element}: {listed}>" if listed else f"array<{element}>"


def _content(value: DenseElements) -> str:
    array = value.array
    if not array.size:
        return ""
    if is_splat(array):
        return _element_texts(array.flat[:1])[0]
    if array.size > _LONGEST_LIST and value.type.element not in _NARROW:
        return f'"0x{np.ascontiguousarray(array).tobytes().hex().upper()}"'
    return _nested(_element_texts(array.reshape(-1)), array.shape)


def is_splat(array: np.ndarray) -> bool:
    """Whether all elements, at least one, have the same bits."""
    if not array.size:
        return False
    if array.size == 1 or not any(array.strides):
        return True
    raw = np.ascontiguousarray(array).view(np.uint8).reshape(-1, array.itemsize)
    # Most constants that are no splats differ in their ends.
    return bool((raw[0] == raw[-1]).all()) and bool((raw == raw[0]).all())


def _nested(texts: list[str], dims: tuple[int, ...]) -> str:
    for size in reversed(dims):
        groups = range(0, len(texts), size)
        texts = ["[" + ", ".join(texts[at : at + size]) + "]" for at in groups]
    return texts[0]


def _element_texts(array: np.ndarray) -> list[str]:
    dtype = array.dtype
    if dtype.kind == "b":
        return ["true" if v else "false" for v in array.tolist()]
    if dtype.kind == "c":
        part = np.float32 if dtype.itemsize == 8 else np.float64
        texts = _float_texts(np.ascontiguousarray(array).view(part))
        return [f"({re},{im})" for re, im in zip(texts[::2], texts[1::2], strict=True)]
    if dtype.kind in "iu" or "int" in dtype.name:
        return [str(int(v)) for v in array.tolist()]
    return _float_texts(array)


def _float_texts(array: np.ndarray) -> list[str]:
    dtype = array.dtype
    bits: list[Any] = np.ascontiguousarray(array).view(f"u{dtype.itemsize}").tolist()
    wide = array.astype(np.float64)
    texts = []
    digits = {"float32": 9, "float64": 17}.get(dtype.name, 6)
    for value, pattern in zip(wide.tolist(), bits, strict=True):
        if not isfinite(value):
            texts.append(f"0x{pattern:0{2 * dtype.itemsize}X}")
        elif digits == 6 or dtype.type(float(f"{value:.5e}")) == value:
            texts.append(f"{value:.6e}")
        else:
            text = f"{value:.{digits}g}"
            texts.append(text if "." in text else f"{value:.{digits - 1}e}")
    return texts
