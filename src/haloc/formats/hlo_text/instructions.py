"""One instruction of HLO text: `ROOT name = shape opcode(operands), key=value, ...`.

Which attributes an opcode has, and how each is written, comes from its row in the op table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import haloc.ops  # noqa: F401  (fills OPS)
from haloc.errors import VerificationError
from haloc.formats.hlo_text.annotations import (
    COMMON_ATTRS,
    parse_backend_config,
    parse_frontend_attributes,
    parse_metadata,
    parse_sharding_at,
)
from haloc.formats.hlo_text.async_sugar import THREAD, split_sugar
from haloc.formats.hlo_text.cursor import NAME, Cursor, did_you_mean
from haloc.formats.hlo_text.literals import parse_literal
from haloc.formats.hlo_text.scope import Scope, implicit_parameter, note_parameter, undefined
from haloc.formats.hlo_text.shapes import ARRAY, intern_array, interned_array, parse_shape_at
from haloc.ir.dtype import TOKEN
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import Codec
from haloc.ops.table import OPS, REQUIRED, OpDef, Structure

_HEAD = re.compile(rf"\s*(ROOT\s+)?%?({NAME})\s*=\s*({ARRAY})\s*([a-z][a-z0-9-]*)\(")
_START = re.compile(rf"(ROOT\s+)?%?({NAME})\s*=\s*")
_OPCODE = re.compile(r"([A-Za-z][\w-]*)\s*\(")
_BUFFER = re.compile(r"b\(")
_PLAIN_OPERANDS = re.compile(r"([^()\[\]{}]*)\)")
_ARRAY_OPERAND = re.compile(ARRAY)
_OPERAND = re.compile(rf"%?({NAME})")
_ATTR = re.compile(r"\s*,\s*([A-Za-z_][\w-]*)\s*=\s*")
_PARAMETER_NUMBER = re.compile(r"(\d+)\s*\)")

_UNSPOKEN = ("literal", "parameter_number")
"""Attributes that stand between the parentheses, not behind a key."""

_ANNOTATIONS: dict[str, Callable[[Cursor], Any]] = {
    "sharding": parse_sharding_at,
    "metadata": parse_metadata,
    "frontend_attributes": parse_frontend_attributes,
    "backend_config": parse_backend_config,
    "origin": lambda cursor: cursor.group(),
}
"""Attributes kept in fields of the instruction."""


@dataclass(slots=True)
class _Op:
    """What the reader needs of an opcode: its row, and for async sugar the generic opcode."""

    row: OpDef
    codecs: dict[str, Codec]
    required: list[str]
    generic: str = ""


def _row_reader(row: OpDef, generic: str = "") -> _Op:
    codecs = {a.name: a.codec for a in row.attrs if a.name not in _UNSPOKEN}
    for name, codec in COMMON_ATTRS.items():
        if name not in codecs and _takes(row, name, generic):
            codecs[name] = codec
    starts = not generic or generic == "async-start"
    required = [
        a.name for a in row.attrs if a.default is REQUIRED and a.name not in _UNSPOKEN and starts
    ]
    return _Op(row, codecs, required, generic)


def _takes(row: OpDef, name: str, generic: str) -> bool:
    """Whether an attribute of several opcodes may stand on this one."""
    if name == THREAD:
        return bool(generic) or row.opcode.startswith("async-")
    if name == "result_accuracy":
        return len(row.operands) == 1 and row.is_elementwise
    return True


class InstructionReader:
    """Reads the instructions of one module.

    wrap: called for async sugar with (start instruction, opcode, attributes) to make its
    wrapped computation.
    """

    def __init__(
        self,
        cursor: Cursor,
        wrap: Callable[[HloInstruction, str, Shape, dict[str, Any]], None],
    ):
        self.cursor = cursor
        self.wrap = wrap
        self.readers: dict[str, _Op] = {}

    # --- One instruction -------------------------------------------------------------------

    def read(self, scope: Scope) -> None:
        """Read one instruction and add it to the scope's computation."""
        cursor = self.cursor
        begin = cursor.pos
        head = _HEAD.match(cursor.text, begin)
        if head is not None:
            root, name, shape_text, opcode = head.groups()
            shape = interned_array(shape_text)
            if shape is None:
                shape = intern_array(cursor, shape_text, head.start(3))
            cursor.pos = head.end()
            name_at, opcode_at = head.start(2), head.start(4)
        else:
            start = cursor.match(_START)
            if start is None:
                cursor.expected("an instruction (name = shape opcode(...)) or '}'")
            root, name = start.groups()
            name_at = start.start(2)
            shape, opcode, opcode_at = self._shape_and_opcode()
        if name in scope.names:
            first = scope.names[name]
            cursor.fail_at(
                f"instruction {name!r} is already defined in this computation as {first.opcode}",
                name_at,
                name_at + len(name),
            )
        instruction = self._rest(scope, name, shape, opcode, opcode_at)
        scope.names[name] = instruction
        if root:
            if scope.root is not None:
                cursor.fail_at(
                    f"computation {scope.computation.name!r} already has a ROOT, "
                    f"{scope.root.name!r}",
                    cursor.text.index("ROOT", begin),
                    cursor.text.index("ROOT", begin) + 4,
                )
            scope.root = instruction

    def _shape_and_opcode(self) -> tuple[Shape | None, str, int]:
        """`shape opcode(`, or `opcode(` when the shape is to be inferred."""
        cursor = self.cursor
        shape = None
        is_opcode = _OPCODE.match(cursor.text, cursor.skip())
        if is_opcode is None or _BUFFER.match(cursor.text, cursor.pos):
            shape = parse_shape_at(cursor)
        found = cursor.match(_OPCODE)
        if found is None:
            cursor.expected("an opcode and '('")
        return shape, found[1], found.start(1)

    def _rest(
        self, scope: Scope, name: str, shape: Shape | None, opcode: str, opcode_at: int
    ) -> HloInstruction:
        """Operands and attributes of an instruction, behind its opcode and parenthesis."""
        cursor = self.cursor
        op = self.readers.get(opcode) or self._reader(opcode, opcode_at)
        attrs: dict[str, Any] = {}
        operands: list[HloInstruction] = []
        if opcode == "parameter":
            number_at = cursor.skip()
            attrs["parameter_number"] = self._parameter_number()
        elif opcode == "constant":
            if shape is None:
                cursor.fail_at("a constant needs its shape", opcode_at, opcode_at + len(opcode))
            attrs["literal"] = parse_literal(cursor, shape)
            cursor.expect(")")
        else:
            operands = self._operands(scope)
        annotations = self._attributes(scope, opcode, op, attrs)
        self._check(op, operands, attrs, opcode_at)
        wrapped: dict[str, Any] = {}
        if op.generic:
            wrapped, attrs = attrs, {k: attrs.pop(k) for k in (THREAD,) if k in attrs}
        instruction = HloInstruction(op.generic or opcode, shape, operands, attrs)  # type: ignore[arg-type]
        if shape is None:
            instruction.shape = self._infer(op, instruction, opcode_at)
        if annotations:
            for key, value in annotations.items():
                setattr(instruction, key, value)
        scope.computation.add(instruction, name)
        if opcode == "parameter":
            note_parameter(cursor, scope, instruction, number_at)
        if op.generic == "async-start":
            self._wrap(instruction, opcode, opcode_at, wrapped)
        return instruction

    def _wrap(
        self, start: HloInstruction, opcode: str, opcode_at: int, attrs: dict[str, Any]
    ) -> None:
        members = start.shape.elements
        if len(members) < 2:
            self.cursor.fail_at(
                f"{opcode} has shape {start.shape.to_string(False)}, expected a tuple of "
                "(operand shapes), result shape and context",
                opcode_at,
                opcode_at + len(opcode),
            )
        self.wrap(start, split_sugar(opcode)[0], members[1], attrs)

    def _reader(self, opcode: str, opcode_at: int) -> _Op:
        if opcode in OPS:
            reader = _row_reader(OPS[opcode])
        else:
            base, generic = split_sugar(opcode)
            if base not in OPS:
                hint = did_you_mean(opcode, list(OPS))
                self.cursor.fail_at(
                    f"unknown opcode {opcode!r}{hint}", opcode_at, opcode_at + len(opcode)
                )
            reader = _row_reader(OPS[base], generic)
        self.readers[opcode] = reader
        return reader

    # --- Operands --------------------------------------------------------------------------

    def _parameter_number(self) -> int:
        found = self.cursor.match(_PARAMETER_NUMBER)
        if found is None:
            self.cursor.expected("a parameter number and ')'")
        return int(found[1])

    def _operands(self, scope: Scope) -> list[HloInstruction]:
        """The operands up to and with the closing parenthesis."""
        cursor = self.cursor
        plain = _PLAIN_OPERANDS.match(cursor.text, cursor.pos)
        if plain is not None:
            words = plain[1].replace("%", "").split(",")
            names = scope.names
            try:
                operands = [names[w.strip()] for w in words]
            except KeyError:
                if len(words) > 1 or words[0].strip():
                    return self._operands_one_by_one(scope)
                operands = []
            cursor.pos = plain.end()
            return operands
        return self._operands_one_by_one(scope)

    def _operands_one_by_one(self, scope: Scope) -> list[HloInstruction]:
        cursor = self.cursor
        operands: list[HloInstruction] = []
        if cursor.accept(")"):
            return operands
        while True:
            operands.append(self._operand(scope))
            if cursor.accept(")"):
                return operands
            if not cursor.accept(","):
                cursor.expected("',' or ')'")

    def _operand(self, scope: Scope) -> HloInstruction:
        cursor = self.cursor
        start = cursor.skip()
        stated = None
        text = cursor.text
        if (
            text.startswith("(", start)
            or _ARRAY_OPERAND.match(text, start)
            or (_BUFFER.match(text, start))
        ):
            stated = parse_shape_at(cursor)
        found = cursor.match(_OPERAND)
        if found is None:
            cursor.expected("an operand")
        name, at = found[1], found.start(1)
        if cursor.accept("("):
            with cursor.nested("operand instructions"):
                return self._rest(scope, f"{name}.anon", stated, name, at)
        operand = scope.names.get(name)
        if operand is None:
            if stated is None or not scope.is_fragment:
                undefined(cursor, scope, name, at)
            operand = implicit_parameter(cursor, scope, name, stated)
        if stated is not None and not stated.compatible(operand.shape):
            cursor.fail_at(
                f"operand {name!r} is stated as {stated.to_string(False)}, but it is defined as "
                f"{operand.shape.to_string(False)}",
                start,
                cursor.pos,
            )
        return operand

    # --- Attributes ------------------------------------------------------------------------

    def _attributes(
        self, scope: Scope, opcode: str, op: _Op, attrs: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Fill `attrs`; gives the annotations, by instruction field."""
        cursor, codecs = self.cursor, op.codecs
        annotations: dict[str, Any] | None = None
        while found := _ATTR.match(cursor.text, cursor.pos):
            key = found[1]
            cursor.pos = found.end()
            codec = codecs.get(key)
            if codec is not None:
                if key in attrs:
                    self._twice(key, found.start(1))
                attrs[key] = codec.parse(cursor)  # type: ignore[arg-type]
                continue
            if annotations is None:
                annotations = {}
            field_name = key.replace("-", "_")
            if field_name in annotations:
                self._twice(key, found.start(1))
            if key == "control-predecessors":
                annotations[field_name] = self._predecessors(scope)
            elif key in _ANNOTATIONS:
                annotations[field_name] = _ANNOTATIONS[key](cursor)
            else:
                self._unknown_attribute(opcode, op, key, found.start(1))
        return annotations

    def _twice(self, key: str, at: int) -> NoReturn:
        self.cursor.fail_at(f"attribute {key!r} is given twice", at, at + len(key))

    def _unknown_attribute(self, opcode: str, op: _Op, key: str, at: int) -> NoReturn:
        known = [*op.codecs, *_ANNOTATIONS, "control-predecessors"]
        own = [a.name for a in op.row.attrs if a.name not in _UNSPOKEN]
        hint = did_you_mean(key, known)
        if not hint:
            hint = f"; it has {', '.join(own)}" if own else "; it has none of its own"
        self.cursor.fail_at(f"{opcode} has no attribute {key!r}{hint}", at, at + len(key))

    def _predecessors(self, scope: Scope) -> tuple[HloInstruction, ...]:
        cursor = self.cursor
        cursor.expect("{")
        found: list[HloInstruction] = []
        while not cursor.accept("}"):
            word = cursor.match(_OPERAND)
            if word is None:
                cursor.expected("an instruction's name")
            before = scope.names.get(word[1])
            if before is None:
                undefined(cursor, scope, word[1], word.start(1))
            found.append(before)
            if not cursor.accept(","):
                cursor.expect("}")
                break
        return tuple(found)

    # --- Checks ----------------------------------------------------------------------------

    def _check(
        self, op: _Op, operands: list[HloInstruction], attrs: dict[str, Any], at: int
    ) -> None:
        """Every required attribute is there, and as many operands as the op takes."""
        row = op.row
        end = at + len(row.opcode)
        for name in op.required:
            if name not in attrs:
                self.cursor.fail_at(f"{row.opcode} needs the attribute {name!r}", at, end)
        wanted = 1 if op.generic in ("async-update", "async-done") else len(row.operands)
        variadic = row.is_variadic and op.generic in ("", "async-start")
        if len(operands) != wanted and not variadic:
            plural = "" if wanted == 1 else "s"
            names = f" ({', '.join(row.operands)})" if row.operands and not op.generic else ""
            self.cursor.fail_at(
                f"{row.opcode} takes {wanted} operand{plural}{names}, given {len(operands)}",
                at,
                end,
            )

    def _infer(self, op: _Op, instruction: HloInstruction, at: int) -> Shape:
        """The shape of an instruction written without one, where the op decides it."""
        # An op that leaves its result open looks at the shape it is given, and gives it back or
        # refuses it. A contraction leaves only its element type open: XLA takes the operands'.
        is_contraction = op.row.lower is Structure.CONTRACTION and instruction.operands
        unknown = Shape(instruction.operands[0].shape.dtype if is_contraction else TOKEN)
        instruction.shape = shape = unknown
        reason = ""
        if not op.generic and all(c.root for c in instruction.called_computations):
            try:
                shape = op.row.infer(instruction)
            except VerificationError as error:
                reason = "" if "token" in error.message else f" ({error.message})"
        if shape is unknown:
            self.cursor.fail_at(
                f"the shape of {instruction.opcode!r} cannot be inferred{reason}: "
                "write it before the opcode",
                at,
                at + len(instruction.opcode),
            )
        return shape
