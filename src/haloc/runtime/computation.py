"""Reads whatever a user hands to `compile`: HLO text, or a module that is already read."""

from __future__ import annotations

from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.formats.hlo_text import parse_module
from haloc.ir.module import HloModule
from haloc.runtime.hlo_module import XlaHloModule

_MLIR_BYTECODE = b"ML\xefR"
_MLIR_WORDS = ("module", "func.func", "func", "builtin.module", "#", "sdy.mesh")
_HLO_WORDS = ("HloModule", "ENTRY", "%", "ROOT", "//", "/*")


def read_computation(
    computation: str | bytes | HloModule | XlaHloModule, filename: str = "<string>"
) -> HloModule:
    """The module, the caller's to change. It is not verified yet.

    HloParseError for bad HLO text, UnimplementedError naming the format for those haloc does not
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
            "a computation is HLO text (str or bytes) or an HloModule, not "
            f"{type(computation).__name__}"
        )
    start = computation.lstrip("\ufeff \t\r\n")
    if not start:
        raise InvalidArgumentError("the computation is empty; expected HLO text")
    word = start.split(None, 1)[0]
    is_hlo = word.startswith(_HLO_WORDS)
    if not is_hlo and (word.startswith(_MLIR_WORDS) or "stablehlo." in start):
        raise UnimplementedError("the computation is StableHLO text: haloc reads HLO text so far")
    return parse_module(computation, filename)


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
