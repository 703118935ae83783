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
from haloc.ir.literal import Value
from haloc.ir.module import HloModule
from haloc.ir.shape import Shape
from haloc.runtime.backend import nested
from haloc.runtime.computation import read_computation
from haloc.triage.engine import random_array


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


def add_input_options(parser: argparse.ArgumentParser) -> None:
    """-i, --random, --seed and --size, which `read_inputs` and `read_program` act on."""
    parser.add_argument(
        "-i",
        "--input",
        metavar="FILE",
        action="append",
        default=[],
        help=".npy, or .npz with several arrays; repeat for each parameter",
    )
    parser.add_argument(
        "--size",
        metavar="NAME=N",
        type=size_option,
        action="append",
        default=[],
        help="value of a dimension variable of a jax.export artifact; repeat for each",
    )
    parser.add_argument("--random", action="store_true", help="random inputs")
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs (0)")


def read_inputs(options: argparse.Namespace, module: HloModule) -> list[np.ndarray]:
    """The array leaves of the entry's parameters, as the options want them."""
    shapes = [s for p in module.entry.parameters for s in p.shape.leaves() if s.is_array]
    if options.random and options.input:
        raise InvalidArgumentError("give --random or -i, not both")
    if options.random:
        rng = np.random.default_rng(options.seed)
        return [random_array(s, rng) for s in shapes]
    if shapes and not options.input:
        listed = ", ".join(map(str, shapes))
        raise InvalidArgumentError(
            f"the program has {len(shapes)} parameter(s): {listed}; give them with -i, or --random"
        )
    return read_arrays(options.input, shapes)


def as_arguments(leaves: Sequence[np.ndarray], module: HloModule) -> list[Value]:
    """The leaves as a value for each parameter of the entry."""
    rest = iter(leaves)
    return [nested(p.shape, rest) for p in module.entry.parameters]
