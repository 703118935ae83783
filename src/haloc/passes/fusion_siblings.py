"""Sibling fusion: loops over the same index that read the same array become one loop."""

from __future__ import annotations

from collections.abc import Callable

from haloc.ir.module import HloInstruction
from haloc.passes.fusion_group import MAX_EMITTED, MAX_ROOTS, ROOT, Group, is_loop

MAX_STREAMS = 16
"""Arrays that one merged loop reads and writes: more than caches and prefetchers follow."""

Reaches = Callable[[HloInstruction, Group], bool]


def shared_inputs(groups: list[Group]) -> dict[HloInstruction, list[Group]]:
    """Arrays that several loops read, each with those that read it at their own index."""
    readers: dict[HloInstruction, list[Group]] = {}
    for group in groups:
        if not is_loop(group):
            continue
        for value in group.inputs:
            if value.shape.is_array and value.shape.dims == group.root.shape.dims != ():
                paths = group.paths_to(value)
                if paths and ROOT in paths:
                    readers.setdefault(value, []).append(group)
    return {value: found for value, found in readers.items() if len(found) > 1}


def may_merge(left: Group, right: Group, reaches: Reaches) -> bool:
    """Whether one loop can do the work of both: same dimensions, bounded, neither needs the other.

    reaches(value, group): whether a path leads from a value through others into the group.
    """
    if left.root.shape.dims != right.root.shape.dims:
        return False
    if left.size + right.size > MAX_EMITTED or len(left.roots) + len(right.roots) > MAX_ROOTS:
        return False
    streams = len({*left.inputs, *right.inputs}) + len(left.roots) + len(right.roots)
    if streams > MAX_STREAMS:
        return False
    for one, other in ((left, right), (right, left)):
        for root in one.roots:
            if root in other.inputs or root in other.members or reaches(root, other):
                return False
    return True


def merge(left: Group, right: Group) -> None:
    """Make `left` do what `right` did as well."""
    for member, paths in right.members.items():
        left.members[member] = {**left.members.get(member, {}), **paths}
    left.roots += right.roots
    left.size = sum(len(paths) for paths in left.members.values())
    left.inputs = {v: None for v in (*left.inputs, *right.inputs) if v not in left.members}
    left.first_root = min(left.first_root, right.first_root)
    left.last = max(left.last, right.last)
    left.repeated += right.repeated
