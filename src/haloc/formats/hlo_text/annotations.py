"""What any instruction may carry: metadata, frontend attributes, backend config, sharding, ..."""

from __future__ import annotations

import re
from typing import Any

from haloc.errors import InvalidArgumentError
from haloc.formats.hlo_text.cursor import Cursor
from haloc.ir.sharding import HloSharding, parse_sharding
from haloc.ops.attrs import Bools, Codec, Raw, Text
from haloc.ops.quoting import quote

COMMON_ATTRS: dict[str, Codec] = {
    "parameter_replication": Bools(),
    "statistics": Raw(),
    "result_accuracy": Raw(),
    "async_execution_thread": Text(),
}
"""Attributes that XLA reads on instructions of several opcodes; kept in `attrs`."""

_KEY = re.compile(r"([A-Za-z_][\w.:-]*)\s*=\s*")
_SIMPLE = re.compile(r'\{(?:\s*\w+=(?:"[^"\\\n]*"|-?[\w.]+)\s*)*\}')
_SIMPLE_FIELD = re.compile(r'(\w+)=(?:"([^"\\\n]*)"|(-?[\w.]+))')
_INTEGER = re.compile(r"-?\d+(?![\w.])")
_JSON = re.compile(r'(?:[^"{}]|"(?:[^"\\\n]|\\.)*")*', re.DOTALL)

_BRACKETED_METADATA = frozenset({"profile_type"})
"""Metadata fields written in braces; any other text is a string."""

_metadata_by_text: dict[str, dict[str, Any]] = {}
_sharding_by_text: dict[str, HloSharding] = {}
_MEMO_LIMIT = 20_000


def parse_metadata(cursor: Cursor) -> dict[str, Any]:
    """`{op_type="t" op_name="n" source_file="f.py" source_line=3}`.

    Strings unquoted, integers as int, bracketed fields as text. Equal texts share one dict.
    """
    found = cursor.match(_SIMPLE)
    if found is None:
        return _metadata_slowly(cursor)
    metadata = _metadata_by_text.get(found[0])
    if metadata is None:
        if len(_metadata_by_text) >= _MEMO_LIMIT:
            _metadata_by_text.clear()
        fields = _SIMPLE_FIELD.findall(found[0])
        metadata = {key: text if not bare else _bare(bare) for key, text, bare in fields}
        _metadata_by_text[found[0]] = metadata
    return metadata


def _bare(word: str) -> Any:
    if word in ("true", "false"):
        return word == "true"
    return int(word) if _INTEGER.fullmatch(word) else word


def _metadata_slowly(cursor: Cursor) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    cursor.expect("{")
    while not cursor.accept("}"):
        key = cursor.match(_KEY)
        if key is None:
            cursor.expected("a metadata field or '}'")
        if cursor.peek('"'):
            metadata[key[1]] = cursor.string()
        elif key[1] in _BRACKETED_METADATA:
            metadata[key[1]] = cursor.group()
        else:
            word = cursor.match(re.compile(r"-?[\w.]+"))
            metadata[key[1]] = _bare(word[0]) if word else cursor.expected("a metadata value")
    return metadata


def metadata_text(metadata: dict[str, Any]) -> str:
    fields = []
    for key, value in metadata.items():
        if isinstance(value, bool):
            text = "true" if value else "false"
        elif isinstance(value, str) and key not in _BRACKETED_METADATA:
            text = quote(value)
        else:
            text = str(value)
        fields.append(f"{key}={text}")
    return "{" + " ".join(fields) + "}"


def parse_frontend_attributes(cursor: Cursor) -> dict[str, str]:
    """`{a="b",c={"json": 1}}`: values are strings, or the text of a JSON object."""
    attributes: dict[str, str] = {}
    cursor.expect("{")
    if cursor.accept("}"):
        return attributes
    while True:
        key = cursor.match(_KEY)
        if key is None:
            cursor.expected("a frontend attribute")
        attributes[key[1]] = cursor.group() if cursor.peek("{") else cursor.string()
        if not cursor.accept(","):
            cursor.expect("}")
            return attributes


def frontend_attributes_text(attributes: dict[str, str]) -> str:
    fields = (f"{key}={json_or_quoted(value)}" for key, value in sorted(attributes.items()))
    return "{" + ",".join(fields) + "}"


def parse_backend_config(cursor: Cursor) -> str:
    """A quoted string, or a JSON object as it stands."""
    if cursor.peek("{"):
        return cursor.group()
    if cursor.peek('"'):
        return cursor.string()
    cursor.expected("a quoted string or a JSON object in braces")


def json_or_quoted(text: str) -> str:
    """The text itself when it reads as one JSON object, else a string literal."""
    return text if _is_json_object(text) else quote(text)


def _is_json_object(text: str) -> bool:
    if not text.startswith("{"):
        return False
    depth, pos = 0, 0
    while pos < len(text):
        if text[pos] == "{":
            depth += 1
        elif text[pos] == "}":
            depth -= 1
            if depth == 0:
                return pos == len(text) - 1
        else:
            return False
        pos = _JSON.match(text, pos + 1).end()  # type: ignore[union-attr]
    return False


def parse_sharding_at(cursor: Cursor) -> HloSharding:
    start = cursor.skip()
    text = cursor.group()
    sharding = _sharding_by_text.get(text)
    if sharding is None:
        try:
            sharding = parse_sharding(text)
        except InvalidArgumentError as error:
            cursor.fail_at(error.message, start, cursor.pos)
        if len(_sharding_by_text) >= _MEMO_LIMIT:
            _sharding_by_text.clear()
        _sharding_by_text[text] = sharding
    return sharding
