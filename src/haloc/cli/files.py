"""Reads programs and arrays named on the command line."""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.formats.sniff import Format, decompress, detect_format
from haloc.ir.module import HloModule
from haloc.ir.shape import Shape
from haloc.runtime.computation import read_computation


def read_program(name: str, sizes: Mapping[str, int] | None = None) -> HloModule:
    """The module in a file, or on stdin for "-"; its name stands in parse errors.

    sizes: values of the dimension variables of a jax.export artifact.
    """
    data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    shown = "<stdin>" if name == "-" else name
    if not sizes:
        return read_computation(data, shown)
    if detect_format(data) is Format.GZIP:
        data = decompress(data)
    if detect_format(data) is not Format.JAX_EXPORT:
        raise InvalidArgumentError(f"{shown} has no symbolic sizes: it is no jax.export artifact")
    # Import: start-up cost, and few programs are of this kind.
    from haloc.formats.jax_export import read_exported  # noqa: PLC0415

    exported = read_exported(data, shown)
    return exported.to_hlo("cpu", exported.argument_shapes(**sizes))


def size_option(text: str) -> tuple[str, int]:
    """ "b=8" of --size, as argparse's type."""
    name, equals, number = text.partition("=")
    if not equals or not name.isidentifier() or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=NUMBER")
    return name, int(number)


def read_arrays(names: Sequence[str], shapes: Sequence[Shape]) -> list[np.ndarray]:
    """The arrays of .npy and .npz files, in order; one for each shape.

    NumPy stores a type it does not know (bf16, ...) as raw bytes; those are read as the element
    type of their shape.
    """
    found: list[tuple[str, np.ndarray]] = []
    for name in names:
        try:
            loaded = np.load(name, allow_pickle=False)
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise InvalidArgumentError(f"{name} is not an .npy or .npz file: {error}") from None
        if isinstance(loaded, np.ndarray):
            found.append((name, loaded))
        else:
            found += [(f"{name}[{key}]", loaded[key]) for key in loaded.files]
    if len(found) != len(shapes):
        raise InvalidArgumentError(
            f"{len(found)} input array(s) given, but the program has {len(shapes)} parameter(s): "
            + ", ".join(map(str, shapes))
        )
    return [_as_wanted(n, a, s, i) for i, ((n, a), s) in enumerate(zip(found, shapes, strict=True))]


def _as_wanted(name: str, array: np.ndarray, shape: Shape, number: int) -> np.ndarray:
    wanted = shape.dtype.numpy
    assert wanted is not None
    if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize:
        array = array.view(wanted)
    if array.dtype != wanted or array.shape != shape.dims:
        raise InvalidArgumentError(
            f"{name} is {array.dtype}{list(array.shape)}, but parameter {number} is {shape}"
        )
    return array


def random_array(shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Values that most programs can digest: normal floats, integers of at most 8, both booleans."""
    dtype, dims = shape.dtype, shape.dims
    assert dtype.numpy is not None
    if dtype.is_pred:
        return rng.random(dims) < 0.5
    if dtype.is_integer:
        low = -min(8, 1 << (dtype.bits - 1)) if dtype.is_signed else 0
        high = min(8, (1 << (dtype.bits - dtype.is_signed)) - 1)
        return rng.integers(low, high + 1, dims).astype(dtype.numpy)
    values = rng.standard_normal(dims)
    if dtype.is_complex:
        return (values + 1j * rng.standard_normal(dims)).astype(dtype.numpy)
    if dtype.name == "f8e8m0fnu":  # has no sign and no zero
        values = np.abs(values) + 0.25
    return values.astype(dtype.numpy)
