"""Custom call targets that are Python functions on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from haloc.cpu.run_context import RunContext
from haloc.errors import InvalidArgumentError
from haloc.ffi.sites import PythonFunction, Site
from haloc.ffi.targets import Abi, Target
from haloc.ir.dtype import dtype_from_numpy


def python_target(name: str, function: Callable[..., Any], writes_results: bool) -> Target:
    """A target that calls `function(*operands, **attributes)`; see `custom_call`."""

    def call(
        site: Site, operands: list[np.ndarray], results: list[np.ndarray], run: RunContext | None
    ) -> None:
        attributes: dict[str, Any] = site.attributes
        if writes_results:
            function(*operands, *results, **attributes)
            return
        returned = function(*operands, **attributes)
        if not isinstance(returned, tuple | list):
            returned = () if returned is None else (returned,)
        store(returned, results, f"custom call target {name!r}")

    return Target(name, Abi.PYTHON, function, python=Same(call, function, writes_results))


class Same:
    """A `PythonFunction` that equals another made of the same parts."""

    def __init__(self, call: PythonFunction, *parts: object):
        self._call, self._parts = call, parts

    def __call__(self, *arguments: Any) -> None:
        self._call(*arguments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)


def store(returned: Sequence[Any], results: list[np.ndarray], what: str) -> None:
    """Copy what a function returned to where the program wants it.

    InvalidArgumentError for another number of arrays, or another dtype or shape.
    """
    if len(returned) != len(results):
        raise InvalidArgumentError(
            f"{what} returned {len(returned)} arrays, but the program wants {len(results)}"
        )
    for number, (value, result) in enumerate(zip(returned, results, strict=True)):
        array = np.asarray(value)
        if array.dtype != result.dtype or array.shape != result.shape:
            raise InvalidArgumentError(
                f"{what} returned {_shape(array)} as result {number}, but the program wants "
                f"{_shape(result)}"
            )
        np.copyto(result, array)


def _shape(array: np.ndarray) -> str:
    try:
        name = str(dtype_from_numpy(array.dtype))
    except InvalidArgumentError:
        name = str(array.dtype)
    return f"{name}[{','.join(map(str, array.shape))}]"
