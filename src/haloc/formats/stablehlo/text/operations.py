"""Operations in text: `%r = name ...`, generic or pretty, with regions and their values."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import NoReturn

from haloc.formats.stablehlo.mlir import (
    Attribute,
    Function,
    Location,
    MlirBlock,
    MlirOp,
    MlirRegion,
    MlirType,
    MlirValue,
    Tuple,
)
from haloc.formats.stablehlo.text.attributes import (
    AttributeCursor,
    parse_attribute,
    parse_dictionary,
    resolve_alias,
)
from haloc.formats.stablehlo.text.locations import parse_location
from haloc.formats.stablehlo.text.types import parse_function_type, parse_type

_RESULTS = re.compile(r"\s*(%[\w$.-]+(?:\s*:\s*\d+)?(?:\s*,\s*%[\w$.-]+(?:\s*:\s*\d+)?)*)\s*=\s*")
_RESULT = re.compile(r"%([\w$.-]+)(?:\s*:\s*(\d+))?")
_NAME = re.compile(r'\s*(?:"([A-Za-z_][\w$.-]*)"|([A-Za-z_][\w$.]*))')
_OPERAND = re.compile(r"\s*%([\w$.-]+)(?:#(\d+))?")
_LOC = re.compile(r"\s*loc\(#([\w$.-]+)\)")
_BLOCK = re.compile(r"\s*\^([\w$.-]+)\s*")
_ARGUMENT = re.compile(r"\s*%([\w$.-]+)\s*:\s*")

RESULT_LIMIT = 100_000


class OperationReader:
    """Reads ops at a cursor. values: what each name in scope stands for.

    pretty: readers of the forms of their own that ops have, by op name, from `forms`.
    """

    def __init__(self, cursor: AttributeCursor, forms: PrettyForms):
        self.cursor = cursor
        self.forms = forms
        self.values: dict[str, list[MlirValue]] = {}
        self.defined: list[str] = []

    # --- One operation ---------------------------------------------------------------------

    def operation(self, terminator: str = "func.return") -> MlirOp:
        """The op at the cursor. terminator: what the short name `return` stands for."""
        cursor = self.cursor
        text = cursor.text
        results = _RESULTS.match(text, cursor.pos)
        if results is not None:
            cursor.pos = results.end()
        found = _NAME.match(text, cursor.pos)
        if found is None:
            return cursor.expected("an operation")
        position = found.start(1) if found[1] else found.start(2)
        cursor.pos = found.end()
        if found[1]:
            op = self.generic(found[1], position)
        else:
            name = found[2]
            if "." not in name:
                name = terminator if name == "return" else _SHORT.get(name, name)
            op = self.forms.read(self, name, position)
        op.location = self.location()
        if results is not None:
            self.name_results(results, op)
        elif op.results and results is None:
            pass_through = len(op.results)
            assert pass_through  # results may go unnamed: nothing uses them
        return op

    def name_results(self, results: re.Match[str], op: MlirOp) -> None:
        """Put the op's results into scope under the names in front of `=`."""
        values, at = op.results, 0
        for one in _RESULT.finditer(results[1]):
            count = int(one[2]) if one[2] and len(one[2]) < 7 else (1 if not one[2] else 10**6)
            start = results.start(1) + one.start()
            group = values[at : at + count]
            if len(group) != count or count == 0:
                self._count(results, op)
            at += count
            self.define(one[1], group, start)
        if at != len(values):
            self._count(results, op)

    def _count(self, results: re.Match[str], op: MlirOp) -> NoReturn:
        named = sum(int(m[2] or 1) for m in _RESULT.finditer(results[1]))
        given = len(op.results)
        plural = "" if given == 1 else "s"
        self.cursor.fail_at(
            f"{op.name} has {given} result{plural}, but {named} are named",
            results.start(1),
            results.end(1),
        )

    def define(self, name: str, values: list[MlirValue], at: int) -> None:
        if name in self.values:
            self.cursor.fail_at(f"value %{name} is already defined", at, at + len(name) + 1)
        for value in values:
            value.name = name
        self.values[name] = values
        self.defined.append(name)

    def location(self) -> Location | None:
        """`loc(...)`, if it comes next."""
        cursor = self.cursor
        found = _LOC.match(cursor.text, cursor.pos)
        if found is not None:
            cursor.pos = found.end()
            key = "#" + found[1]
            if key in cursor.resolved:
                return cursor.resolved[key]  # type: ignore[return-value]
            return resolve_alias(cursor, found[1], found.start(1) - 1)  # type: ignore
        if cursor.accept_word("loc"):
            return parse_location(cursor, parse_attribute)
        return None

    # --- Operands --------------------------------------------------------------------------

    def operand(self) -> MlirValue:
        cursor = self.cursor
        found = _OPERAND.match(cursor.text, cursor.pos)
        if found is None:
            return cursor.expected("an operand such as %0")
        name, number = found.groups()
        cursor.pos = found.end()
        group = self.values.get(name)
        start = found.start(1) - 1
        if group is None:
            near = get_close_matches(name, list(self.values), 1)
            hint = f"; did you mean %{near[0]}?" if near else ""
            cursor.fail_at(f"value %{name} is not defined here{hint}", start, cursor.pos)
        if number is None:
            if len(group) != 1:
                message = f"%{name} stands for {len(group)} values: write %{name}#0 or another"
                cursor.fail_at(message, start, cursor.pos)
            return group[0]
        if int(number[:9]) >= len(group):
            message = f"%{name}#{number} does not exist: %{name} stands for {len(group)} values"
            cursor.fail_at(message, start, cursor.pos)
        return group[int(number)]

    def operands(self) -> list[MlirValue]:
        """`%a, %b`, as far as they go."""
        found: list[MlirValue] = []
        cursor = self.cursor
        if not cursor.peek("%"):
            return found
        while True:
            found.append(self.operand())
            back = cursor.pos
            if not cursor.accept(","):
                return found
            if not cursor.peek("%"):
                cursor.pos = back
                return found

    def operands_in_parentheses(self) -> list[MlirValue]:
        self.cursor.expect("(")
        found = self.operands()
        if not self.cursor.accept(")"):
            self.cursor.expected("',' or ')'" if found else "an operand such as %0, or ')'")
        return found

    # --- Types -----------------------------------------------------------------------------

    def function_type(self, name: str, operands: list[MlirValue]) -> list[MlirValue]:
        """`: (types) -> types`, checked against the operands; gives the results."""
        cursor = self.cursor
        cursor.expect(":")
        start = cursor.skip()
        if not cursor.peek("("):
            cursor.expected(f"the type of {name}, (operands) -> results")
        type_ = parse_function_type(cursor)
        self.check_operands(name, operands, list(type_.inputs), start)
        return [MlirValue(t) for t in type_.results]

    def check_operands(
        self, name: str, operands: list[MlirValue], types: list[MlirType], start: int
    ) -> None:
        if len(operands) != len(types):
            plural = "" if len(operands) == 1 else "s"
            message = f"{name} has {len(operands)} operand{plural}, but {len(types)} types"
            self.cursor.fail_at(message, start, self.cursor.pos)
        for number, (operand, type_) in enumerate(zip(operands, types)):
            if operand.type is not type_ and operand.type != type_:
                self.cursor.fail_at(
                    f"operand {number} of {name}, %{operand.name}, has type {operand.type}, "
                    f"but {type_} is written",
                    start,
                    self.cursor.pos,
                )

    def types(self) -> list[MlirType]:
        found = [parse_type(self.cursor)]
        while self.cursor.accept(","):
            found.append(parse_type(self.cursor))
        return found

    # --- Generic form ----------------------------------------------------------------------

    def generic(self, name: str, position: int) -> MlirOp:
        """`(operands) <{properties}> ({regions}) {attributes} : (types) -> types`."""
        cursor = self.cursor
        operands = self.operands_in_parentheses()
        if cursor.peek("["):
            cursor.fail("successor blocks: StableHLO has no branches between blocks")
        attributes: dict[str, Attribute] = {}
        if cursor.accept("<"):
            attributes = parse_dictionary(cursor)
            cursor.expect(">")
        regions: list[MlirRegion] = []
        if cursor.accept("("):
            isolated = name in ("func.func", "builtin.module")
            while True:
                regions.append(self.region(isolated))
                if not cursor.accept(","):
                    break
            cursor.expect(")")
        if cursor.peek("{"):
            at = cursor.pos
            for key, value in parse_dictionary(cursor).items():
                if key in attributes:
                    cursor.fail_at(f"attribute {key!r} is given twice", at, cursor.pos)
                attributes[key] = value
        results = self.function_type(name, operands)
        return MlirOp(name, operands, attributes, regions, results, None, position)

    # --- Regions ---------------------------------------------------------------------------

    def region(
        self,
        isolated: bool = False,
        arguments: list[MlirValue] | None = None,
        terminator: str = "stablehlo.return",
    ) -> MlirRegion:
        """`{ ops }`, or `{ ^bb0(%a: type): ops }`.

        isolated: names outside are not seen. arguments: of the block, named and in scope already
        inside `names_of`; None when the block has a header of its own, or no arguments.
        """
        cursor = self.cursor
        cursor.expect("{")
        outer = self.values, self.defined
        self.values = {} if isolated else self.values
        self.defined = []
        with cursor.nested("regions"):
            blocks = self._blocks(arguments, terminator)
        self.leave(outer)
        return MlirRegion(blocks)

    def leave(self, outer: tuple[dict[str, list[MlirValue]], list[str]]) -> None:
        """Forget the names defined since `outer` was current."""
        values, defined = outer
        if self.values is values:
            for name in self.defined:
                del values[name]
        self.values, self.defined = values, defined

    def _blocks(self, arguments: list[MlirValue] | None, terminator: str) -> list[MlirBlock]:
        cursor = self.cursor
        block = MlirBlock(list(arguments or ()))
        blocks: list[MlirBlock] = []
        for value in block.arguments:
            self.define(value.name, [value], cursor.pos)
        while not cursor.accept("}"):
            header = _BLOCK.match(cursor.text, cursor.pos)
            if header is not None:
                if blocks or block.operations or block.arguments:
                    message = "a second block: StableHLO's regions have one"
                    cursor.fail_at(message, header.start(1) - 1, header.end(1))
                cursor.pos = header.end()
                self._block_arguments(block)
                blocks.append(block)
                continue
            if cursor.skip() >= len(cursor.text):
                cursor.expected("an operation or '}'")
            block.operations.append(self.operation(terminator))
        if block.operations or block.arguments or blocks:
            return [block]
        return []

    def _block_arguments(self, block: MlirBlock) -> None:
        cursor = self.cursor
        if cursor.accept("("):
            while not cursor.accept(")"):
                block.arguments.append(self.argument())
                if not cursor.accept(","):
                    cursor.expect(")")
                    break
        cursor.expect(":")

    def argument(self) -> MlirValue:
        """`%name: type loc(...)`, in scope from here on."""
        cursor = self.cursor
        found = cursor.match(_ARGUMENT)
        if found is None:
            return cursor.expected("an argument such as %arg0: tensor<f32>")
        value = MlirValue(parse_type(cursor))
        value.location = self.location()
        self.define(found[1], [value], found.start(1) - 1)
        return value


class PrettyForms:
    """What reads ops that are not in generic form; `forms.py` has the real one."""

    def read(self, reader: OperationReader, name: str, position: int) -> MlirOp:
        raise NotImplementedError


def result_values(types: tuple[MlirType, ...] | list[MlirType]) -> list[MlirValue]:
    return [MlirValue(t) for t in types]


def members_of(type_: MlirType) -> tuple[MlirType, ...]:
    return type_.members if isinstance(type_, Tuple) else ()


def signature(op: MlirOp) -> Function:
    return Function(tuple(o.type for o in op.operands), tuple(r.type for r in op.results))


_SHORT = {"call": "func.call"}
"""Ops that may be written without their dialect, inside a func.func."""
