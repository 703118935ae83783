"""`haloc convert`: a program in any format haloc reads, written in another."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from haloc.cli.files import read_program, size_option
from haloc.cli.progress import ProgressLine
from haloc.errors import InvalidArgumentError
from haloc.formats.dot import to_dot
from haloc.formats.hlo_proto import serialize_hlo_module
from haloc.formats.hlo_text import to_text
from haloc.formats.stablehlo import from_hlo, print_mlir, serialize_portable_artifact
from haloc.ir.module import HloModule
from haloc.verifier import verify


def _stablehlo(module: HloModule, options: argparse.Namespace) -> str:
    return print_mlir(from_hlo(module), locations=options.locations)


def _bytecode(module: HloModule, options: argparse.Namespace) -> bytes:
    return serialize_portable_artifact(from_hlo(module, portable=True), options.target)


FORMATS: dict[str, Callable[[HloModule, argparse.Namespace], str | bytes]] = {
    "hlo": lambda module, options: to_text(module),
    "proto": lambda module, options: serialize_hlo_module(module),
    "stablehlo": _stablehlo,
    "bytecode": _bytecode,
    "dot": lambda module, options: to_dot(module),
}
"""What `--to` takes: HLO text, HloModuleProto, StableHLO text, a portable artifact, graphviz."""

_SUFFIXES = {
    ".hlo": "hlo",
    ".txt": "hlo",
    ".pb": "proto",
    ".hlo_module": "proto",
    ".mlir": "stablehlo",
    ".stablehlo": "stablehlo",
    ".mlirbc": "bytecode",
    ".bc": "bytecode",
    ".dot": "dot",
    ".gv": "dot",
}


def run(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    format_ = options.to or _format_of(options.output)
    if options.target and format_ != "bytecode":
        raise InvalidArgumentError(f"--target is a version of StableHLO bytecode, not of {format_}")
    if options.locations and format_ != "stablehlo":
        raise InvalidArgumentError(f"--locations goes with StableHLO text, not with {format_}")
    name = "<stdin>" if options.file == "-" else options.file
    with ProgressLine(name) as progress:
        progress("reading", 0, 1)
        module = read_program(options.file, dict(options.size))
        progress("verifying", 0, 1)
        verify(module)
        progress(f"writing {format_}", 0, 1)
        written = FORMATS[format_](module, options)
    _write(written, options.output)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="haloc convert", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "file", metavar="FILE", help="a program in any format haloc reads; '-' for stdin"
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="write here instead of stdout")
    suffixes = ", ".join(sorted(_SUFFIXES))
    parser.add_argument(
        "--to", choices=FORMATS, help=f"the format; without it OUT's suffix says: {suffixes}"
    )
    parser.add_argument(
        "--target",
        metavar="VERSION",
        default="",
        help="of bytecode: the StableHLO version to write, the oldest that will do by default",
    )
    parser.add_argument(
        "--locations", action="store_true", help="of StableHLO text: write where ops come from"
    )
    parser.add_argument(
        "--size",
        metavar="NAME=N",
        type=size_option,
        action="append",
        default=[],
        help="a dimension variable of a jax.export artifact",
    )
    return parser


def _format_of(output: str | None) -> str:
    """The format a file's suffix says."""
    suffix = Path(output).suffix if output not in (None, "-") else ""  # type: ignore[arg-type]
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    wanted = ", ".join(FORMATS)
    if not suffix:
        raise InvalidArgumentError(f"say the format with --to: {wanted}")
    raise InvalidArgumentError(f"{output}: suffix {suffix} says no format; --to takes {wanted}")


def _write(written: str | bytes, output: str | None) -> None:
    data = written if isinstance(written, bytes) else written.encode("utf-8", "surrogateescape")
    if output not in (None, "-"):
        Path(output).write_bytes(data)  # type: ignore[arg-type]
        return
    if isinstance(written, bytes) and sys.stdout.isatty():
        raise InvalidArgumentError("binary data for a terminal: name a file with -o, or pipe it")
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
