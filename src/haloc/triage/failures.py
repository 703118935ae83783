"""What can be wrong with a program, each as a function that says so: see `reduce.Failure`."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from haloc.errors import HloError, InternalError, InvalidArgumentError
from haloc.formats.hlo_text import to_text
from haloc.ir.literal import Value
from haloc.ir.module import HloModule
from haloc.triage.divergence import Side, differs
from haloc.triage.engine import INTERPRETER, NATIVE, Engine


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The engine's results are not the interpreter's."""

    engine: Engine = NATIVE

    def __call__(self, module: HloModule, arguments: Sequence[Value]) -> str:
        try:
            wrong = differs(Side(module, self.engine), Side(module, INTERPRETER), arguments)
        except Exception:  # another fault, or a program that cannot be run at all
            return ""
        return "mismatch" if wrong else ""


@dataclass(frozen=True, slots=True)
class Crash:
    """The engine fails with what is no answer to bad input: InternalError, or a Python error.

    The name of the error and its first words tell one fault from another. That the process dies is
    noticed by who watches it: see `worker.Isolated`.
    """

    engine: Engine = NATIVE

    def __call__(self, module: HloModule, arguments: Sequence[Value]) -> str:
        try:
            self.engine.run(module, arguments)
        except Exception as error:
            if isinstance(error, HloError) and not isinstance(error, InternalError):
                return ""
            return f"{type(error).__name__} {' '.join(str(error).split()[:4])}"
        return ""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that exits with 0 when the fault shows in the HLO text file that is its last
    argument (or stands where it says {}). One that takes longer than timeout_s does not show it."""

    text: str
    timeout_s: float = 60.0

    def __call__(self, module: HloModule, arguments: Sequence[Value]) -> str:
        with tempfile.TemporaryDirectory(prefix="haloc-") as folder:
            path = Path(folder) / "program.hlo"
            path.write_text(to_text(module))
            words = self._words(str(path))
            try:
                done = subprocess.run(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=self.timeout_s,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return ""
            except OSError as error:
                raise InvalidArgumentError(f"--test {self.text!r}: {error.strerror}") from None
        return "" if done.returncode else "the command exits with 0"

    def _words(self, path: str) -> list[str]:
        try:
            words = shlex.split(self.text)
        except ValueError as error:
            raise InvalidArgumentError(f"--test {self.text!r}: {error}") from None
        if not words:
            raise InvalidArgumentError("--test: an empty command")
        if any("{}" in w for w in words):
            return [w.replace("{}", path) for w in words]
        return [*words, path]
