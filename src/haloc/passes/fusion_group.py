"""Fusion groups: which instructions form one kernel, and what each member costs inside it.

A member is evaluated once per *use path*: the root at the result index; an operand of an
elementwise member at that member's index (the same path); an operand of an indexed member at an
index computed from it (a path of its own). Two users on one path share one evaluation. So the
number of paths is the number of times a member's code is emitted, and the evaluations summed over
its paths, against its element count, are how often its work is repeated.
"""

from __future__ import annotations

from haloc.ir.module import HloInstruction
from haloc.ops.table import Elementwise, Indexed, op

MAX_EMITTED = 120  # members times paths: bounds compile time of one kernel
MAX_INPUTS = 28
MAX_ROOTS = 16
MAX_PATHS = 4
MAX_REPEATS_CHEAP = 4.0
MAX_REPEATS_HEAVY = 1.5
LARGE_ELEMENTS = 1 << 15

Paths = dict[object, float]
"""Use path -> element evaluations along it."""


class Group:
    """Members with their use paths; roots are the values the kernel writes."""

    __slots__ = ("first_root", "inputs", "last", "members", "number", "repeated", "roots", "size")

    def __init__(self, number: int, root: HloInstruction, position: int):
        self.number = number
        self.roots = [root]
        self.members: dict[HloInstruction, Paths] = {root: {ROOT: float(_count(root))}}
        self.inputs: dict[HloInstruction, None] = dict.fromkeys(root.operands)
        self.size = 1
        self.repeated = 0
        self.first_root = self.last = position

    @property
    def root(self) -> HloInstruction:
        return self.roots[0]

    def paths_to(self, producer: HloInstruction) -> Paths | None:
        """The use paths `producer` would have as a member; None where it may not be read inside."""
        paths: Paths = {}
        for user in producer.users:
            own = self.members.get(user)
            if own is None:
                continue
            for number, operand in enumerate(user.operands):
                if operand is not producer:
                    continue
                if not _may_be_inside(user, number, producer, self):
                    return None
                for path, evaluations in own.items():
                    key, cost = _step(user, number, producer, path, evaluations)
                    paths[key] = max(paths.get(key, 0.0), cost)
        return paths

    def accepts(self, producer: HloInstruction) -> Paths | None:
        """The paths of `producer` if making it a member keeps the kernel within bounds."""
        paths = self.paths_to(producer)
        if not paths:
            return None
        if is_scalar_constant(producer):
            return paths
        if self.size + len(paths) > MAX_EMITTED or len(paths) > _max_paths(producer):
            return None
        new_inputs = sum(o not in self.inputs for o in producer.operands)
        if len(self.inputs) - 1 + new_inputs > MAX_INPUTS:
            return None
        repeats = sum(paths.values()) / max(1, _count(producer))
        if repeats > _max_repeats(producer):
            return None
        return paths

    def join(self, producer: HloInstruction, paths: Paths) -> None:
        self.members[producer] = paths
        self.size += len(paths)
        self.inputs.pop(producer, None)
        self.inputs.update(dict.fromkeys(o for o in producer.operands if o not in self.members))

    def add_root(self, member: HloInstruction, position: int) -> None:
        """Make a member one more result."""
        self.roots.append(member)
        self.first_root = min(self.first_root, position)

    def accepts_output(self, producer: HloInstruction) -> Paths | None:
        """The paths of `producer` if it can be one more result of this loop.

        All results of a loop have the same dimensions and are computed at the same index.
        """
        if not is_loop(self) or producer.shape.dims != self.root.shape.dims:
            return None
        if len(self.roots) >= MAX_ROOTS:
            return None
        paths = self.paths_to(producer)
        if paths is None or set(paths) - {ROOT}:
            return None
        return self.accepts(producer)


ROOT = "root"


def is_loop(group: Group) -> bool:
    """The kernel computes each result element by itself: no reduction, no update."""
    return isinstance(op(group.root).lower, Elementwise | Indexed)


def is_scalar_constant(instruction: HloInstruction) -> bool:
    return (
        "literal" in instruction.attrs
        and instruction.shape.is_array
        and not (instruction.shape.dims)
    )


def is_fusible(instruction: HloInstruction) -> bool:
    """May be a member: computes each element of a static array from elements of its operands."""
    return (
        isinstance(op(instruction).lower, Elementwise | Indexed)
        and instruction.shape.is_array
        and instruction.shape.is_static
        and not instruction.control_predecessors
        and not instruction.control_successors
    )


def is_free(instruction: HloInstruction) -> bool:
    """Costs nothing but index arithmetic wherever it is read: repeat it at will."""
    row = op(instruction)
    if not isinstance(row.lower, Indexed):
        return False
    if not instruction.operands:
        return True
    return row.lower.is_remap and not (
        _count(instruction) >= LARGE_ELEMENTS and changes_minor_dimension(instruction)
    )


def changes_minor_dimension(instruction: HloInstruction) -> bool:
    """A permutation of dimensions under which neighbours in memory do not stay neighbours."""
    permutation = instruction.attrs.get("dimensions")
    if permutation is None or sorted(permutation) != list(range(instruction.shape.rank)):
        return False
    sizes = instruction.shape.dims
    real = [d for out, d in enumerate(permutation) if sizes[out] != 1]
    return bool(real) and real[-1] != max(real)


def is_reshape(instruction: HloInstruction) -> bool:
    """Moves nothing in memory: free outside a loop, index arithmetic inside."""
    lower = op(instruction).lower
    return isinstance(lower, Indexed) and lower.keeps_order


def is_heavy(instruction: HloInstruction) -> bool:
    """One element costs far more than a load and a few arithmetic instructions."""
    cost = op(instruction).cost(instruction)
    return cost.transcendentals > 0 or cost.flops > 8 * _count(instruction)


def _count(instruction: HloInstruction) -> int:
    return instruction.shape.element_count if instruction.shape.is_array else 1


def _max_paths(producer: HloInstruction) -> int:
    return 4 * MAX_PATHS if not producer.operands else MAX_PATHS


def _max_repeats(producer: HloInstruction) -> float:
    if is_free(producer) or (_count(producer) == 1 and not is_heavy(producer)):
        return float("inf")
    row = op(producer)
    if is_heavy(producer) or (isinstance(row.lower, Indexed) and not row.lower.is_remap):
        return MAX_REPEATS_HEAVY
    return MAX_REPEATS_CHEAP


def _may_be_inside(
    user: HloInstruction, number: int, producer: HloInstruction, group: Group
) -> bool:
    row = op(user)
    if isinstance(row.lower, Elementwise | Indexed):
        return not _reads_updated_array(producer, group)
    if user.opcode == "dynamic-update-slice":
        # Operand 0 is the memory written to. Nothing else in the kernel may read it: elements
        # would be read after they have been overwritten.
        return number != 0 and not _reads_updated_array(producer, group)
    # A reduction: initial values stay operands unless they are constants, so that they are read
    # once; large transposes stay outside, since the loop order follows the reduced dimensions.
    if number >= len(user.operands) // 2:
        return is_scalar_constant(producer)
    return _count(producer) < LARGE_ELEMENTS or not changes_minor_dimension(producer)


def _reads_updated_array(producer: HloInstruction, group: Group) -> bool:
    root = group.root
    if root.opcode != "dynamic-update-slice":
        return False
    return producer is root.operands[0] or root.operands[0] in producer.operands


def _step(
    user: HloInstruction, number: int, producer: HloInstruction, path: object, evaluations: float
) -> tuple[object, float]:
    """The path and the evaluations of operand `number` of a member evaluated along `path`."""
    row = op(user)
    if isinstance(row.lower, Elementwise):
        if producer.shape.dims == user.shape.dims:
            return path, evaluations
        return (path, "scalar"), evaluations
    if isinstance(row.lower, Indexed):
        if row.is_variadic:  # concatenate: each operand fills its share of the result
            evaluations *= min(1.0, _count(producer) / max(1, _count(user)))
        return (id(user), number, path), evaluations
    if user.opcode == "dynamic-update-slice":
        return ("update", number), float(_count(producer))
    return ("reduce", number >= len(user.operands) // 2), float(_count(producer))
