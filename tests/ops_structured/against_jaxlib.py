"""`check`: a module in the interpreter gives what it gives in jaxlib."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from haloc import interpreter
from haloc.formats.hlo_text import parse_module
from haloc.ir.module import HloModule
from haloc.ir.shape import Shape
from haloc.verifier import verify
from tests.oracle import run_in_jaxlib

REGIONS = """
{name} {{
  x = {dtype}[] parameter(0)
  y = {dtype}[] parameter(1)
  ROOT r = {dtype}[] {opcode}(x, y)
}}
"""


def region(opcode: str, dtype: str, name: str = "combine") -> str:
    """A computation (x, y) -> opcode(x, y) on scalars."""
    return REGIONS.format(name=name, opcode=opcode, dtype=dtype)


def module(entry: str, *computations: str) -> str:
    """HLO text of a module; `entry` holds the entry's instructions, one a line."""
    return "HloModule m\n" + "\n".join(computations) + "\nENTRY e {\n" + entry + "\n}\n"


def random_value(shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Small numbers, so that integer arithmetic and narrow floats stay in range."""
    dtype = shape.dtype
    if dtype.is_pred:
        return rng.integers(0, 2, shape.dims).astype(np.bool_)
    if dtype.is_integer:
        low, high = (0, 4) if dtype.is_unsigned else (-3, 4)
        if dtype.bits < 4:
            low, high = (0, 2) if dtype.is_unsigned else (-1, 2)
        return rng.integers(low, high, shape.dims).astype(np.int8).astype(dtype.numpy)
    x = rng.standard_normal(shape.dims)
    if dtype.is_complex:
        return np.asarray(x + 1j * rng.standard_normal(shape.dims)).astype(dtype.numpy)
    return np.asarray(x).astype(np.float32 if dtype.bits < 64 else np.float64).astype(dtype.numpy)


def random_arguments(parsed: HloModule, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [random_value(p.shape, rng) for p in parsed.entry.parameters]


def leaves(value: object) -> list[np.ndarray]:
    if isinstance(value, tuple):
        return [leaf for v in value for leaf in leaves(v)]
    return [value]  # type: ignore[list-item]


def check(
    text: str, arguments: Sequence[np.ndarray] | None = None, *, rtol: float = 0.0, seed: int = 0
) -> list[np.ndarray]:
    """Verify and run `text` in the interpreter and in jaxlib; results must agree.

    rtol: relative to each array's largest finite magnitude, for floats; integers are exact.
    Returns the interpreter's results.
    """
    parsed = parse_module(text)
    verify(parsed)
    arguments = random_arguments(parsed, seed) if arguments is None else list(arguments)
    given = leaves(interpreter.run(parsed, arguments))
    wanted = run_in_jaxlib(text, arguments)
    assert len(given) == len(wanted)
    for a, b in zip(given, wanted):
        assert_close(a, b, rtol)
    return given


def assert_close(a: np.ndarray, b: np.ndarray, rtol: float) -> None:
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, a.shape, b.dtype, b.shape)
    if rtol == 0.0:
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        if a.dtype.isbuiltin == 1 and a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_array_equal(a.astype(wide), b.astype(wide))
        return
    wide_a, wide_b = a.astype(np.complex128), b.astype(np.complex128)
    finite = np.abs(wide_b[np.isfinite(wide_b)])
    scale = finite.max() if finite.size else 0.0
    np.testing.assert_allclose(wide_a, wide_b, rtol=rtol, atol=rtol * scale, equal_nan=True)
