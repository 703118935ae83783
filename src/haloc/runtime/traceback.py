"""`Traceback`: where in a Python program an executable or an array was made."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, TracebackType

_HERE = str(Path(__file__).parent)


@dataclass(frozen=True)
class Frame:
    """A line of a function. function_start_line: of its `def`."""

    file_name: str
    function_name: str
    function_start_line: int
    line_num: int

    def __repr__(self) -> str:
        return f"{self.function_name};{self.file_name}:{self.line_num}"


class Traceback:
    """The frames of a call stack, innermost first."""

    __slots__ = ("_places",)

    def __init__(self, places: Sequence[tuple[CodeType, int]]):
        self._places = tuple(places)

    @staticmethod
    def get_traceback() -> Traceback | None:
        """The caller's stack; None when tracebacks are disabled."""
        return captured() if _enabled else None

    @staticmethod
    def traceback_from_frames(frames: Sequence[Frame]) -> TracebackType | None:
        """A traceback of Python's that shows these files and lines, innermost first given; None of
        none. For `error.with_traceback`."""
        made: TracebackType | None = None
        for frame in frames:
            # Only running code has frames: a line that raises, said to be that file's line.
            source = "\n" * (frame.line_num - 1) + "raise LookupError"
            code = compile(source, frame.file_name, "exec").replace(co_name=frame.function_name)
            try:
                exec(code)
            except LookupError as error:
                assert error.__traceback__ and error.__traceback__.tb_next
                inner = error.__traceback__.tb_next
                made = TracebackType(made, inner.tb_frame, inner.tb_lasti, inner.tb_lineno)
        return made

    @staticmethod
    def code_addr2line(code: CodeType, lasti: int) -> int:
        """The line of the bytecode at byte `lasti` of a function."""
        return Traceback.code_addr2location(code, lasti)[0]

    @staticmethod
    def code_addr2location(code: CodeType, lasti: int) -> tuple[int, int, int, int]:
        """(first line, first column, last line, last column) of the bytecode at byte `lasti`."""
        places = list(code.co_positions())
        first, last, start, end = places[min(lasti // 2, len(places) - 1)]
        line = first or code.co_firstlineno
        return line, start or 0, last or line, end or 0

    @property
    def frames(self) -> list[Frame]:
        return [_frame(*place) for place in self._places]

    def raw_frames(self) -> tuple[list[CodeType], list[int]]:
        """The functions' code objects, and how far each had come (bytes of bytecode)."""
        return [code for code, _ in self._places], [at for _, at in self._places]

    def as_python_traceback(self) -> TracebackType | None:
        """The same as a traceback of Python's."""
        return Traceback.traceback_from_frames(self.frames)

    def __str__(self) -> str:
        return "\n".join(f"{f.file_name}:{f.line_num} ({f.function_name})" for f in self.frames)

    def __eq__(self, other: object) -> bool:
        return self._places == other._places if isinstance(other, Traceback) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._places)


def _frame(code: CodeType, lasti: int) -> Frame:
    line = Traceback.code_addr2line(code, lasti)
    return Frame(code.co_filename, code.co_name, code.co_firstlineno, line)


def captured() -> Traceback:
    """The stack from the innermost frame outside haloc's runtime on."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    places: list[tuple[CodeType, int]] = []
    here = frame
    while here is not None:
        places.append((here.f_code, here.f_lasti))
        here = here.f_back  # type: ignore[assignment]
    return Traceback(places)


_enabled = True
of_arrays = False
"""Whether arrays remember where they were made; executables do unless tracebacks are disabled."""


def set_tracebacks_enabled(enabled: bool) -> None:
    """True: arrays and executables made from now on remember where. False: none do.

    Before the first call executables do and arrays do not: walking the stack takes longer than
    making a small array.
    """
    global _enabled, of_arrays  # noqa: PLW0603  # the one switch of the process
    _enabled = of_arrays = bool(enabled)


def tracebacks_enabled() -> bool:
    return _enabled
