"""Attribute values and their codecs: one codec serves every written form of an attribute.

A codec's `parse` reads the value after `key=` from a cursor and leaves the cursor behind it;
`format` writes the text that `parse` reads back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

from haloc.ir.module import HloComputation
from haloc.ir.shape import Shape
from haloc.ops.codec import (
    INTS,
    WORD,
    Codec,
    TextCursor,
    TokenCursor,
    commas,
    format_int_lists,
    int_lists,
    ints,
    parse_dims,
)
from haloc.ops.quoting import quote
from haloc.ops.replica_groups import Groups, ReplicaGroups
from haloc.ops.window_attrs import ConvDims, DimLabels, Padding, Slices, WindowAttr, WindowDim

__all__ = [
    "Alias",
    "Aliasing",
    "Bool",
    "Bools",
    "Codec",
    "Computation",
    "Computations",
    "ConvDims",
    "DimLabels",
    "Dims",
    "Float",
    "Groups",
    "Int",
    "Name",
    "OneDim",
    "OneShape",
    "Padding",
    "Pairs",
    "Raw",
    "ReplicaGroups",
    "Shapes",
    "Slices",
    "Text",
    "TextCursor",
    "TokenCursor",
    "WindowAttr",
    "WindowDim",
    "Words",
    "parse_dims",
]

_FLOAT = re.compile(r"-?(?:inf|nan|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")


@dataclass(frozen=True, slots=True)
class Int:
    """int: `index=0`."""

    def parse(self, cursor: TextCursor) -> int:
        return cursor.integer()

    def format(self, value: int) -> str:
        return str(value)


@dataclass(frozen=True, slots=True)
class Float:
    """float: `epsilon=0.001`."""

    def parse(self, cursor: TextCursor) -> float:
        found = cursor.match(_FLOAT)
        return float(found[0]) if found else cursor.expected("a number")

    def format(self, value: float) -> str:
        short = f"{value:.6g}"
        return short if float(short) == value else f"{value:.17g}"


@dataclass(frozen=True, slots=True)
class Bool:
    """bool: `is_stable=true`."""

    def parse(self, cursor: TextCursor) -> bool:
        found = cursor.match(WORD)
        if found and found[0] in ("true", "false"):
            return found[0] == "true"
        if found:
            cursor.fail(f"found {found[0]!r}, expected true or false", len(found[0]))
        cursor.expected("true or false")

    def format(self, value: bool) -> str:
        return "true" if value else "false"


@dataclass(frozen=True, slots=True)
class Name:
    """str, a bare word out of `allowed` (any, when empty): `direction=LT`, `kind=kLoop`."""

    allowed: tuple[str, ...] = ()

    def parse(self, cursor: TextCursor) -> str:
        found = cursor.match(WORD)
        if not found:
            return cursor.expected(" or ".join(self.allowed) or "a word")
        if self.allowed and found[0] not in self.allowed:
            near = get_close_matches(found[0].upper(), self.allowed, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            wanted = ", ".join(self.allowed)
            cursor.fail(f"found {found[0]!r}, expected one of {wanted}{hint}", len(found[0]))
        return found[0]

    def format(self, value: str) -> str:
        return value


@dataclass(frozen=True, slots=True)
class Text:
    """str, written as a quoted string: `custom_call_target="f"`."""

    def parse(self, cursor: TextCursor) -> str:
        return cursor.string()

    def format(self, value: str) -> str:
        return quote(value)


@dataclass(frozen=True, slots=True)
class Dims:
    """tuple of int: `dimensions={0,1}`."""

    def parse(self, cursor: TextCursor) -> tuple[int, ...]:
        return parse_dims(cursor)

    def format(self, value: tuple[int, ...]) -> str:
        return "{" + commas(value) + "}"


@dataclass(frozen=True, slots=True)
class OneDim:
    """int, written as a list of one: `dimensions={0}` of concatenate, sort, get-dimension-size."""

    def parse(self, cursor: TextCursor) -> int:
        found = cursor.match(INTS)
        dims = ints(found[1]) if found else ()
        if found and len(dims) != 1:
            cursor.fail(f"found {len(dims)} dimensions, expected one", len(found[0]))
        return dims[0] if found else cursor.expected("one dimension such as {0}")

    def format(self, value: int) -> str:
        return "{" + str(value) + "}"


@dataclass(frozen=True, slots=True)
class Computation:
    """HloComputation: `to_apply=add`."""

    def parse(self, cursor: TextCursor) -> HloComputation:
        return cursor.computation()

    def format(self, value: HloComputation) -> str:
        return value.name


@dataclass(frozen=True, slots=True)
class Computations:
    """tuple of HloComputation: `branch_computations={b0, b1}`."""

    def parse(self, cursor: TextCursor) -> tuple[HloComputation, ...]:
        cursor.expect("{")
        if cursor.accept("}"):
            return ()
        found = [cursor.computation()]
        while cursor.accept(","):
            found.append(cursor.computation())
        cursor.expect("}")
        return tuple(found)

    def format(self, value: tuple[HloComputation, ...]) -> str:
        return "{" + ", ".join(c.name for c in value) + "}"


@dataclass(frozen=True, slots=True)
class Pairs:
    """tuple of (int, int): `source_target_pairs={{0,1},{1,0}}`."""

    def parse(self, cursor: TextCursor) -> tuple[tuple[int, int], ...]:
        lists = int_lists(cursor)
        for pair in lists:
            if len(pair) != 2:
                cursor.fail(f"found {format_int_lists((pair,))}, expected pairs {{0,1}}", 1)
        return tuple((a, b) for a, b in lists)

    def format(self, value: tuple[tuple[int, int], ...]) -> str:
        return format_int_lists(value)


@dataclass(frozen=True, slots=True)
class Words:
    """tuple of bare words: `operand_precision={high,highest}`."""

    allowed: tuple[str, ...] = ()

    def parse(self, cursor: TextCursor) -> tuple[str, ...]:
        cursor.expect("{")
        if cursor.accept("}"):
            return ()
        one = Name(self.allowed)
        found = [one.parse(cursor)]
        while cursor.accept(","):
            found.append(one.parse(cursor))
        cursor.expect("}")
        return tuple(found)

    def format(self, value: tuple[str, ...]) -> str:
        return "{" + ",".join(value) + "}"


@dataclass(frozen=True, slots=True)
class OneShape:
    """Shape: `outfeed_shape=f32[4]{0}`."""

    def parse(self, cursor: TextCursor) -> Shape:
        return cursor.shape()

    def format(self, value: Shape) -> str:
        return str(value)


@dataclass(frozen=True, slots=True)
class Shapes:
    """tuple of Shape: `operand_layout_constraints={f32[4]{0}}`."""

    def parse(self, cursor: TextCursor) -> tuple[Shape, ...]:
        cursor.expect("{")
        if cursor.accept("}"):
            return ()
        found = [cursor.shape()]
        while cursor.accept(","):
            found.append(cursor.shape())
        cursor.expect("}")
        return tuple(found)

    def format(self, value: tuple[Shape, ...]) -> str:
        return "{" + ", ".join(map(str, value)) + "}"


@dataclass(frozen=True, slots=True)
class Aliasing:
    """tuple of (output index, operand number, operand index): `{{}: (0, {})}`."""

    def parse(self, cursor: TextCursor) -> tuple[Alias, ...]:
        cursor.expect("{")
        found: list[Alias] = []
        if cursor.accept("}"):
            return ()
        dims = Dims()
        while True:
            output = dims.parse(cursor)
            cursor.expect(":")
            cursor.expect("(")
            operand = cursor.integer()
            index: tuple[int, ...] = ()
            if cursor.accept(","):
                index = dims.parse(cursor)
            cursor.expect(")")
            found.append((output, operand, index))
            if not cursor.accept(","):
                cursor.expect("}")
                return tuple(found)

    def format(self, value: tuple[Alias, ...]) -> str:
        dims = Dims()
        entries = (f"{dims.format(o)}: ({n}, {dims.format(i)})" for o, n, i in value)
        return "{" + ", ".join(entries) + "}"


Alias = tuple[tuple[int, ...], int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Bools:
    """tuple of bool: `parameter_replication={true,false}`."""

    def parse(self, cursor: TextCursor) -> tuple[bool, ...]:
        return tuple(word == "true" for word in Words(("true", "false")).parse(cursor))

    def format(self, value: tuple[bool, ...]) -> str:
        return "{" + ",".join("true" if v else "false" for v in value) + "}"


@dataclass(frozen=True, slots=True)
class Raw:
    """str, the text of a brace- or bracket-balanced value kept as it stands."""

    def parse(self, cursor: TextCursor) -> str:
        return cursor.balanced()

    def format(self, value: str) -> str:
        return value
