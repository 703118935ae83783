"""The IR section: regions, blocks and ops, as trees of `MlirOp`.

Values are numbered, not named. Entering a region reserves as many numbers as it defines values;
a region isolated from above starts at 0 again, any other continues after the enclosing ones, and
the numbers are free again when it ends.
"""

from __future__ import annotations

from typing import Any

from haloc.formats.stablehlo.bytecode import sdy, stablehlo_dialect
from haloc.formats.stablehlo.bytecode.builtin import read_location
from haloc.formats.stablehlo.bytecode.container import IR, read_section
from haloc.formats.stablehlo.bytecode.cursor import ByteCursor
from haloc.formats.stablehlo.bytecode.entries import ABSENT, Entries, describe
from haloc.formats.stablehlo.bytecode.vhlo_ops import (
    KIND_OF,
    OPTIONAL,
    PROPERTIES,
    stablehlo_name,
    to_stablehlo,
)
from haloc.formats.stablehlo.mlir import MlirBlock, MlirOp, MlirRegion, MlirValue

DEPTH_LIMIT = 64
"""How deep regions may nest."""

CAST = "builtin.unrealized_conversion_cast"
"""Stands around the sdy ops of a mixed artifact, between VHLO's types and StableHLO's."""

_PROPERTIES_OF = PROPERTIES | stablehlo_dialect.PROPERTIES | sdy.OPS

_ATTRIBUTES, _RESULTS, _OPERANDS, _SUCCESSORS, _REGIONS, _USE_LISTS, _PROPERTIES = (
    1 << i for i in range(7)
)


class RegionReader:
    """Reads ops; `values` are those in scope, by number, None where not yet defined."""

    __slots__ = ("depth", "entries", "next", "parent", "values", "version")

    def __init__(self, entries: Entries):
        self.entries = entries
        self.version = entries.container.version
        self.values: list[MlirValue | None] = []
        self.next = 0
        self.depth = 0
        self.parent = ""

    def block(self, cursor: ByteCursor) -> MlirBlock:
        number, has_arguments = cursor.flagged("the number of ops")
        if number > cursor.remaining:
            cursor.fail(f"{number} ops, but only {cursor.remaining} bytes follow")
        block = MlirBlock()
        if has_arguments:
            self.arguments(cursor, block)
        for _ in range(number):
            op = self.op(cursor)
            if op is not None:
                block.operations.append(op)
        return block

    def arguments(self, cursor: ByteCursor, block: MlirBlock) -> None:
        for _ in range(cursor.count("block arguments")):
            number, has_location = cursor.varint("a type"), True
            if self.version >= 4:
                number, has_location = number >> 1, bool(number & 1)
            value = MlirValue(self.entries.type(number, cursor))
            if has_location:
                value.location = read_location(cursor, self.entries)
            block.arguments.append(value)
            self.define(value, cursor)
        if self.version >= 3 and cursor.byte("whether use-list orders follow"):
            self.skip_use_lists(cursor, len(block.arguments))

    def define(self, value: MlirValue, cursor: ByteCursor) -> None:
        if self.next >= len(self.values):
            cursor.fail(f"more values than the {len(self.values)} announced for this region")
        self.values[self.next] = value
        self.next += 1

    def skip_use_lists(self, cursor: ByteCursor, values: int) -> None:
        """The order of uses matters to nobody here."""
        for _ in range(cursor.count("use-list orders") if values > 1 else 1):
            if values > 1:
                cursor.varint("a value")
            number, _ = cursor.flagged("the number of uses")
            for _ in range(min(number, cursor.remaining + 1)):
                cursor.varint("a use")

    def op(self, cursor: ByteCursor) -> MlirOp | None:
        """One op; None for a conversion, which this reader sees through."""
        entries = self.entries
        start = cursor.pos
        number = cursor.varint("an op")
        names = entries.container.op_names
        if number >= len(names):
            cursor.fail(f"op name {number}, but there are {len(names)}", start)
        name = names[number]
        mask = cursor.byte("an op's mask")
        op = MlirOp(name, location=read_location(cursor, entries))
        if mask & _ATTRIBUTES:
            op.attributes.update(entries.read_a(cursor, dict, "a dictionary of attributes"))
        if mask & _PROPERTIES:
            self.properties(cursor, op)
        types = entries.read_types(cursor) if mask & _RESULTS else ()
        if mask & _OPERANDS:
            values = self.values
            for _ in range(cursor.count("operands")):
                index = cursor.varint("an operand")
                operand = values[index] if index < len(values) else None
                if operand is None:
                    cursor.fail(f"value {index} of {name} is not defined here")
                op.operands.append(operand)
        if name == CAST:
            self.cast(cursor, op, types)
        else:
            self.rename(cursor, op, start)
            for type in types:
                value = MlirValue(type)
                op.results.append(value)
                self.define(value, cursor)
        if mask & _SUCCESSORS:
            cursor.fail(f"{op.name} has successor blocks; StableHLO has none", start)
        if mask & _USE_LISTS:
            self.skip_use_lists(cursor, len(types))
        if mask & _REGIONS:
            self.regions(cursor, op)
        return None if name == CAST else op

    def cast(self, cursor: ByteCursor, op: MlirOp, types: tuple[Any, ...]) -> None:
        if len(types) != len(op.operands):
            cursor.fail(f"{CAST} of {len(op.operands)} values to {len(types)}")
        for value in op.operands:
            self.define(value, cursor)

    # --- Attributes ------------------------------------------------------------------------------

    def properties(self, cursor: ByteCursor, op: MlirOp) -> None:
        start = cursor.pos
        number = cursor.varint("an op's properties")
        blobs = self.entries.container.properties
        if number >= len(blobs):
            cursor.fail(f"properties {number}, but there are {len(blobs)}", start)
        blob = blobs[number]
        blob.pos = 0
        names = _PROPERTIES_OF.get(op.name)
        if names is None:
            cursor.fail(f"properties of {op.name}, an op that haloc does not know", start)
        read, read_optional = self.entries.read_attribute, self.entries.read_optional_attribute
        for name in names:
            if name.endswith("?"):
                op.attributes[name[:-1]] = read_optional(blob)
            else:
                op.attributes[name] = read(blob)
        if blob.remaining:
            blob.expected(f"the end of the properties of {op.name}")

    def rename(self, cursor: ByteCursor, op: MlirOp, start: int) -> None:
        """Give an op StableHLO's name and attributes."""
        attributes = op.attributes
        for key in [k for k, value in attributes.items() if value is ABSENT]:
            del attributes[key]
        if not op.name.startswith("vhlo."):
            return
        properties = PROPERTIES.get(op.name)
        if properties is None:
            cursor.fail(f"{op.name} is not an op of VHLO 0.9 to 1.17", start)
        vhlo_name = op.name
        op.name = stablehlo_name(vhlo_name, self.parent == "func.func")
        for key in properties:
            value = attributes.get(key, ABSENT)
            if value is ABSENT:
                if key in OPTIONAL:
                    continue
                cursor.fail(f"{vhlo_name} lacks its attribute {key}", start)
            if not isinstance(value, KIND_OF[key]):
                cursor.fail(f"{vhlo_name} has {key} = {describe(value)}, of the wrong kind", start)
        try:
            to_stablehlo(op.name, attributes)
        except ValueError as error:
            cursor.fail(f"{op.name}: {error}", start)

    # --- Regions ---------------------------------------------------------------------------------

    def regions(self, cursor: ByteCursor, op: MlirOp) -> None:
        number, is_isolated = cursor.flagged("the number of regions")
        if number > cursor.remaining:
            cursor.fail(f"{number} regions, but only {cursor.remaining} bytes follow")
        if self.depth >= DEPTH_LIMIT:
            cursor.fail(f"regions nested more than {DEPTH_LIMIT} deep")
        if is_isolated and self.version >= 2:
            identifier, cursor = read_section(cursor)
            if identifier != IR:
                cursor.fail(f"section id {identifier}, expected {IR}, the op's regions", 0)
        outer_parent, self.parent = self.parent, op.name
        outer_values, outer_next = self.values, self.next
        if is_isolated:
            self.values = []
        self.depth += 1
        for _ in range(number):
            op.regions.append(self.region(cursor))
        self.depth -= 1
        self.values, self.next, self.parent = outer_values, outer_next, outer_parent

    def region(self, cursor: ByteCursor) -> MlirRegion:
        region = MlirRegion()
        blocks = cursor.count("blocks")
        if not blocks:
            return region
        if blocks > 1:
            cursor.fail(f"a region of {blocks} blocks; StableHLO's have one")
        values = cursor.count("values")
        start = self.next = len(self.values)
        self.values.extend([None] * values)
        region.blocks.append(self.block(cursor))
        if self.next != len(self.values):
            cursor.fail(f"{self.next - start} values in a region that announced {values}")
        del self.values[start:]
        return region
