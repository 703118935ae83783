"""CPU fusion: elementwise and indexed instructions, grouped into loops.

Invariants of what it makes, which code generation relies on:
- A fused computation holds parameters, scalar constants, elementwise and indexed instructions, and
  a root. Larger constants are operands. No instruction with effects or control dependencies.
- kind=kLoop: the root is an elementwise or indexed instruction; or a tuple of such, all of the
  same dimensions (several results of one loop); or a dynamic-update-slice whose operand 0 is a
  parameter that nothing else in the fusion reads, so that it can be done in place.
- row-fusion, which follows, may put reductions over rows into a kLoop.
- kind=kInput: the root is a reduce (of one or more arrays).
- Reshapes stand neither at the root nor directly on parameters: outside a loop they are free.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from haloc.analysis.call_graph import sequenced_computations
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ops.table import Elementwise, Indexed, op
from haloc.passes.driver import hlo_pass
from haloc.passes.fusion_group import (
    Group,
    Paths,
    is_free,
    is_fusible,
    is_heavy,
    is_reshape,
    is_scalar_constant,
)
from haloc.passes.fusion_outline import outline
from haloc.passes.fusion_siblings import may_merge, merge, shared_inputs

FUSION_ROOTS = ("reduce", "dynamic-update-slice")
"""Ops with a loop structure of their own that take in the producers of what they read."""

MAX_COPIES = 4
MAX_REPEATED = 8  # instructions whose work a group does once more
MAX_PATH_SEARCH = 64


@hlo_pass("fusion")
def fusion(module: HloModule) -> bool:
    """f(g(x)) => fusion(x) for elementwise and indexed f, g;  reduce(f(x)) => fusion(x)

    Users are decided before producers. A producer whose users all stand in one group joins it; one
    that costs only index arithmetic, or that is cheap and reads one array, is copied into each
    group that uses it; one that is also used elsewhere becomes a further result of a group where
    it is computed at the same index; else it starts a group. At the end, loops of the same
    dimensions that read the same array become one. Joining never makes a cycle, except as a further
    result or of two loops, which is therefore checked.
    """
    changed = False
    names = _new_names(module)
    for computation in sequenced_computations(module):
        groups = Grouping(computation).run()
        changed |= outline(computation, groups, names)
    return changed


def _new_names(module: HloModule) -> Iterator[str]:
    """fused_computation, fused_computation.1, ...: those not taken yet."""
    for number in itertools.count():
        name = f"fused_computation.{number}" if number else "fused_computation"
        if name not in module.computations:
            yield name


class Grouping:
    """Assigns the instructions of one computation to groups, users first."""

    def __init__(self, computation: HloComputation):
        self.computation = computation
        self.order = computation.instructions
        self.position = {i: n for n, i in enumerate(self.order)}
        self.groups: list[Group] = []
        self.groups_of: dict[HloInstruction, list[Group]] = {}
        self.wide: dict[Group, None] = {}  # groups of several results
        self.standing: set[HloInstruction] = set()  # reshapes that stay outside

    def run(self) -> list[Group]:
        """The groups, users first. An instruction may be in several, but a root of one only."""
        for instruction in reversed(self.order):
            if is_scalar_constant(instruction):
                self._copy_into_users(instruction)
            elif is_fusible(instruction):
                self._place(instruction)
            elif instruction.opcode in FUSION_ROOTS and _may_be_root(instruction):
                self._start(instruction)
        self._merge_siblings()
        return self.groups

    def _merge_siblings(self) -> None:
        """One loop for loops of the same dimensions that read the same array."""
        merged: dict[Group, Group] = {}
        for readers in shared_inputs(self.groups).values():
            left = _final(readers[0], merged)
            for reader in readers[1:]:
                right = _final(reader, merged)
                if right is left or not may_merge(left, right, self._reaches):
                    left = right
                    continue
                merge(left, right)
                merged[right] = left
                self.wide.pop(right, None)
                self.wide[left] = None
                for member in right.members:
                    groups = [left if g is right else g for g in self.groups_of[member]]
                    self.groups_of[member] = list(dict.fromkeys(groups))
        self.groups = [g for g in self.groups if g not in merged]

    def _start(self, root: HloInstruction) -> None:
        group = Group(len(self.groups), root, self.position[root])
        self.groups.append(group)
        self.groups_of.setdefault(root, []).append(group)

    def _user_groups(self, instruction: HloInstruction) -> tuple[list[Group], bool]:
        """The groups that use it, and whether its value is needed in memory besides."""
        groups: dict[Group, None] = {}
        outside = instruction.is_root or not instruction.users
        for user in instruction.users:
            of_user = self.groups_of.get(user)
            if of_user is None:
                outside = True
                continue
            outside |= user in self.standing
            groups.update(dict.fromkeys(of_user))
        return list(groups), outside

    def _place(self, instruction: HloInstruction) -> None:
        groups, outside = self._user_groups(instruction)
        if is_free(instruction):
            if not self._copy_into_users(instruction) or outside:
                if is_reshape(instruction):
                    self.standing.add(instruction)
                else:
                    self._start(instruction)
            return
        if len(groups) == 1 and not outside:
            if not self._join(groups[0], instruction):
                self._start(instruction)
            return
        if not outside and self._copy_everywhere(instruction, groups):
            return
        if not self._add_output(instruction, groups):
            self._start(instruction)

    def _join(self, group: Group, instruction: HloInstruction) -> bool:
        paths = group.accepts(instruction)
        if paths is None:
            return False
        group.join(instruction, paths)
        self.groups_of.setdefault(instruction, []).append(group)
        return True

    def _copy_into_users(self, instruction: HloInstruction) -> bool:
        """Copy into each group that takes it; whether all do."""
        groups, _ = self._user_groups(instruction)
        joined = [self._join(group, instruction) for group in groups]
        return bool(joined) and all(joined)

    def _copy_everywhere(self, instruction: HloInstruction, groups: list[Group]) -> bool:
        """Copy a producer into all its groups, or into none, where its value need not be in memory.

        Either the groups share its elements out among themselves (slices of it), so that no work
        is repeated; or it is cheap and reads one array (and things that stay in cache), so that no
        group reads more than it did.
        """
        accepted: list[tuple[Group, Paths]] = []
        for group in groups[: MAX_COPIES + 1]:
            paths = group.accepts(instruction)
            if paths is None:
                return False
            accepted.append((group, paths))
        evaluations = sum(sum(paths.values()) for _, paths in accepted)
        if len(accepted) > MAX_COPIES:
            return False
        is_shared_out = evaluations <= instruction.shape.element_count
        if not is_shared_out:
            if not _is_cheap_map(instruction) or any(g.repeated >= MAX_REPEATED for g in groups):
                return False
            for group in groups:
                group.repeated += 1
        for group, paths in accepted:
            group.join(instruction, paths)
        self.groups_of[instruction] = groups
        return True

    def _add_output(self, instruction: HloInstruction, groups: list[Group]) -> bool:
        """Make it a further result of a group that computes it at the root's index."""
        for group in groups:
            paths = group.accepts_output(instruction)
            if paths is None or self._reaches(instruction, group):
                continue
            group.join(instruction, paths)
            group.add_root(instruction, self.position[instruction])
            self.groups_of[instruction] = [group]  # others go on reading it from memory
            if group not in self.wide:
                self.wide[group] = None
            return True
        return False

    def _reaches(self, start: HloInstruction, target: Group) -> bool:
        """Whether a path leads from `start` through something outside `target` into `target`.

        Then the two cannot be one kernel. Also True when the search takes too long.
        """
        horizon = self._horizon(target)
        seen: set[object] = {target}
        stack = self._consumers(start, seen, horizon)
        while stack:
            node = stack.pop()
            if len(seen) > MAX_PATH_SEARCH:
                return True
            for output in node.roots if isinstance(node, Group) else [node]:
                for user in (*output.users, *output.control_successors):
                    if target in self.groups_of.get(user, ()):
                        return True
                stack.extend(self._consumers(output, seen, horizon))
        return False

    def _horizon(self, target: Group) -> int:
        """A position such that what writes all its results after it cannot lead into `target`.

        Paths go forwards in position, but for kernels of several results: such a kernel can be
        entered at its last member and left at its first result.
        """
        horizon, moved = target.last, True
        while moved:
            moved = False
            for group in self.wide:
                if group.first_root <= horizon < group.last:
                    horizon, moved = group.last, True
        return horizon

    def _consumers(
        self, value: HloInstruction, seen: set[object], horizon: int
    ) -> list[Group | HloInstruction]:
        found: list[Group | HloInstruction] = []
        for user in (*value.users, *value.control_successors):
            nodes: list[Group | HloInstruction] = [*self.groups_of.get(user, ())]
            if not nodes or user in self.standing:
                nodes.append(user)
            for node in nodes:
                first = node.first_root if isinstance(node, Group) else self.position[user]
                if node not in seen and first <= horizon:
                    seen.add(node)
                    found.append(node)
        return found


def _final(group: Group, merged: dict[Group, Group]) -> Group:
    while group in merged:
        group = merged[group]
    return group


def _may_be_root(instruction: HloInstruction) -> bool:
    if instruction.opcode == "dynamic-update-slice":
        array, *others = instruction.operands
        if array in others:
            return False
    return (
        instruction.shape.is_static
        and all(o.shape.is_static for o in instruction.operands)
        and not instruction.control_predecessors
        and not instruction.control_successors
    )


def _is_cheap_map(instruction: HloInstruction) -> bool:
    """A cheap elementwise instruction that reads at most one array, no larger than its result."""
    if is_heavy(instruction) or not isinstance(op(instruction).lower, Elementwise):
        return False
    size = instruction.shape.byte_size
    arrays = {o for o in instruction.operands if not _is_spread(o, size)}
    return len(arrays) <= 1 and all(a.shape.byte_size <= size for a in arrays)


SPREAD = 8


def _is_spread(instruction: HloInstruction, size: int) -> bool:
    """Small beside `size` bytes, or something small repeated: what stays in cache when read."""
    if instruction.shape.byte_size * SPREAD <= size or not instruction.shape.dims:
        return True
    row = op(instruction)
    if not isinstance(row.lower, Indexed) or not instruction.operands:
        return isinstance(row.lower, Indexed)
    return row.lower.is_remap and instruction.operands[0].shape.byte_size * SPREAD <= size
