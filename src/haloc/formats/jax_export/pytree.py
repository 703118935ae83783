"""Pytrees of arguments and results, as an artifact writes them: plain Python containers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from haloc.errors import InvalidArgumentError
from haloc.formats.jax_export.flatbuffer import Table

LEAF, NONE, TUPLE, LIST, DICT, CUSTOM = range(6)
_KINDS = ("leaf", "None", "tuple", "list", "dict", "custom")


@dataclass(frozen=True, slots=True)
class Custom:
    """A node of a type that only its program knows: a namedtuple, a dataclass.

    name: as registered for serialization. auxdata: as its own function wrote it.
    """

    name: str
    auxdata: bytes
    children: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class PyTree:
    """The structure of a pytree. names: the keys of a dict; name, auxdata: of a custom node."""

    kind: int
    children: tuple[PyTree, ...] = ()
    names: tuple[str, ...] = ()
    name: str = ""
    auxdata: bytes = field(default=b"", repr=False)

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        if self.kind == LEAF:
            return 1
        return sum(child.leaves for child in self.children)

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """Containers with these leaves in order; InvalidArgumentError if the number is wrong."""
        if len(leaves) != self.leaves:
            raise InvalidArgumentError(f"{len(leaves)} leaves for {self}, which has {self.leaves}")
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self.kind == LEAF:
            return next(leaves)
        values = [child._build(leaves) for child in self.children]
        match _KINDS[self.kind]:
            case "None":
                return None
            case "tuple":
                return tuple(values)
            case "list":
                return values
            case "dict":
                return dict(zip(self.names, values, strict=True))
        return Custom(self.name, self.auxdata, tuple(values))

    def flatten(self, value: Any, where: str = "arguments") -> list[Any]:
        """The leaves of a value of this structure; InvalidArgumentError where it differs.

        A custom node takes any sequence, mapping (in field order) or `Custom` of its length.
        """
        if self.kind == LEAF:
            return [value]
        parts: Sequence[Any]
        if self.kind == NONE:
            if value is not None:
                raise InvalidArgumentError(f"{where}: found {_short(value)}, expected None")
            return []
        if self.kind == DICT:
            if not isinstance(value, dict) or sorted(map(str, value)) != sorted(self.names):
                wanted = ", ".join(map(repr, self.names))
                raise InvalidArgumentError(
                    f"{where}: found {_short(value)}, expected a dict with keys {wanted}"
                )
            by_name = {str(k): v for k, v in value.items()}
            parts = [by_name[name] for name in self.names]
        else:
            parts = self._parts(value, where)
        found: list[Any] = []
        for i, (child, part) in enumerate(zip(self.children, parts, strict=True)):
            step = repr(self.names[i]) if self.kind == DICT else str(i)
            found += child.flatten(part, f"{where}[{step}]")
        return found

    def _parts(self, value: Any, where: str) -> Sequence[Any]:
        if isinstance(value, Custom):
            value = value.children
        elif self.kind == CUSTOM and isinstance(value, dict):
            value = tuple(value.values())
        wanted = {TUPLE: tuple, LIST: list}.get(self.kind, (tuple, list))
        if not isinstance(value, wanted) or len(value) != len(self.children):
            raise InvalidArgumentError(f"{where}: found {_short(value)}, expected {self}")
        return value

    def __str__(self) -> str:
        inner = [str(child) for child in self.children]
        match _KINDS[self.kind]:
            case "leaf":
                return "*"
            case "None":
                return "None"
            case "tuple":
                return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
            case "list":
                return f"[{', '.join(inner)}]"
            case "dict":
                pairs = zip(self.names, inner, strict=True)
                return "{" + ", ".join(f"{name!r}: {text}" for name, text in pairs) + "}"
        return f"{self.name}({', '.join(inner)})"


def _short(value: Any) -> str:
    if isinstance(value, tuple | list | dict):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a value of type {type(value).__name__}"


def read_pytree(table: Table | None) -> PyTree:
    """A tree from its table."""
    if table is None:
        return PyTree(TUPLE)
    kind = table.number(0, "<b")
    if not LEAF <= kind <= CUSTOM:
        table.fail(table.pos, f"pytree kind {kind}, expected 0 to {CUSTOM}")
    children = tuple([read_pytree(child) for child in table.tables(1)])
    names = tuple(table.strings(2))
    if kind in (LEAF, NONE) and children:
        table.fail(table.pos, f"a pytree {_KINDS[kind]} with children")
    if kind == DICT and len(names) != len(children):
        table.fail(table.pos, f"a dict of {len(children)} values but {len(names)} keys")
    return PyTree(kind, children, names, table.string(3), table.bytes(4))
