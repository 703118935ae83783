"""Locations as HLO metadata, and the names they give to instructions."""

from __future__ import annotations

import re
from typing import Any

from haloc.formats.stablehlo.mlir import (
    CallLocation,
    FileLocation,
    FusedLocation,
    Location,
    NameLocation,
)

_LAST = re.compile(r"([A-Za-z_][\w.-]*)[^/\w]*$")


class Metadata:
    """Reads each location once."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Location, tuple[dict[str, Any], str]]] = {}

    def of(self, location: Location | None) -> tuple[dict[str, Any], str]:
        """(metadata, name for instructions); both empty when nothing is known."""
        if location is None:
            return {}, ""
        # Locations of one alias are one object; kept alive here, so its id stays its own.
        known = self.known.get(id(location))
        if known is None:
            known = (location, _read(location))
            self.known[id(location)] = known
        return known[1]


def _read(location: Location) -> tuple[dict[str, Any], str]:
    metadata: dict[str, Any] = {}
    name = location_name(location)
    if name:
        metadata["op_name"] = name
    file = _file(location)
    if file is not None:
        metadata["source_file"] = file.file
        metadata["source_line"] = file.line
        if file.end_line:
            metadata["source_end_line"] = file.end_line
        if file.column:
            metadata["source_column"] = file.column
        if file.end_column:
            metadata["source_end_column"] = file.end_column
    # "jit(f)/while/body/add" names an instruction add; "jit(f)" names none.
    last = _LAST.search(name.rpartition("/")[2])
    return metadata, last[1] if last and name else ""


def location_name(location: Location | None) -> str:
    """The op's name, "jit(f)/add"; JAX writes a colon behind some names."""
    while location is not None:
        if isinstance(location, NameLocation):
            return location.name.rstrip(":")
        if isinstance(location, FusedLocation):
            names = (location_name(p) for p in location.parts)
            return next((n for n in names if n), "")
        return ""
    return ""


def _file(location: Location | None) -> FileLocation | None:
    """The innermost place in a file."""
    while location is not None and not isinstance(location, FileLocation):
        if isinstance(location, NameLocation):
            location = location.child
        elif isinstance(location, CallLocation):
            location = location.callee
        else:
            parts = (_file(p) for p in location.parts)
            return next((p for p in parts if p), None)
    return location
