"""HloModule, HloComputation, HloInstruction: the one IR, mutable, with def-use kept.

Attributes are a plain dict keyed by their HLO text spelling ("dimensions", "to_apply",
"slice_sizes"); values are immutable and hashable, except that an attribute naming computations
holds the `HloComputation` itself (or a tuple of them). Two attributes have no `key=` in text:
"literal" of a constant (a `Literal`) and "parameter_number" of a parameter. `proto_extra` holds
the encoded fields of a proto that have no place here, to be written back. Change operands, users
and roots only through the methods here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from haloc.errors import InternalError, InvalidArgumentError
from haloc.ir.shape import Shape


class HloInstruction:
    """One operation. `users` counts, for each using instruction, how many operands are this one."""

    __slots__ = (
        "_control_predecessors",
        "attrs",
        "backend_config",
        "control_successors",
        "frontend_attributes",
        "metadata",
        "name",
        "opcode",
        "operands",
        "origin",
        "parent",
        "proto_extra",
        "shape",
        "sharding",
        "users",
    )

    def __init__(
        self,
        opcode: str,
        shape: Shape,
        operands: Iterable[HloInstruction] = (),
        attrs: dict[str, Any] | None = None,
        name: str = "",
    ):
        self.opcode = opcode
        self.shape = shape
        self.operands: tuple[HloInstruction, ...] = tuple(operands)
        self.attrs: dict[str, Any] = attrs if attrs is not None else {}
        self.name = name
        self.parent: HloComputation | None = None
        self.users: dict[HloInstruction, int] = {}
        self._control_predecessors: tuple[HloInstruction, ...] = ()
        self.control_successors: dict[HloInstruction, None] = {}
        self.sharding: Any = None
        self.metadata: dict[str, Any] = {}
        self.frontend_attributes: dict[str, str] = {}
        self.backend_config: str = ""
        self.origin: str = ""
        self.proto_extra: bytes = b""
        for operand in self.operands:
            operand.users[self] = operand.users.get(self, 0) + 1

    @property
    def computation(self) -> HloComputation:
        """The computation this instruction stands in."""
        if self.parent is None:
            raise InternalError(f"instruction {self.name!r} is in no computation")
        return self.parent

    @property
    def control_predecessors(self) -> tuple[HloInstruction, ...]:
        """Instructions that must run before this one although it does not use their values."""
        return self._control_predecessors

    @control_predecessors.setter
    def control_predecessors(self, predecessors: tuple[HloInstruction, ...]) -> None:
        for predecessor in self._control_predecessors:
            predecessor.control_successors.pop(self, None)
        self._control_predecessors = predecessors
        for predecessor in predecessors:
            predecessor.control_successors[self] = None

    @property
    def called_computations(self) -> list[HloComputation]:
        """The computations named in attributes, in attribute order."""
        called: list[HloComputation] = []
        for value in self.attrs.values():
            if isinstance(value, HloComputation):
                called.append(value)
            elif isinstance(value, tuple) and value and isinstance(value[0], HloComputation):
                called.extend(value)
        return called

    @property
    def is_root(self) -> bool:
        return self.parent is not None and self.parent.root is self

    def set_operand(self, number: int, new: HloInstruction) -> bool:
        """Replace one operand; False when it already was `new`."""
        old = self.operands[number]
        if old is new:
            return False
        self.operands = (*self.operands[:number], new, *self.operands[number + 1 :])
        _drop_use(old, self)
        new.users[self] = new.users.get(self, 0) + 1
        return True

    def set_operands(self, operands: Iterable[HloInstruction]) -> None:
        for operand in self.operands:
            _drop_use(operand, self)
        self.operands = tuple(operands)
        for operand in self.operands:
            operand.users[self] = operand.users.get(self, 0) + 1

    def replace_uses_with(self, new: HloInstruction) -> bool:
        """Make every user (and the root, if this is it) refer to `new` instead. Always True."""
        assert new is not self
        for user in list(self.users):
            user.set_operands(new if o is self else o for o in user.operands)
        if self.is_root:
            self.computation.root = new
        for other in list(self.control_successors):
            other.control_predecessors = tuple(
                new if p is self else p for p in other.control_predecessors
            )
        return True

    def replace(
        self,
        opcode: str | None = None,
        operands: Iterable[HloInstruction] | None = None,
        shape: Shape | None = None,
        attrs: dict[str, Any] | None = None,
        **changed_attrs: Any,
    ) -> HloInstruction:
        """Put a new instruction in this one's place and return it; this one is left without users.

        With `opcode`, attributes start from `attrs` (default none); without it, from this one's.
        """
        base = dict(self.attrs) if opcode is None and attrs is None else dict(attrs or {})
        new = self.computation.add(
            HloInstruction(
                opcode or self.opcode,
                shape or self.shape,
                self.operands if operands is None else operands,
                base | changed_attrs,
            ),
            name=self.name,
            before=self,
        )
        new.metadata = self.metadata
        new.frontend_attributes = self.frontend_attributes
        new.sharding = self.sharding
        self.replace_uses_with(new)
        return new

    def copy_on(self, operands: Iterable[HloInstruction]) -> HloInstruction:
        """The same operation on other operands, annotations included, in no computation yet."""
        copy = HloInstruction(self.opcode, self.shape, operands, dict(self.attrs))
        copy_annotations(self, copy)
        return copy

    def __repr__(self) -> str:
        operands = ", ".join(o.name for o in self.operands)
        return f"<{self.name} = {self.shape} {self.opcode}({operands})>"


def _dependencies(instruction: HloInstruction) -> Iterator[HloInstruction]:
    """What has to stand before an instruction."""
    return iter((*instruction.operands, *instruction.control_predecessors))


def _drop_use(operand: HloInstruction, user: HloInstruction) -> None:
    count = operand.users[user] - 1
    if count:
        operand.users[user] = count
    else:
        del operand.users[user]


class HloComputation:
    """A named, ordered set of instructions with a root. Instructions stand after their operands
    whenever a pass has finished; `sort()` restores that order."""

    __slots__ = ("_instructions", "execution_thread", "module", "name", "proto_extra", "root")

    def __init__(self, name: str):
        self.name = name
        self._instructions: dict[HloInstruction, None] = {}
        self.root: HloInstruction = None  # type: ignore[assignment]  # set by the builder
        self.module: HloModule | None = None
        self.execution_thread = ""
        self.proto_extra = b""

    @property
    def instructions(self) -> list[HloInstruction]:
        """A snapshot, in order: safe to change the computation while going through it."""
        if self.module is not None and self in self.module.unsorted:
            self.module.unsorted.discard(self)
            self.sort()
        return list(self._instructions)

    @property
    def parameters(self) -> list[HloInstruction]:
        """The parameters, by number."""
        found = [i for i in self._instructions if i.opcode == "parameter"]
        return sorted(found, key=lambda i: i.attrs["parameter_number"])

    def __len__(self) -> int:
        return len(self._instructions)

    def __contains__(self, instruction: HloInstruction) -> bool:
        return instruction in self._instructions

    def add(
        self,
        instruction: HloInstruction,
        name: str = "",
        before: HloInstruction | None = None,
    ) -> HloInstruction:
        """Take in a new instruction, under a name made unique in the module.

        It goes to the end; with `before`, the next look at `instructions` finds it in its place.
        """
        instruction.parent = self
        wanted = name or instruction.name or instruction.opcode
        instruction.name = self.module.unique_name(wanted) if self.module else wanted
        self._instructions[instruction] = None
        if before is not None and self.module is not None:
            self.module.unsorted.add(self)
        return instruction

    def remove(self, instruction: HloInstruction) -> None:
        """Take out an instruction that has no users and is not the root.

        What had to run before it must from now on run before what had to run after it.
        """
        if instruction.users or instruction is self.root:
            raise InternalError(f"removing {instruction.name!r}, which is still used")
        for operand in instruction.operands:
            _drop_use(operand, instruction)
        instruction.operands = ()
        for successor in list(instruction.control_successors):
            others = (p for p in successor.control_predecessors if p is not instruction)
            inherited = (*others, *instruction.control_predecessors)
            successor.control_predecessors = tuple(dict.fromkeys(inherited))
        instruction.control_predecessors = ()
        instruction.parent = None
        del self._instructions[instruction]

    def reorder(self, order: Iterable[HloInstruction]) -> None:
        """Set the order of the instructions; `order` holds each of them once."""
        instructions = dict.fromkeys(order)
        assert instructions.keys() == self._instructions.keys()
        self._instructions = instructions

    def sort(self) -> None:
        """Order instructions after their operands and control predecessors, else stably."""
        done: dict[HloInstruction, None] = {}
        for start in self._instructions:
            stack = [(start, _dependencies(start))] if start not in done else []
            while stack:
                instruction, waiting = stack[-1]
                for dependency in waiting:
                    if dependency not in done:
                        stack.append((dependency, _dependencies(dependency)))
                        break
                else:
                    stack.pop()
                    done[instruction] = None
        self._instructions = done

    def clone(self, name: str, module: HloModule | None = None) -> HloComputation:
        """A copy inside `module` (default: this one's); called computations are shared."""
        copy = HloComputation(name)
        (module or self.module)._adopt(copy)  # type: ignore[union-attr]
        mapping: dict[HloInstruction, HloInstruction] = {}
        for old in self.instructions:
            new = old.copy_on(mapping[o] for o in old.operands)
            new.control_predecessors = tuple(mapping[p] for p in old.control_predecessors)
            mapping[old] = copy.add(new, name=old.name)
        copy.root = mapping[self.root]
        copy.proto_extra = self.proto_extra
        return copy

    def __repr__(self) -> str:
        return f"<computation {self.name}, {len(self._instructions)} instructions>"


def copy_annotations(source: HloInstruction, target: HloInstruction) -> None:
    """Carry sharding, metadata, frontend attributes and backend config over."""
    target.sharding = source.sharding
    target.metadata = source.metadata
    target.frontend_attributes = source.frontend_attributes
    target.backend_config = source.backend_config
    target.origin = source.origin
    target.proto_extra = source.proto_extra


class HloModule:
    """A program: computations, one of them the entry.

    header holds the module attributes of HLO text that haloc carries or acts on, keyed by their
    text spelling, in parsed form:
      is_scheduled, alias_passthrough_params: bool; replica_count, num_partitions: int;
      input_output_alias: tuple of (output index, parameter number, parameter index, kind);
      buffer_donor: tuple of (parameter number, parameter index);
      entry_computation_layout: (tuple of parameter shapes, result shape);
      allow_spmd_sharding_propagation_to_{parameters,output}: tuple of bool;
      frontend_attributes: dict; anything else as the text after `=`.
    tables holds the FileNames/FunctionNames/FileLocations/StackFrames lines, keyed by header.
    """

    def __init__(self, name: str):
        self.name = name
        self.computations: dict[str, HloComputation] = {}
        self.entry: HloComputation = None  # type: ignore[assignment]  # set by the builder
        self.header: dict[str, Any] = {}
        self.tables: dict[str, list[str]] = {}
        self.proto_extra: bytes = b""
        self.unsorted: set[HloComputation] = set()
        self._names: dict[str, int] = {}

    def unique_name(self, wanted: str) -> str:
        """`wanted`, or `wanted.1`, `wanted.2`, ... so that no two instructions share a name."""
        if wanted not in self._names:
            self._names[wanted] = 1
            return wanted
        stem, dot, tail = wanted.rpartition(".")
        if not dot or not tail.isdigit():
            stem = wanted
        count = self._names.get(stem, 1)
        while (name := f"{stem}.{count}") in self._names:
            count += 1
        self._names[stem] = count + 1
        self._names[name] = 1
        return name

    def add_computation(self, name: str, entry: bool = False) -> HloComputation:
        """A new, empty computation under a name made unique."""
        computation = HloComputation(name)
        self._adopt(computation)
        if entry:
            self.entry = computation
        return computation

    def _adopt(self, computation: HloComputation) -> None:
        name, count = computation.name, 1
        while name in self.computations:
            name, count = f"{computation.name}.{count}", count + 1
        computation.name = name
        computation.module = self
        self.computations[name] = computation

    def instructions(self, opcode: str | None = None) -> Iterator[HloInstruction]:
        """All instructions (of one opcode), callees before callers; safe under mutation."""
        for computation in self.post_order():
            for instruction in computation.instructions:
                wanted = opcode is None or instruction.opcode == opcode
                if wanted and instruction.parent is not None:
                    yield instruction

    def post_order(self) -> list[HloComputation]:
        """Computations reachable from the entry, callees first, entry last.

        Raises InvalidArgumentError when a computation calls itself, directly or not.
        """
        order: dict[HloComputation, None] = {}
        stack: list[tuple[HloComputation, Iterator[HloComputation]]] = []
        active: set[HloComputation] = set()

        def push(c: HloComputation) -> None:
            if c in active:
                chain = " -> ".join(x.name for x, _ in stack)
                raise InvalidArgumentError(f"recursive call: {chain} -> {c.name}")
            active.add(c)
            stack.append((c, iter([k for i in c._instructions for k in i.called_computations])))

        push(self.entry)
        while stack:
            computation, callees = stack[-1]
            for callee in callees:
                if callee not in order:
                    push(callee)
                    break
            else:
                stack.pop()
                active.discard(computation)
                order[computation] = None
        return list(order)

    def sort(self) -> None:
        """Restore operand order in every computation that `replace` has touched."""
        while self.unsorted:
            self.unsorted.pop().sort()

    def remove_unreachable_computations(self) -> bool:
        live = self.post_order()
        changed = len(live) != len(self.computations)
        if changed:
            self.computations = {c.name: c for c in live}
        return changed

    def clone(self) -> HloModule:
        """A deep copy; constants share their (immutable) literals."""
        copy = HloModule(self.name)
        mapping: dict[HloComputation, HloComputation] = {}
        order = self.post_order()
        for computation in [c for c in self.computations.values() if c not in set(order)] + order:
            mapping[computation] = computation.clone(computation.name, copy)
        for computation in mapping.values():
            for instruction in computation._instructions:
                for key, value in instruction.attrs.items():
                    if isinstance(value, HloComputation):
                        instruction.attrs[key] = mapping[value]
                    elif (
                        isinstance(value, tuple) and value and isinstance(value[0], HloComputation)
                    ):
                        instruction.attrs[key] = tuple(mapping[v] for v in value)
        copy.entry = mapping[self.entry]
        copy.proto_extra = self.proto_extra
        copy.header = dict(self.header)
        copy.tables = {k: list(v) for k, v in self.tables.items()}
        return copy

    def __repr__(self) -> str:
        return f"<HloModule {self.name}, {len(self.computations)} computations>"
