"""Names inside one computation: what they stand for, and what to say when they do not."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

from haloc.formats.hlo_text.cursor import Cursor, did_you_mean
from haloc.ir.module import HloComputation, HloInstruction
from haloc.ir.shape import Shape


@dataclass(slots=True)
class Scope:
    """A computation being read: its instructions by their names in the text."""

    computation: HloComputation
    names: dict[str, HloInstruction] = field(default_factory=dict)
    parameters: dict[int, tuple[HloInstruction, int, int]] = field(default_factory=dict)
    root: HloInstruction | None = None
    start: int = 0
    is_fragment: bool = False


def note_parameter(cursor: Cursor, scope: Scope, instruction: HloInstruction, at: int) -> None:
    number = instruction.attrs["parameter_number"]
    if number in scope.parameters:
        other = scope.parameters[number][0]
        cursor.fail_at(
            f"parameter({number}) is already defined as {other.name!r}",
            at,
            at + len(str(number)),
        )
    scope.parameters[number] = (instruction, at, at + len(str(number)))


def implicit_parameter(cursor: Cursor, scope: Scope, name: str, shape: Shape) -> HloInstruction:
    number = len(scope.parameters)
    parameter = HloInstruction("parameter", shape, (), {"parameter_number": number}, name)
    scope.names[name] = scope.computation.add(parameter)
    scope.parameters[number] = (parameter, cursor.pos, cursor.pos)
    return parameter


def undefined(cursor: Cursor, scope: Scope, name: str, at: int) -> NoReturn:
    text = cursor.text
    end = text.find("}\n", at)
    later = re.compile(rf"%?{re.escape(name)}\s*=\s*[a-z(]").search(
        text, at, len(text) if end < 0 else end
    )
    if later:
        line = text.count("\n", 0, later.start()) + 1
        message = f"{name!r} is used before it is defined, in line {line}"
    else:
        hint = did_you_mean(name, list(scope.names))
        where = scope.computation.name
        message = f"{name!r} is not defined in computation {where!r}{hint}"
    cursor.fail_at(message, at, at + len(name))
