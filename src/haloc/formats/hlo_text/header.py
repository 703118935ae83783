"""The `HloModule` line and the stack-frame tables."""

from __future__ import annotations

import re
from typing import Any

from haloc.formats.hlo_text.annotations import frontend_attributes_text, parse_frontend_attributes
from haloc.formats.hlo_text.cursor import Cursor
from haloc.formats.hlo_text.shapes import parse_shape_at
from haloc.ir.module import HloModule
from haloc.ir.shape import Shape, tuple_text
from haloc.ops.attrs import Bool, Bools, Codec, Dims, Int, Raw, parse_dims

_KEY = re.compile(r"([A-Za-z_]\w*)\s*=\s*")
_TABLE = re.compile(r"(FileNames|FunctionNames|FileLocations|StackFrames)\b")
_TABLE_LINE = re.compile(r'(\d+[ \t]+(?:"(?:[^"\\\n]|\\.)*"|\{[^{}]*\}))')
_KIND = re.compile(r"may-alias|must-alias")


class _EntryLayout:
    """(tuple of parameter shapes, result shape): `{(f32[4]{0})->f32[4]{0}}`."""

    def parse(self, cursor: Cursor) -> tuple[tuple[Shape, ...], Shape]:
        cursor.expect("{")
        cursor.expect("(")
        parameters: list[Shape] = []
        while not cursor.accept(")"):
            parameters.append(parse_shape_at(cursor))
            if not cursor.accept(","):
                cursor.expect(")")
                break
        cursor.expect("->")
        result = parse_shape_at(cursor)
        cursor.expect("}")
        return tuple(parameters), result

    def format(self, value: tuple[tuple[Shape, ...], Shape]) -> str:
        parameters, result = value
        return "{" + tuple_text([str(p) for p in parameters]) + f"->{result}" + "}"


class _InputOutputAlias:
    """tuple of (output index, parameter number, parameter index, kind):
    `{ {}: (0, {}, must-alias) }`."""

    def parse(self, cursor: Cursor) -> tuple[Any, ...]:
        cursor.expect("{")
        found: list[Any] = []
        while not cursor.accept("}"):
            output = parse_dims(cursor)
            cursor.expect(":")
            cursor.expect("(")
            number = cursor.integer()
            cursor.expect(",")
            index = parse_dims(cursor)
            kind = "may-alias"
            if cursor.accept(","):
                word = cursor.match(_KIND)
                kind = word[0] if word else cursor.expected("may-alias or must-alias")
            cursor.expect(")")
            found.append((output, number, index, kind))
            if not cursor.accept(","):
                cursor.expect("}")
                break
        return tuple(found)

    def format(self, value: tuple[Any, ...]) -> str:
        dims = Dims().format
        entries = (f"{dims(o)}: ({n}, {dims(i)}, {kind})" for o, n, i, kind in value)
        return "{ " + ", ".join(entries) + " }"


class _BufferDonor:
    """tuple of (parameter number, parameter index): `{ (0, {}) }`."""

    def parse(self, cursor: Cursor) -> tuple[Any, ...]:
        cursor.expect("{")
        found: list[Any] = []
        while not cursor.accept("}"):
            cursor.expect("(")
            number = cursor.integer()
            cursor.expect(",")
            found.append((number, parse_dims(cursor)))
            cursor.expect(")")
            if not cursor.accept(","):
                cursor.expect("}")
                break
        return tuple(found)

    def format(self, value: tuple[Any, ...]) -> str:
        entries = (f"({number}, {Dims().format(index)})" for number, index in value)
        return "{ " + ", ".join(entries) + " }"


class _FrontendAttributes:
    """dict of str: `{a="b"}`."""

    def parse(self, cursor: Cursor) -> dict[str, str]:
        return parse_frontend_attributes(cursor)

    def format(self, value: dict[str, str]) -> str:
        return frontend_attributes_text(value)


_HEADER: dict[str, Any] = {
    "is_scheduled": Bool(),
    "input_output_alias": _InputOutputAlias(),
    "buffer_donor": _BufferDonor(),
    "alias_passthrough_params": Bool(),
    "entry_computation_layout": _EntryLayout(),
    "allow_spmd_sharding_propagation_to_parameters": Bools(),
    "allow_spmd_sharding_propagation_to_output": Bools(),
    "replica_count": Int(),
    "num_partitions": Int(),
    "frontend_attributes": _FrontendAttributes(),
}
"""Header attributes with a form of their own, in printing order."""

_DEFAULTS = {
    "is_scheduled": False,
    "alias_passthrough_params": False,
    "replica_count": 1,
    "num_partitions": 1,
    "input_output_alias": (),
    "buffer_donor": (),
    "frontend_attributes": {},
}
_RAW: Codec = Raw()


def parse_header_attrs(cursor: Cursor, header: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """The `, key=value` list behind the module's name. Gives where each value stands."""
    places: dict[str, tuple[int, int]] = {}
    while cursor.accept(","):
        key = cursor.match(_KEY)
        if key is None:
            cursor.expected("a module attribute")
        if key[1] in header:
            cursor.fail_at(f"module attribute {key[1]!r} is given twice", key.start(), key.end(1))
        start = cursor.skip()
        header[key[1]] = _HEADER.get(key[1], _RAW).parse(cursor)
        places[key[1]] = (start, cursor.pos)
    return places


def parse_tables(cursor: Cursor, tables: dict[str, list[str]]) -> None:
    """FileNames, FunctionNames, FileLocations, StackFrames: each a list of numbered lines."""
    while title := cursor.match(_TABLE):
        lines: list[str] = []
        while line := cursor.match(_TABLE_LINE):
            lines.append(line[0])
            number = int(line[0].split()[0])
            if number != len(lines):
                cursor.fail_at(
                    f"{title[1]}: found line number {number}, expected {len(lines)}",
                    line.start(),
                    line.start() + len(str(number)),
                )
        tables[title[1]] = lines


def entry_layout(module: HloModule) -> tuple[tuple[Shape, ...], Shape]:
    """The entry's parameter and result shapes as the header says, or as the entry itself does."""
    stated = module.header.get("entry_computation_layout")
    if stated is not None:
        return stated
    return tuple(p.shape for p in module.entry.parameters), module.entry.root.shape


def header_text(module: HloModule, print_name: bool = True) -> str:
    """`HloModule m, is_scheduled=true, ..., entry_computation_layout={...}`."""
    header = module.header | {"entry_computation_layout": entry_layout(module)}
    parts = [f"HloModule {module.name if print_name else ''}"]
    for key in [*_HEADER, *(k for k in header if k not in _HEADER)]:
        if key in header and header[key] != _DEFAULTS.get(key):
            parts.append(f"{key}={_HEADER.get(key, _RAW).format(header[key])}")
    return ", ".join(parts)


def tables_text(module: HloModule) -> str:
    return "".join(
        f"\n{title}\n" + "".join(f"{line}\n" for line in lines)
        for title, lines in module.tables.items()
    )
