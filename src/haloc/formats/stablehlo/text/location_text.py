"""Locations back to MLIR text: each is written once, under a name, at the end of the module."""

from __future__ import annotations

from haloc.formats.stablehlo.mlir import (
    CallLocation,
    FileLocation,
    FusedLocation,
    Location,
    NameLocation,
)
from haloc.formats.stablehlo.text.attribute_text import attribute_text, quoted


class LocationTable:
    """definitions: `#loc1 = loc(...)`, each behind those it refers to."""

    def __init__(self) -> None:
        self.definitions: list[str] = []
        self._by_text: dict[str, str] = {}
        self._by_id: dict[int, tuple[Location, str]] = {}

    def reference(self, location: Location | None) -> str:
        """What stands inside `loc(...)`: an alias, or `unknown`."""
        if location is None:
            return "unknown"
        known = self._by_id.get(id(location))
        if known is None:
            # The location is kept alive here, so its id stays its own.
            known = self._by_id[id(location)] = (location, self._define(self._text(location)))
        return known[1]

    def _define(self, text: str) -> str:
        alias = self._by_text.get(text)
        if alias is None:
            alias = self._by_text[text] = f"#loc{len(self._by_text) + 1}"
            self.definitions.append(f"{alias} = loc({text})")
        return alias

    def _text(self, location: Location) -> str:
        if isinstance(location, FileLocation):
            return _file_text(location)
        if isinstance(location, NameLocation):
            child = location.child
            return quoted(location.name) + (f"({self.reference(child)})" if child else "")
        if isinstance(location, CallLocation):
            callee, caller = self.reference(location.callee), self.reference(location.caller)
            return f"callsite({callee} at {caller})"
        assert isinstance(location, FusedLocation)
        metadata = ""
        if location.metadata is not None:
            metadata = f"<{attribute_text(location.metadata)}>"
        return f"fused{metadata}[{', '.join(map(self.reference, location.parts))}]"


def _file_text(location: FileLocation) -> str:
    text = f"{quoted(location.file)}:{location.line}:{location.column}"
    if location.end_line and location.end_line != location.line:
        return f"{text} to {location.end_line}:{location.end_column}"
    return f"{text} to :{location.end_column}" if location.end_column else text
