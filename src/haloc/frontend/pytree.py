"""Trees of values: tuples, lists, dicts, named tuples, None, and registered classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _Node:
    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, Sequence[Any]], Any]


_NODES: dict[type, _Node] = {
    tuple: _Node(lambda x: (x, None), lambda _, members: tuple(members)),
    list: _Node(lambda x: (x, None), lambda _, members: list(members)),
    dict: _Node(
        lambda x: ([x[k] for k in sorted(x)], tuple(sorted(x))),
        lambda keys, members: dict(zip(keys, members)),
    ),
    type(None): _Node(lambda x: ((), None), lambda _, __: None),
}


def register_pytree_node(
    kind: type,
    flatten: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten: Callable[[Any, Sequence[Any]], Any],
) -> None:
    """flatten(value) -> (members, hashable rest); unflatten(rest, members) -> value."""
    if kind in _NODES:
        raise ValueError(f"{kind.__name__} is registered already")
    _NODES[kind] = _Node(flatten, unflatten)


@dataclass(frozen=True)
class TreeDef:
    """The shape of a tree. kind is None for a leaf."""

    kind: type | None
    rest: Any = None
    members: tuple[TreeDef, ...] = ()

    @property
    def num_leaves(self) -> int:
        return 1 if self.kind is None else sum(m.num_leaves for m in self.members)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        return self._take(iter(leaves))

    def _take(self, leaves: Iterator[Any]) -> Any:
        if self.kind is None:
            return next(leaves)
        members = [m._take(leaves) for m in self.members]
        if self.kind not in _NODES:  # a named tuple
            return self.kind(*members)
        return _NODES[self.kind].unflatten(self.rest, members)

    def __str__(self) -> str:
        return repr(self.unflatten("*" * self.num_leaves)).replace("'*'", "*")


LEAF = TreeDef(None)


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves in order (of dicts: by sorted keys) and the tree without them."""
    kind = type(tree)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        members, rest = tree, None
    elif kind in _NODES:
        members, rest = _NODES[kind].flatten(tree)
    else:
        return [tree], LEAF
    flat = [flatten(member) for member in members]
    leaves = [leaf for found, _ in flat for leaf in found]
    return leaves, TreeDef(kind, rest, tuple(d for _, d in flat))


def tree_map(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    leaves, treedef = flatten(tree)
    columns = [leaves, *(flatten(other)[0] for other in others)]
    return treedef.unflatten(function(*row) for row in zip(*columns, strict=True))
