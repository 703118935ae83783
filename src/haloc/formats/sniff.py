"""One door: tells what a program is written in by its content, and reads it.

Readers are imported when they are needed: together they take as long as the rest of haloc's
start, and a program is in one format.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from enum import Enum

from haloc.errors import HloParseError, InvalidArgumentError
from haloc.formats.hlo_text import parse_module
from haloc.ir.module import HloModule


class Format(Enum):
    """What a program is written in; the value is its name for messages."""

    HLO_TEXT = "HLO text"
    HLO_MODULE_PROTO = "HloModuleProto"
    HLO_PROTO = "HloProto"
    HLO_SNAPSHOT = "HloSnapshot"
    HLO_MODULE_WITH_CONFIG = "HloModuleProtoWithConfig"
    STABLEHLO_TEXT = "StableHLO text"
    STABLEHLO_BYTECODE = "StableHLO bytecode"
    JAX_EXPORT = "jax.export artifact"
    GZIP = "gzip"
    UNKNOWN = "data of an unknown format"


GZIP_LIMIT_BYTES = 1 << 32
"""How large a compressed program may become."""

_GZIP = b"\x1f\x8b"
_BYTECODE = b"ML\xefR"
_BYTE_ORDER_MARK = "\ufeff"
_SKIP = re.compile(r"(?:\s|//[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_MLIR = re.compile(
    r"[#!][\w.$-]+\s*=|(?:module|builtin\.module|func|func\.func|sdy\.mesh)(?=[\s@({])"
    r'|"builtin\.module"'
)
_HLO = re.compile(r"HloModule\b|ENTRY\b|%|ROOT\b")
_MLIR_INSIDE = re.compile(r"\b(?:stablehlo|func)\.\w+")
_PROTOS = {
    f.value: f
    for f in (
        Format.HLO_MODULE_PROTO,
        Format.HLO_PROTO,
        Format.HLO_SNAPSHOT,
        Format.HLO_MODULE_WITH_CONFIG,
    )
}


def detect_format(data: bytes | str) -> Format:
    """What `data` is written in. Text is HLO unless it begins as MLIR does, comments aside.

    A compressed program is GZIP; `decompress` gives what is inside.
    """
    if isinstance(data, str):
        return _detect_text(data)
    data = bytes(data)
    if data.startswith(_BYTECODE):
        return Format.STABLEHLO_BYTECODE
    if data.startswith(_GZIP):
        return Format.GZIP
    text = _decode(data)
    if text is not None and _begins_as_text(text):
        return _detect_text(text)
    binary = _detect_binary(data)
    if binary is not Format.UNKNOWN or text is None or "\0" in text:
        return binary
    return _detect_text(text)


def load_module(data: bytes | str, filename: str = "<string>") -> HloModule:
    """The module that `data` holds, in whichever format; it is not verified.

    Raises HloParseError (with a place) for what does not read, InvalidArgumentError for data that
    is in none of the formats, and for a jax.export artifact with symbolic sizes, which needs
    `read_exported(data).to_hlo("cpu", argument_shapes)`.
    """
    found = detect_format(data)
    if found is Format.GZIP:
        assert not isinstance(data, str)
        data = decompress(bytes(data))
        found = detect_format(data)
    if found is Format.HLO_TEXT or found is Format.STABLEHLO_TEXT:
        text = data if isinstance(data, str) else bytes(data).decode()
        text = text.removeprefix(_BYTE_ORDER_MARK)
        if not text.strip():
            raise InvalidArgumentError(f"the program is empty; expected {_wanted()}")
        if found is Format.HLO_TEXT:
            return parse_module(text, filename)
        # Import: start-up cost, see above.
        from haloc.formats.stablehlo import parse_stablehlo  # noqa: PLC0415

        return parse_stablehlo(text, filename)
    assert not isinstance(data, str)
    return _load_binary(bytes(data), found, filename)


def decompress(data: bytes) -> bytes:
    """What a gzip file holds. HloParseError when it is damaged or larger than the limit."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            inside = file.read(GZIP_LIMIT_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise HloParseError(f"gzip data that does not decompress: {error}") from None
    if len(inside) > GZIP_LIMIT_BYTES:
        raise HloParseError(f"gzip data of more than {GZIP_LIMIT_BYTES} bytes")
    return inside


def _load_binary(data: bytes, found: Format, filename: str) -> HloModule:
    # Imports: start-up cost, see above.
    if found is Format.STABLEHLO_BYTECODE:
        from haloc.formats.stablehlo.bytecode import parse_bytecode  # noqa: PLC0415
        from haloc.formats.stablehlo.convert import to_hlo  # noqa: PLC0415

        return to_hlo(parse_bytecode(data, filename))
    if found is Format.JAX_EXPORT:
        from haloc.formats.jax_export import read_exported  # noqa: PLC0415

        return read_exported(data, filename).to_hlo()
    if found.value in _PROTOS:
        from haloc.formats.hlo_proto.containers import parse_any_proto  # noqa: PLC0415

        return parse_any_proto(data)
    if data.startswith((b"HloModule", b"module")):
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise HloParseError(f"{filename}: byte {error.start} of the text is no UTF-8") from None
    beginning = data[:8].hex(" ") or "nothing"
    raise InvalidArgumentError(
        f"{filename}: {Format.UNKNOWN.value}, {len(data)} bytes beginning with {beginning}; "
        f"expected {_wanted()}"
    )


def _wanted() -> str:
    names = [f.value for f in Format if f not in (Format.UNKNOWN, Format.GZIP)]
    return ", ".join(names[:-1]) + f" or {names[-1]}"


def _detect_text(text: str) -> Format:
    skipped = _SKIP.match(text, 1 if text.startswith(_BYTE_ORDER_MARK) else 0)
    begin = skipped.end() if skipped else 0
    if _MLIR.match(text, begin):
        return Format.STABLEHLO_TEXT
    if _HLO.match(text, begin) or not _MLIR_INSIDE.search(text):
        return Format.HLO_TEXT
    return Format.STABLEHLO_TEXT


def _begins_as_text(text: str) -> bool:
    """Whether text begins with a word of one of the text formats."""
    skipped = _SKIP.match(text, 1 if text.startswith(_BYTE_ORDER_MARK) else 0)
    begin = skipped.end() if skipped else 0
    return bool(_MLIR.match(text, begin) or _HLO.match(text, begin))


def _detect_binary(data: bytes) -> Format:
    # Imports: start-up cost, see above.
    from haloc.formats.hlo_proto.containers import proto_kind  # noqa: PLC0415
    from haloc.formats.jax_export.artifact import is_artifact  # noqa: PLC0415

    if is_artifact(data):
        return Format.JAX_EXPORT
    return _PROTOS.get(proto_kind(data), Format.UNKNOWN)


def _decode(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
