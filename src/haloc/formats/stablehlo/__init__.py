"""StableHLO: text and bytecode, read and written; to HLO and from it."""

from __future__ import annotations

from haloc.formats.stablehlo.bytecode import parse_bytecode, serialize_portable_artifact
from haloc.formats.stablehlo.convert import to_hlo
from haloc.formats.stablehlo.export import from_hlo
from haloc.formats.stablehlo.text import parse_mlir
from haloc.formats.stablehlo.text.printer import print_mlir
from haloc.ir.module import HloModule

__all__ = [
    "from_hlo",
    "parse_bytecode",
    "parse_mlir",
    "parse_stablehlo",
    "print_mlir",
    "serialize_portable_artifact",
    "to_hlo",
]


def parse_stablehlo(text: str, filename: str = "<string>") -> HloModule:
    """The HLO of a StableHLO module in MLIR text, pretty or generic form.

    Raises HloParseError with file, line, column and a caret for text that does not read, and the
    errors of `to_hlo`. haloc's verifier is not run.
    """
    return to_hlo(parse_mlir(text, filename))
