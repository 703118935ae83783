"""Where an opcode's attributes stand in HloInstructionProto, compiled from its row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from haloc.formats.hlo_text.annotations import COMMON_ATTRS
from haloc.formats.proto import Message
from haloc.ops.attrs import Codec
from haloc.ops.raw_attrs import Accuracy, Statistics
from haloc.ops.table import OPS, REQUIRED, Attr

_INDEX = re.compile(r"(.*)\[(\d+)\]")

COMMON = (
    Attr(
        "parameter_replication",
        COMMON_ATTRS["parameter_replication"],
        (),
        "parameter_replication.replicated_at_leaf_buffers",
    ),
    Attr("async_execution_thread", COMMON_ATTRS["async_execution_thread"], ""),
    Attr("result_accuracy", Accuracy(), ""),
    Attr("statistics", Statistics(), "", "statistics_viz"),
)
"""Attributes that XLA reads on instructions of several opcodes."""


@dataclass(frozen=True, slots=True)
class ProtoAttr:
    """One attribute's place. path: field names from the instruction inwards; index: the element of
    a repeated field; both empty for a codec that takes and gives several fields."""

    name: str
    codec: Codec
    default: Any
    path: tuple[str, ...]
    index: int | None
    is_needed: bool
    """Read even where the field is absent: the attribute has no default, or one that an absent
    field does not mean."""

    def find(self, instruction: Message) -> Any:
        """The field's value; None where it is absent."""
        if not self.path:
            return instruction
        found: Any = instruction
        for key in self.path:
            found = found.get(key)
            if found is None:
                return None
        if self.index is None:
            return found
        return found[self.index] if self.index < len(found) else None

    def put(self, instruction: Message, data: Any) -> None:
        """Write the field's value into the instruction."""
        if not self.path:
            instruction.update(data)
            return
        inner = instruction
        for key in self.path[:-1]:
            inner = inner.setdefault(key, {})
        if self.index is None:
            inner[self.path[-1]] = data
            return
        values = inner.setdefault(self.path[-1], [])
        values.extend([0] * (self.index + 1 - len(values)))
        values[self.index] = data


@dataclass(frozen=True, slots=True)
class ProtoRow:
    """The attributes of an opcode, and the fields of the instruction that they use."""

    attrs: tuple[ProtoAttr, ...]
    fields: frozenset[str]


@cache
def proto_row(opcode: str) -> ProtoRow:
    """The places of all attributes that instructions of a known opcode may have."""
    own = [a for a in OPS[opcode].attrs if a.name not in ("literal", "parameter_number")]
    names = {a.name for a in own}
    attrs = [_place(a) for a in (*own, *(a for a in COMMON if a.name not in names))]
    fields: set[str] = set()
    for attr in attrs:
        fields.update(attr.path[:1] or attr.codec.proto_fields)  # type: ignore[attr-defined]
    return ProtoRow(tuple(attrs), frozenset(fields))


def _place(attr: Attr) -> ProtoAttr:
    is_needed = attr.default is REQUIRED or attr.default is True
    if attr.proto == "*":
        return ProtoAttr(attr.name, attr.codec, attr.default, (), None, is_needed)
    text, index = attr.proto or attr.name, None
    if found := _INDEX.fullmatch(text):
        text, index = found[1], int(found[2])
    if text.endswith("."):
        text += attr.name
    path = tuple(text.split("."))
    return ProtoAttr(attr.name, attr.codec, attr.default, path, index, is_needed)
