"""Strings in HLO text: C escapes, as XLA reads and writes them."""

from __future__ import annotations

import re

from haloc.errors import InvalidArgumentError

_SAFE = re.compile(r"[ !#-&(-\[\]-~]*")
_ESCAPE = re.compile(
    rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_ESCAPED = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_NAMED = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}


def quote(text: str) -> str:
    """A string literal of HLO text: C escapes, other bytes of its UTF-8 form in octal."""
    if _SAFE.fullmatch(text):
        return f'"{text}"'
    raw = text.encode("utf-8", "surrogateescape")
    named = _NAMED
    return (
        '"'
        + "".join(named.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in raw)
        + '"'
    )


def unquote(text: str) -> str:
    """The value of a string literal, given without its quotes. Bytes that are no UTF-8 are kept
    as surrogates, which `quote` writes back. InvalidArgumentError for an unknown escape."""
    if "\\" not in text:
        return text

    def value(found: re.Match[bytes]) -> bytes:
        octal, hexadecimal, short, long, letter = found.groups()
        if octal:
            return bytes([int(octal, 8) & 255])
        if hexadecimal:
            return bytes([int(hexadecimal, 16)])
        if short or long:
            return chr(int(short or long, 16)).encode("utf-8", "surrogatepass")
        character = letter.decode("latin-1")
        if character in "\"'\\?":
            return letter
        if character not in _ESCAPED:
            raise InvalidArgumentError(f"unknown escape \\{character} in a string")
        return bytes([_ESCAPED[character]])

    raw = _ESCAPE.sub(value, text.encode("utf-8", "surrogateescape"))
    return raw.decode("utf-8", "surrogateescape")
