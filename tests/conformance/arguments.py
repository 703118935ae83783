"""Test arguments from short specifications.

"f32[3,4]"        normal numbers          "f32[3,4]+"      positive, in [0.1, 3]
"f32[3,4]u"       uniform in (-1, 1)      "f32[]=0.5"      this value
"s32[5]<10"       integers in [0, 10)     "s32[5]"         small integers of either sign
"f32[6]!"         special values: nan, inf, -inf, -0, 0, largest, 1, ... (no subnormals: jaxlib
                  flushes them)
"""

from __future__ import annotations

import re

import numpy as np

from haloc.ir.dtype import dtype_from_name

_SPEC = re.compile(r"(\w+)\[([\d,]*)\](?:(\+)|(u)|(!)|=(.+)|<(\d+))?$")

SPECIAL = [
    *[np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5],
    *[
        3.4e38,
        -3.4e38,
        1e-7,
        88.0,
        -88.0,
        104.0,
        1e10,
        -1e10,
        255.5,
        1e5,
        7.0,
        0.1,
        2**31,
        -(2**31),
    ],
]


def argument(spec: str, rng: np.random.Generator) -> np.ndarray:
    match = _SPEC.match(spec)
    assert match, spec
    name, dims_text, positive, uniform, special, value, below = match.groups()
    dtype = dtype_from_name(name)
    dims = tuple(int(d) for d in dims_text.split(",") if d)
    if value is not None:
        return np.full(dims, float(value), dtype.numpy)
    if special:
        values = np.resize(np.array(SPECIAL), dims)
        with np.errstate(over="ignore"):
            return values.astype(dtype.numpy)
    if dtype.is_pred:
        return rng.integers(0, 2, dims).astype(bool)
    if dtype.is_integer:
        low, high = (0, int(below)) if below else (0 if dtype.is_unsigned else -7, 8)
        if dtype.bits < 4:
            low, high = max(low, -2), min(high, 2)
        return rng.integers(low, high, dims).astype(dtype.numpy)
    if positive:
        numbers = rng.uniform(0.1, 3.0, dims)
    elif uniform:
        numbers = rng.uniform(-0.99, 0.99, dims)
    else:
        numbers = rng.normal(size=dims)
    if dtype.is_complex:
        numbers = numbers + 1j * rng.normal(size=dims)
    return np.asarray(numbers).astype(dtype.numpy)
