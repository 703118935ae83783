"""`reduced`: the smallest program that still fails as the given one does, by delta debugging."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from haloc.analysis.equality import module_fingerprint
from haloc.errors import InvalidArgumentError
from haloc.formats.hlo_text import parse_module, to_text
from haloc.ir.literal import Value
from haloc.ir.module import HloModule
from haloc.triage.edits import (
    EDITS,
    Edit,
    Program,
    cleaned,
    copied,
    to_constants,
    with_open_ends,
)
from haloc.verifier import verify

Failure: TypeAlias = Callable[[HloModule, Sequence[Value]], str]
"""failure(module, arguments): what fails, in words that are the same for the same fault; "" when
nothing does. The module is its own to keep."""

OnStep: TypeAlias = Callable[[int, Program], None]
"""on_step(candidates tried, smallest program so far)."""


@dataclass(slots=True)
class _Search:
    failure: Failure
    wanted: str
    on_step: OnStep
    is_valid: bool
    best: Program
    tried: int = 0
    seen: set[tuple] = field(default_factory=set)

    def rounds(self, program: Program) -> Program:
        """Apply the edits, one after the other, until none of them helps, or an interruption."""
        self.best = program
        try:
            return self._rounds(program)
        except KeyboardInterrupt:  # what has been found is worth having
            return self.best

    def _rounds(self, program: Program) -> Program:
        while True:
            before = program.size
            for edit in EDITS:
                program = self.repeat(edit, program)
            if program.size == before:
                return program

    def repeat(self, edit: Edit, program: Program) -> Program:
        """Apply an edit for as long as one of its candidates fails."""
        while (smaller := self.first_that_fails(edit(program), program.size)) is not None:
            self.best = program = smaller
            self.on_step(self.tried, program)
        return program

    def first_that_fails(
        self, candidates: Iterable[Program], below: tuple[int, ...] | None
    ) -> Program | None:
        for candidate in candidates:
            if below is not None and candidate.size >= below:
                continue
            if not self._is_new(candidate):
                continue
            self.tried += 1
            self.on_step(self.tried, candidate)
            if self.failure(candidate.module.clone(), candidate.arguments) == self.wanted:
                return candidate
        return None

    def _is_new(self, candidate: Program) -> bool:
        """Not tried before, and a program at all."""
        try:
            if self.is_valid:
                verify(candidate.module)
            key = (module_fingerprint(candidate.module), candidate.size)
        except Exception:  # an edit may leave anything behind
            return False
        known = key in self.seen
        self.seen.add(key)
        return not known


def reduced(
    module: HloModule,
    arguments: Sequence[Value],
    failure: Failure,
    *,
    on_step: OnStep = lambda tried, program: None,
    constants: bool = True,
) -> Program:
    """The smallest program found for which `failure` says what it says of the given one.

    The given module is left as it is. Results are cut, instructions replaced by parameters with the
    values they had, by operands and by zeros, calls inlined, dimensions shrunk, annotations
    dropped; with `constants`, small arguments end up inside the program. If the given module
    verifies, so do the candidates. Raises InvalidArgumentError when the given program does not
    fail. An interruption (Ctrl-C) ends the search: the result is the smallest so far.
    """
    wanted = failure(module.clone(), arguments)
    if not wanted:
        raise InvalidArgumentError(
            f"nothing is wrong with {module.name}: there is no fault to keep"
        )
    program = Program(module.clone(), list(arguments))
    search = _Search(failure, wanted, on_step, _verifies(module), program)
    # What is dead goes first; if that is where the fault is, it is made a result.
    starts = (cleaned(copied(program)), with_open_ends(program))
    program = search.rounds(search.first_that_fails(starts, None) or program)
    if constants:
        program = search.first_that_fails(to_constants(program), None) or program
    return _as_printed(program, failure, wanted)


def _as_printed(program: Program, failure: Failure, wanted: str) -> Program:
    """The program with the order of instructions that text gives, if the fault is there too."""
    try:
        module = parse_module(to_text(program.module))
    except Exception:  # the fault may be one of the printer's
        return program
    if failure(module.clone(), program.arguments) != wanted:
        return program
    return Program(module, program.arguments)


def _verifies(module: HloModule) -> bool:
    try:
        verify(module)
    except Exception:
        return False
    return True
