"""`haloc fmt`: print a program in any format as HLO text in its canonical form."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from haloc.formats.hlo_text import PrintOptions, parse_module, to_text
from haloc.formats.sniff import Format, detect_format, load_module
from haloc.ir.module import HloModule


def run(argv: Sequence[str]) -> int:
    """The exit code: 0 done, 1 when `--check` finds a file that is not in canonical form."""
    options = _parser().parse_args(argv)
    source = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
    name = "<stdin>" if options.file == "-" else options.file
    text = to_text(_module(source, name), _print_options(options))
    if options.check:
        if text.encode("utf-8", "surrogateescape") == source:
            return 0
        print(
            f"{name}: not in canonical form; `haloc fmt {options.file}` prints it", file=sys.stderr
        )
        return 1
    if options.output in (None, "-"):
        sys.stdout.write(text)
    else:
        Path(options.output).write_text(text, encoding="utf-8", errors="surrogateescape")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="haloc fmt", description=__doc__)
    parser.add_argument(
        "file", metavar="FILE", help="a program in any format haloc reads; '-' for stdin"
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="write here instead of stdout")
    parser.add_argument("--no-metadata", action="store_true", help="leave out source places")
    parser.add_argument(
        "--short", action="store_true", help="leave out layouts, metadata and large constants"
    )
    parser.add_argument("--percent", action="store_true", help="write %% before names")
    parser.add_argument(
        "--check", action="store_true", help="print nothing; exit 1 if FILE would change"
    )
    return parser


def _print_options(options: argparse.Namespace) -> PrintOptions:
    chosen = PrintOptions.short() if options.short else PrintOptions()
    if options.no_metadata:
        chosen = replace(chosen, print_metadata=False)
    return replace(chosen, print_percent=options.percent)


def _module(source: bytes, name: str) -> HloModule:
    """HLO text may hold bytes that are not UTF-8, in strings: they are printed as they came."""
    if detect_format(source) in (Format.HLO_TEXT, Format.UNKNOWN):
        return parse_module(source.decode("utf-8", "surrogateescape"), name)
    return load_module(source, name)
