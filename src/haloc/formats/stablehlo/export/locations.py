"""Metadata of instructions as MLIR locations."""

from __future__ import annotations

from typing import Any

from haloc.formats.stablehlo.mlir import FileLocation, Location, NameLocation
from haloc.ir.module import HloInstruction


class Locations:
    """Makes each location once, so that those who write them find equal ones to be one."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Location | None] = {}

    def of(self, instruction: HloInstruction) -> Location | None:
        """The op's name around its place in a source file; None where nothing is known."""
        if not instruction.metadata:
            return None
        key = tuple(instruction.metadata.get(k) for k in _KEYS)
        if key not in self._known:
            self._known[key] = _location(*key)
        return self._known[key]


_KEYS = (
    "op_name",
    "source_file",
    "source_line",
    "source_column",
    "source_end_line",
    "source_end_column",
)


def _location(
    name: str | None, file: str | None, line: Any, column: Any, end_line: Any, end_column: Any
) -> Location | None:
    place = None
    if file:
        place = FileLocation(file, line or 0, column or 0, end_line or 0, end_column or 0)
    return NameLocation(name, place) if name else place
