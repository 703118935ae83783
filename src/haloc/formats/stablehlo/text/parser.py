"""MLIR text of StableHLO to `MlirModule`: the module, its functions and meshes."""

from __future__ import annotations

import re

from haloc.formats.stablehlo.mlir import (
    Attribute,
    Function,
    MlirModule,
    MlirOp,
    MlirType,
    MlirValue,
)
from haloc.formats.stablehlo.text import forms_contraction, forms_regions, forms_sdy
from haloc.formats.stablehlo.text.attributes import AttributeCursor, parse_dictionary, resolve_alias
from haloc.formats.stablehlo.text.forms import Forms
from haloc.formats.stablehlo.text.operations import OperationReader
from haloc.formats.stablehlo.text.types import parse_type, resolve_type_alias

_ALIAS = re.compile(r"\s*([#!])([A-Za-z_][\w$.-]*|\d+)\s*=")
_OP = re.compile(r'\s*("?)([A-Za-z_][\w.]*)\1')
_RESOURCES = re.compile(r"\{-#(.*?)#-\}", re.DOTALL)
_RESOURCE = re.compile(r'([\w$.-]+|"[^"]*")\s*:\s*"0x([0-9A-Fa-f]*)"')
_ARGUMENT = re.compile(r"\s*%([\w$.-]+)\s*:\s*")
_HUGE_NUMBER = re.compile(r"\d{4000}")

_FORMS = (forms_contraction, forms_regions, forms_sdy)  # imported for the forms they add


def parse_mlir(text: str, filename: str = "<string>") -> MlirModule:
    """The module written in `text`: `module @name {...}`, or functions without a module around.

    Reads pretty and generic form. Raises HloParseError with file, line, column and a caret.
    """
    cursor = AttributeCursor(text, filename)
    try:
        return _Parser(cursor).parse()
    except ValueError:
        # Python converts no integer of more than some 4,000 digits.
        if huge := _HUGE_NUMBER.search(text):
            cursor.fail_at("this number has too many digits", huge.start(), huge.start() + 1)
        raise
    except RecursionError:
        cursor.fail("this is nested too deep")


class _Parser:
    def __init__(self, cursor: AttributeCursor):
        self.cursor = cursor
        self.reader = OperationReader(cursor, Forms())
        self.module = MlirModule("", {}, [], None, cursor.source, cursor.filename)

    def parse(self) -> MlirModule:
        cursor = self.cursor
        self.resources()
        self.aliases()
        self.skip_aliases()
        found = _OP.match(cursor.text, cursor.pos)
        if found is not None and found[2] in ("module", "builtin.module"):
            cursor.pos = found.end()
            if found[1]:
                self.generic_module(found.start(2))
            else:
                self.pretty_module()
            self.skip_aliases()
            if cursor.skip() < len(cursor.text):
                cursor.expected("the end of the text behind the module")
        else:
            self.items(is_closed=False)
        if not self.module.operations:
            cursor.pos = len(cursor.text)
            cursor.fail("the module holds no function, expected func.func")
        self.check_symbols()
        return self.module

    def resources(self) -> None:
        """Blobs in the `{-# ... #-}` block at the end of the text."""
        cursor = self.cursor
        found = _RESOURCES.search(cursor.text)
        if found is None:
            return
        for name, digits in _RESOURCE.findall(found[1]):
            if len(digits) % 2 == 0:
                cursor.resources[name.strip('"')] = bytes.fromhex(digits)
        blank = " " * (found.end() - found.start())
        cursor.text = cursor.text[: found.start()] + blank + cursor.text[found.end() :]

    def aliases(self) -> None:
        """Read all aliases, in the order they are written: a call stack of locations, where each
        names the next, is then never walked down in one go."""
        cursor = self.cursor
        for name, start in cursor.type_aliases.items():
            resolve_type_alias(cursor, name, start)
        for name, start in cursor.attribute_aliases.items():
            resolve_alias(cursor, name, start)

    def skip_aliases(self) -> None:
        """Step over definitions of aliases, which are read."""
        cursor = self.cursor
        while found := _ALIAS.match(cursor.text, cursor.pos):
            end = cursor.alias_ends.get(found[1] + found[2])
            if end is None:
                cursor.fail_at("an alias stands at the start of a line", *found.span(2))
            cursor.pos = end

    # --- Modules ---------------------------------------------------------------------------

    def pretty_module(self) -> None:
        cursor = self.cursor
        if cursor.peek("@"):
            self.module.name = cursor.symbol()
        if cursor.accept_word("attributes"):
            self.module.attributes = parse_dictionary(cursor)
        cursor.expect("{")
        self.items(is_closed=True)
        self.module.location = self.reader.location()

    def items(self, is_closed: bool) -> None:
        """Functions and meshes, up to `}` or the end of the text."""
        cursor = self.cursor
        while True:
            self.skip_aliases()
            if is_closed and cursor.accept("}"):
                return
            if cursor.skip() >= len(cursor.text):
                if is_closed:
                    cursor.expected("func.func or '}'")
                return
            found = _OP.match(cursor.text, cursor.pos)
            if found is None:
                cursor.expected("func.func")
            name = found[2]
            if name in ("func.func", "func", "builtin.func") and not found[1]:
                cursor.pos = found.end()
                op = self.function(found.start(2))
            elif name in ("sdy.mesh", "func.func"):
                op = self.reader.operation()
            elif name in ("module", "builtin.module"):
                cursor.fail_at("a module inside a module", found.start(), found.end())
            else:
                cursor.expected("func.func")
            self.module.operations.append(op)

    def generic_module(self, position: int) -> None:
        op = self.reader.generic("builtin.module", position)
        self.module.location = self.reader.location()
        name = op.attributes.pop("sym_name", "")
        self.module.name = name if isinstance(name, str) else ""
        op.attributes.pop("sym_visibility", None)
        self.module.attributes = op.attributes
        blocks = op.regions[0].blocks if op.regions else []
        self.module.operations = blocks[0].operations if blocks else []

    def check_symbols(self) -> None:
        seen: set[object] = set()
        for op in self.module.operations:
            name = op.attributes.get("sym_name")
            if not isinstance(name, str) or op.name not in ("func.func", "sdy.mesh"):
                message = f"{op.name} cannot stand in a module, expected func.func with sym_name"
                self.cursor.fail_at(message, op.position, op.position + len(op.name))
            if name in seen:
                message = f"symbol @{name} is already defined"
                self.cursor.fail_at(message, op.position, op.position + len(op.name))
            seen.add(name)

    # --- Functions -------------------------------------------------------------------------

    def function(self, position: int) -> MlirOp:
        """`func.func public @main(%a: t {attrs} loc(..)) -> (t {attrs}) attributes {..} {..}`."""
        cursor, reader = self.cursor, self.reader
        attributes: dict[str, Attribute] = {}
        for visibility in ("public", "private", "nested"):
            if cursor.accept_word(visibility):
                attributes["sym_visibility"] = visibility
        attributes["sym_name"] = cursor.symbol()
        outer = reader.values, reader.defined
        reader.values, reader.defined = {}, []
        arguments, arg_attrs = self.arguments()
        results, res_attrs = self.results()
        if any(arg_attrs):
            attributes["arg_attrs"] = tuple(arg_attrs)
        if any(res_attrs):
            attributes["res_attrs"] = tuple(res_attrs)
        types = tuple(a.type for a in arguments)
        attributes["function_type"] = Function(types, tuple(results))
        if cursor.accept_word("attributes"):
            attributes |= parse_dictionary(cursor)
        op = MlirOp("func.func", [], attributes, [], [], None, position)
        if cursor.peek("{"):
            at = cursor.pos
            region = reader.region(terminator="func.return")
            if not region.blocks:
                cursor.fail_at("the function's body is empty, expected return", at, at + 1)
            block = region.blocks[0]
            if not block.arguments:
                block.arguments = arguments
            op.regions = [region]
        reader.leave(outer)
        op.location = reader.location()
        return op

    def arguments(self) -> tuple[list[MlirValue], list[dict[str, Attribute]]]:
        cursor, reader = self.cursor, self.reader
        cursor.expect("(")
        values: list[MlirValue] = []
        attributes: list[dict[str, Attribute]] = []
        while not cursor.accept(")"):
            found = _ARGUMENT.match(cursor.text, cursor.pos)
            if found is not None:
                cursor.pos = found.end()
            elif cursor.peek("%") or (values and values[0].name):
                cursor.expected("an argument such as %arg0: tensor<f32>")
            # A function that is only declared has types without names.
            value = MlirValue(parse_type(cursor))
            attributes.append(parse_dictionary(cursor) if cursor.peek("{") else {})
            value.location = reader.location()
            if found is not None:
                reader.define(found[1], [value], found.start(1) - 1)
            values.append(value)
            if not cursor.accept(","):
                if not cursor.accept(")"):
                    cursor.expected("',' or ')'")
                break
        return values, attributes

    def results(self) -> tuple[list[MlirType], list[dict[str, Attribute]]]:
        cursor = self.cursor
        if not cursor.accept("->"):
            return [], []
        if not cursor.accept("("):
            type_ = parse_type(cursor)
            return [type_], [{}]
        types: list[MlirType] = []
        attributes: list[dict[str, Attribute]] = []
        while not cursor.accept(")"):
            types.append(parse_type(cursor))
            attributes.append(parse_dictionary(cursor) if cursor.peek("{") else {})
            if not cursor.accept(","):
                if not cursor.accept(")"):
                    cursor.expected("',' or ')'")
                break
        return types, attributes
