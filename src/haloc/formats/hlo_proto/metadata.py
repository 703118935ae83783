"""OpMetadata, stack frames and original values: where instructions come from."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from haloc.errors import HloParseError, InvalidArgumentError
from haloc.formats.hlo_text.annotations import metadata_text, parse_metadata
from haloc.formats.hlo_text.cursor import Cursor
from haloc.formats.proto import Message, decode
from haloc.ir.shape import Shape
from haloc.ops.quoting import quote, unquote

_FIELDS = (
    "op_type",
    "op_name",
    "source_file",
    "source_line",
    "source_end_line",
    "source_column",
    "source_end_column",
    "profile_type",
    "size_of_generated_code_in_bytes",
    "size_of_memory_working_set_in_bytes",
    "deduplicated_name",
    "scheduling_name",
    "stack_frame_id",
)
"""Fields of OpMetadata that text has, in its order."""

_KNOWN = frozenset(_FIELDS)


@lru_cache(maxsize=20_000)
def metadata_from_bytes(data: bytes) -> tuple[dict[str, Any], Message]:
    """(the metadata of an instruction, the fields that it has no place for). Shared: not to be
    changed."""
    message = decode("OpMetadata", data)
    rest = {key: value for key, value in message.items() if key not in _KNOWN}
    return metadata_from_proto(message), rest


def metadata_from_proto(message: Message) -> dict[str, Any]:
    found = {key: message[key] for key in _FIELDS if key in message}
    if "profile_type" in found:
        found["profile_type"] = "{" + ",".join(map(str, found["profile_type"])) + "}"
    return found


def metadata_to_proto(metadata: dict[str, Any]) -> Message:
    """An OpMetadata; InvalidArgumentError for a field that it does not have."""
    for key in metadata:
        if key not in _KNOWN:
            raise InvalidArgumentError(f"metadata has no field {key!r} in protos")
    message = dict(metadata)
    if "profile_type" in message:
        text = message["profile_type"].strip("{} ")
        try:
            message["profile_type"] = [int(n) for n in text.split(",") if n.strip()]
        except ValueError:
            raise InvalidArgumentError(f"metadata has profile_type={{{text}}}") from None
    return message


def metadata_list_text(messages: list[Message]) -> str:
    """`{op_name="a"}`, or `{{...}, {...}}` for several."""
    texts = [metadata_text(metadata_from_proto(m)) for m in messages]
    return texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"


def metadata_list_to_proto(text: str) -> list[Message]:
    """The OpMetadata of a text made by `metadata_list_text`."""
    cursor = Cursor(text, "<metadata>")
    if not re.match(r"\{\s*\{", text):
        return [metadata_to_proto(parse_metadata(cursor))]
    cursor.expect("{")
    found = []
    while not cursor.accept("}"):
        found.append(metadata_to_proto(parse_metadata(cursor)))
        cursor.accept(",")
    return found


# --- Stack frames ------------------------------------------------------------------------------

_NAMES = (("FileNames", "file_names"), ("FunctionNames", "function_names"))
_NAME_LINE = re.compile(r'\d+\s+"(.*)"', re.DOTALL)
_FIELD = re.compile(r"(\w+)=(-?\d+)")
_LOCATION = ("file_name_id", "function_name_id", "line", "end_line", "column", "end_column")


def tables_from_proto(index: Message) -> dict[str, list[str]]:
    """The lines of the tables of text. Frames name their parent by a number one higher there."""
    tables = {
        title: [f"{i} {quote(name)}" for i, name in enumerate(index[key], 1)]
        for title, key in _NAMES
        if key in index
    }
    if "file_locations" in index:
        tables["FileLocations"] = [
            f"{i} {{{' '.join(f'{key}={place.get(key, 0)}' for key in _LOCATION)}}}"
            for i, place in enumerate(index["file_locations"], 1)
        ]
    if "stack_frames" in index:
        tables["StackFrames"] = [
            f"{i} {{file_location_id={frame.get('file_location_id', 0)} "
            f"parent_frame_id={frame.get('parent_frame_id', 0) + 1}}}"
            for i, frame in enumerate(index["stack_frames"], 1)
        ]
    return tables


def tables_to_proto(tables: dict[str, list[str]]) -> Message:
    """A StackFrameIndexProto. InvalidArgumentError for a line of another form."""
    index: Message = {}
    for title, key in _NAMES:
        names = [_NAME_LINE.fullmatch(line) for line in tables.get(title, ())]
        if None in names:
            raise InvalidArgumentError(f"{title}: found {tables[title][names.index(None)]!r}")
        index[key] = [unquote(n[1]) for n in names if n]
    index["file_locations"] = [_numbers(line) for line in tables.get("FileLocations", ())]
    index["stack_frames"] = frames = [_numbers(line) for line in tables.get("StackFrames", ())]
    for frame in frames:
        frame["parent_frame_id"] = frame.get("parent_frame_id", 1) - 1
    return index


def _numbers(line: str) -> dict[str, int]:
    return {key: int(number) for key, number in _FIELD.findall(line)}


# --- Original values ---------------------------------------------------------------------------


def origin_from_proto(message: Message, shape: Shape) -> str:
    """The text of `origin=`: `{{"x"}}`, `{({"y" {1}}, {})}`, shaped as the instruction is."""
    if message.get("is_synthetic_call"):
        return "{[synthetic_call]}"
    leaves = {tuple(e.get("shape_index", ())): e for e in message.get("elements", ())}
    if not leaves:
        return ""
    return "{" + _origin_text(leaves, shape, ()) + "}"


def _origin_text(leaves: dict[Any, Message], shape: Shape, index: tuple[int, ...]) -> str:
    if shape.is_tuple:
        members = enumerate(shape.elements)
        return "(" + ", ".join(_origin_text(leaves, s, (*index, i)) for i, s in members) + ")"
    array = leaves.get(index, {}).get("original_array")
    if array is None:
        return "{}"
    place = array.get("shape_index", ())
    suffix = " {" + ",".join(map(str, place)) + "}" if place else ""
    return "{" + quote(array.get("instruction_name", "")) + suffix + "}"


_ORIGIN = re.compile(
    r'\s*(?:(\()|(\))|(,)|\{\s*(?:"((?:[^"\\]|\\.)*)"\s*(?:\{([\d,\s]*)\})?\s*)?\})\s*'
)


def origin_to_proto(text: str) -> Message:
    """An OriginalValueProto. HloParseError for text of another form."""
    body = text.strip()[1:-1].strip()
    if body == "[synthetic_call]":
        return {"is_synthetic_call": True}
    elements: list[Message] = []
    index: list[int] = []
    pos = 0
    while pos < len(body):
        found = _ORIGIN.match(body, pos)
        if found is None:
            raise HloParseError(f"origin={text} is not understood")
        opened, closed, comma, name, place = found.groups()
        if opened:
            index.append(0)
        elif (closed or comma) and not index:
            raise HloParseError(f"origin={text} is not understood")
        elif closed:
            index.pop()
        elif comma:
            index[-1] += 1
        else:
            element: Message = {"shape_index": list(index)}
            if name is not None:
                at = [int(n) for n in (place or "").split(",") if n.strip()]
                element["original_array"] = {"instruction_name": unquote(name), "shape_index": at}
            elements.append(element)
        pos = found.end()
    return {"elements": elements}
