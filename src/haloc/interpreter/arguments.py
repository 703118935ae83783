"""Arguments as the interpreter keeps them: arrays of exactly the wanted type, or an error."""

from __future__ import annotations

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.ir.literal import Value
from haloc.ir.shape import Shape


def fitted(value: Value, shape: Shape, what: str) -> Value:
    """`value` as the interpreter keeps it; InvalidArgumentError when it is not of `shape`."""
    if shape.is_tuple:
        if not isinstance(value, tuple | list) or len(value) != len(shape.elements):
            raise InvalidArgumentError(f"{what} is {kind_of(value)}, wanted {shape}")
        members = zip(value, shape.elements)
        return tuple(fitted(v, s, f"{what}[{n}]") for n, (v, s) in enumerate(members))
    if not shape.is_array:
        return None
    array = np.asarray(value)
    if array.dtype != shape.dtype.numpy or not shape.holds(array.shape):
        wanted = shape.to_string(include_layout=False)
        raise InvalidArgumentError(f"{what} is {kind_of(array)}, wanted {wanted}")
    return array


def kind_of(value: object) -> str:
    """What a value is, for messages."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with dimensions {list(value.shape)}"
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else f"a {type(value).__name__}"
