"""Reads whatever a user hands to `compile`: HLO or StableHLO text, or a module already read."""

from __future__ import annotations

import re

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.formats.hlo_text import parse_module
from haloc.formats.stablehlo import parse_stablehlo
from haloc.ir.module import HloModule
from haloc.runtime.hlo_module import XlaHloModule

_MLIR_BYTECODE = b"ML\xefR"
_COMMENTS = re.compile(r"(?:\s|//[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_MLIR = re.compile(
    r'[#!]\w|(?:module|builtin\.module|func(?:\.func)?|sdy\.mesh)\b|"builtin\.module"'
)
_HLO = re.compile(r"HloModule\b|ENTRY\b|%|ROOT\b")


def read_computation(
    computation: str | bytes | HloModule | XlaHloModule, filename: str = "<string>"
) -> HloModule:
    """The module, the caller's to change. It is not verified yet.

    HloParseError for bad text, UnimplementedError naming the format for those haloc does not
    read yet, TypeError for other Python types.
    """
    if isinstance(computation, XlaHloModule):
        return computation.ir.clone()
    if isinstance(computation, HloModule):
        return computation.clone()
    if isinstance(computation, bytes | bytearray | memoryview):
        computation = _text_of(bytes(computation))
    if not isinstance(computation, str):
        raise TypeError(
            "a computation is HLO or StableHLO text (str or bytes) or an HloModule, not "
            f"{type(computation).__name__}"
        )
    start = computation.lstrip("\ufeff \t\r\n")
    if not start:
        raise InvalidArgumentError("the computation is empty; expected HLO or StableHLO text")
    if is_mlir(start):
        return parse_stablehlo(computation, filename)
    return parse_module(computation, filename)


def is_mlir(text: str) -> bool:
    """Whether text is MLIR rather than HLO, by its first word behind comments."""
    comments = _COMMENTS.match(text)
    begin = comments.end() if comments else 0
    if _MLIR.match(text, begin):
        return True
    return not _HLO.match(text, begin) and "stablehlo." in text


def _text_of(data: bytes) -> str:
    if data.startswith(_MLIR_BYTECODE):
        raise UnimplementedError(
            "the computation is StableHLO bytecode: haloc reads HLO text so far"
        )
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    # A serialized HloModuleProto begins with field 1, the name: 0x0A, length, name.
    if text is None or (data[:1] == b"\x0a" and b"\x00" in data) or "\x00" in text:
        found = "an HLO proto" if data[:1] == b"\x0a" else "binary data of an unknown format"
        raise UnimplementedError(f"the computation is {found}: haloc reads HLO text so far")
    return text
