"""HLO text to `HloModule`: modules, computations, and what must hold between them."""

from __future__ import annotations

import re
from typing import Any

from haloc.formats.hlo_text.async_sugar import THREAD, fill_wrapped
from haloc.formats.hlo_text.cursor import NAME, Cursor, did_you_mean
from haloc.formats.hlo_text.header import parse_header_attrs, parse_tables
from haloc.formats.hlo_text.instructions import InstructionReader
from haloc.formats.hlo_text.scope import Scope
from haloc.formats.hlo_text.shapes import parse_shape_at
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape

_HUGE_NUMBER = re.compile(r"\d{4000}")
_MODULE = re.compile(r"HloModule\b\s*")
_MODULE_NAME = re.compile(r"%?([A-Za-z_][A-Za-z0-9_.-]*)")
_COMPUTATION = re.compile(rf"(ENTRY\s+)?%?({NAME})\s*(?=[({{])")
_BARE = re.compile(rf"(?:ROOT\s+)?%?({NAME})\s*=")
_PARAMETER = re.compile(rf"%?({NAME})\s*:\s*")
_NAME = re.compile(rf"%?({NAME})")
_THREAD = re.compile(r"\s*,\s*execution_thread\s*=\s*")


def parse_module(text: str, filename: str = "<string>") -> HloModule:
    """The module written in HLO text: a whole module, computations, or a list of instructions.

    Without `ENTRY` the last computation is the entry. A bare list of instructions becomes the
    entry `main` of a module `fragment`; there, an undefined operand written with its shape
    becomes a parameter. Instruction names are made unique in the module. Raises HloParseError
    with file, line, column and a caret; haloc's verifier is not run.
    """
    parser = _ModuleParser(text, filename)
    try:
        return parser.parse()
    except ValueError:
        # Python converts no integer of more than some 4,000 digits.
        if huge := _HUGE_NUMBER.search(parser.cursor.text):
            parser.cursor.fail_at("this number has too many digits", huge.start(), huge.start() + 1)
        raise


class _ModuleCursor(Cursor):
    """A cursor that also reads what only the module knows: shapes and computations."""

    __slots__ = ("parser",)

    parser: _ModuleParser

    def shape(self) -> Shape:
        return parse_shape_at(self)

    def computation(self) -> HloComputation:
        found = self.match(_NAME)
        if found is None:
            self.expected("the name of a computation")
        return self.parser.refer(found[1], found.start(1))


class _ModuleParser:
    def __init__(self, text: str, filename: str):
        self.cursor = _ModuleCursor(text, filename)
        self.cursor.parser = self
        self.module = HloModule("module")
        self.reader = InstructionReader(self.cursor, self.wrap)
        self.known: dict[str, HloComputation] = {}
        self.defined: dict[str, HloComputation] = {}
        self.calls: list[tuple[HloComputation, HloComputation, int, int]] = []
        self.current: HloComputation | None = None
        self.wrapped: list[tuple[HloComputation, HloInstruction, str, Shape, dict[str, Any]]] = []

    def parse(self) -> HloModule:
        cursor, module = self.cursor, self.module
        places: dict[str, tuple[int, int]] = {}
        has_header = cursor.match(_MODULE) is not None
        if has_header:
            name = cursor.match(_MODULE_NAME)
            module.name = name[1] if name else cursor.expected("the module's name")
            places = parse_header_attrs(cursor, module.header)
            parse_tables(cursor, module.tables)
        if _BARE.match(cursor.text, cursor.skip()):
            self.fragment()
        else:
            while cursor.skip() < len(cursor.text):
                self.computation()
        if not self.defined:
            cursor.expected("a computation" if has_header else "HloModule, ENTRY or an instruction")
        if module.entry is None:
            module.entry = list(self.defined.values())[-1]
        if not has_header and module.name == "module":
            module.name = f"module_{module.entry.name}"
        self.finish(places)
        return module

    # --- Computations ----------------------------------------------------------------------

    def refer(self, name: str, at: int) -> HloComputation:
        """The computation called `name` in the text, defined already or not."""
        computation = self.known.get(name)
        if computation is None:
            computation = self.known[name] = self.module.add_computation(name)
        if self.current is not None:
            self.calls.append((self.current, computation, at, at + len(name)))
        return computation

    def computation(self) -> None:
        cursor = self.cursor
        head = cursor.match(_COMPUTATION)
        if head is None:
            cursor.expected("a computation: [ENTRY] name [(parameters) -> shape] {")
        is_entry, name = head.groups()
        if name in self.defined:
            cursor.fail_at(f"computation {name!r} is already defined", head.start(2), head.end(2))
        computation = self.known.get(name)
        if computation is None:
            computation = self.known[name] = self.module.add_computation(name)
        if is_entry:
            if self.module.entry is not None:
                cursor.fail_at(
                    f"the module already has an ENTRY, {self.module.entry.name!r}",
                    head.start(1),
                    head.start(1) + 5,
                )
            self.module.entry = computation
        self.defined[name] = self.current = computation
        scope = Scope(computation, start=head.start(2))
        signature_at = cursor.skip()
        signature = self.signature() if cursor.peek("(") else None
        signature_end = cursor.pos
        open_at = cursor.skip()
        cursor.expect("{")
        while not cursor.accept("}"):
            if cursor.pos >= len(cursor.text):
                cursor.fail_at(
                    f"the body of computation {name!r} is not closed, expected '}}'",
                    open_at,
                    open_at + 1,
                )
            self.reader.read(scope)
        self.close(scope)
        if signature is not None:
            self.check_signature(scope, signature, signature_at, signature_end)
        if cursor.match(_THREAD):
            computation.execution_thread = cursor.string()
        self.current = None

    def signature(self) -> tuple[list[Shape], Shape]:
        """`(a: f32[4], b: s32[]) -> f32[4]`: shapes only, the body has the names."""
        cursor = self.cursor
        cursor.expect("(")
        shapes: list[Shape] = []
        while not cursor.accept(")"):
            if cursor.match(_PARAMETER) is None:
                cursor.expected("a parameter (name: shape) or ')'")
            shapes.append(parse_shape_at(cursor))
            if not cursor.accept(","):
                if not cursor.accept(")"):
                    cursor.expected("',' or ')'")
                break
        cursor.expect("->")
        return shapes, parse_shape_at(cursor)

    def fragment(self) -> None:
        """Instructions without a computation around them."""
        cursor = self.cursor
        if self.module.name == "module":
            self.module.name = "fragment"
        self.current = self.module.add_computation("main", entry=True)
        self.known["main"] = self.defined["main"] = self.current
        scope = Scope(self.current, start=cursor.pos, is_fragment=True)
        while cursor.skip() < len(cursor.text):
            self.reader.read(scope)
        self.close(scope)

    def close(self, scope: Scope) -> None:
        """Set the root; parameter numbers must be 0, 1, 2, ..."""
        computation = scope.computation
        instructions = computation.instructions
        if not instructions:
            name = computation.name
            self.cursor.fail_at(
                f"computation {name!r} has no instructions", scope.start, scope.start + len(name)
            )
        computation.root = scope.root or instructions[-1]
        count = len(scope.parameters)
        for number, (_, start, end) in scope.parameters.items():
            if number >= count:
                missing = next(n for n in range(count) if n not in scope.parameters)
                self.cursor.fail_at(
                    f"parameter({number}) of computation {computation.name!r} leaves a gap: "
                    f"there is no parameter({missing})",
                    start,
                    end,
                )

    def check_signature(
        self, scope: Scope, signature: tuple[list[Shape], Shape], start: int, end: int
    ) -> None:
        """The signature must say what the body says, layouts aside."""
        stated, result = signature
        computation = scope.computation
        given = [p.shape for p in computation.parameters]
        same = len(stated) == len(given) and all(map(Shape.compatible, stated, given))
        if not same or not result.compatible(computation.root.shape):
            body = ", ".join(s.to_string(False) for s in given)
            root = computation.root.shape.to_string(False)
            self.cursor.fail_at(
                f"the signature of computation {computation.name!r} differs from its body, "
                f"which is ({body}) -> {root}",
                start,
                end,
            )

    # --- The whole module ------------------------------------------------------------------

    def wrap(self, start: HloInstruction, opcode: str, shape: Shape, attrs: dict[str, Any]) -> None:
        """Make the computation that async sugar leaves out. It is filled when all names in the
        text are taken, so that it takes none of them away."""
        computation = self.module.add_computation(f"{start.name}_computation")
        computation.execution_thread = start.attrs.get(THREAD, "")
        start.attrs["calls"] = computation
        self.wrapped.append((computation, start, opcode, shape, attrs))

    def finish(self, places: dict[str, tuple[int, int]]) -> None:
        for _, callee, start, end in self.calls:
            if callee.root is None:
                hint = did_you_mean(callee.name, list(self.defined))
                self.cursor.fail_at(f"computation {callee.name!r} is not defined{hint}", start, end)
        for computation, instruction, opcode, shape, attrs in self.wrapped:
            shapes = [o.shape for o in instruction.operands]
            fill_wrapped(computation, opcode, shapes, shape, attrs)
        self.check_recursion()
        # Computations were added when first named; put them back in the order of the text.
        wrapped = [w[0] for w in self.wrapped]
        order = [*wrapped, *self.defined.values()]
        self.module.computations = {c.name: c for c in order}
        self.check_entry_layout(places)

    def check_recursion(self) -> None:
        """No computation may call itself, directly or through others."""
        callees: dict[HloComputation, list[tuple[HloComputation, int, int]]] = {}
        for caller, callee, start, end in self.calls:
            callees.setdefault(caller, []).append((callee, start, end))
        done: set[HloComputation] = set()
        for first, called in callees.items():
            path = [first]
            stack = [iter(called)] if first not in done else []
            while stack:
                for callee, start, end in stack[-1]:
                    if callee in path:
                        chain = " -> ".join(c.name for c in [*path[path.index(callee) :], callee])
                        self.cursor.fail_at(f"computations call themselves: {chain}", start, end)
                    if callee not in done:
                        path.append(callee)
                        stack.append(iter(callees.get(callee, ())))
                        break
                else:
                    done.add(path.pop())
                    stack.pop()

    def check_entry_layout(self, places: dict[str, tuple[int, int]]) -> None:
        layout = self.module.header.get("entry_computation_layout")
        if layout is None:
            return
        stated, result = layout
        entry = self.module.entry
        given = [p.shape for p in entry.parameters]
        same = len(stated) == len(given) and all(map(Shape.compatible, stated, given))
        if not same or not result.compatible(entry.root.shape):
            body = ", ".join(s.to_string(False) for s in given)
            self.cursor.fail_at(
                "entry_computation_layout differs from the entry computation, which is "
                f"({body}) -> {entry.root.shape.to_string(False)}",
                *places["entry_computation_layout"],
            )
