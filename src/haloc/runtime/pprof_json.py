"""pprof profiles as JSON and back, the way protocol buffers are written as JSON."""

from __future__ import annotations

import json
import re
from typing import Any

from haloc.errors import InvalidArgumentError
from haloc.formats.proto import Message, decode, encode
from haloc.formats.proto.messages import pprof  # noqa: F401  (defines the messages)
from haloc.formats.proto.table import MessageType, message_type


def pprof_profile_to_json(profile: bytes) -> str:
    """An uncompressed pprof `Profile` as JSON; HloParseError for other bytes."""
    return json.dumps(_to_json(decode("Profile", profile)), separators=(",", ":"))


def json_to_pprof_profile(text: str) -> bytes:
    """The `Profile` of its JSON; InvalidArgumentError for text that is none."""
    try:
        parsed = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidArgumentError(f"JSON parsing failed: {error}") from None
    return encode("Profile", _from_json(message_type("Profile"), parsed))


def _to_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {_camel(k): _to_json(v) for k, v in value.items() if v or not _is_list(v)}
    if _is_list(value):
        return [_to_json(v) for v in value]
    return str(value)  # 64-bit numbers are strings in JSON


def _from_json(owner: MessageType, value: Any) -> Message:
    if not isinstance(value, dict):
        raise InvalidArgumentError(f"JSON parsing failed: {value!r} is no {owner.name}")
    message: Message = {}
    for key, found in value.items():
        field = owner.by_name.get(_snake(key))
        if field is None or field.is_repeated is not _is_list(found):
            raise InvalidArgumentError(f"JSON parsing failed: {owner.name} has no such {key!r}")
        if field.message is not None:
            message[field.name] = [_from_json(field.message, v) for v in found]
        elif field.kind == "string":
            message[field.name] = found
        else:
            message[field.name] = [*map(_number, found)] if field.is_repeated else _number(found)
    return message


def _number(text: Any) -> int:
    try:
        return int(text)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"JSON parsing failed: {text!r} is no number") from None


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def _snake(name: str) -> str:
    return re.sub(r"([A-Z])", lambda found: "_" + found[1].lower(), name)
