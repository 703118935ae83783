"""The partitioner: whole arrays to shards, along the shardings that the module states.

Elementwise ops run on shards, and so does everything inside manual regions, which is written for
shards already. Any other op runs whole on every partition, on operands gathered for it: right for
every program, and fast for those written with manual regions (shard_map, pmap).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from haloc.errors import UnimplementedError
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape
from haloc.ir.sharding import HloSharding, tuple_sharding
from haloc.ops.expand import Beside
from haloc.ops.table import Effect, Structure, op
from haloc.passes.call_inliner import call_inliner
from haloc.passes.dce import dce
from haloc.spmd.resharding import own_shard, whole_array
from haloc.spmd.tiling import Tiling, tiling_of

TO_MANUAL = ("SPMDFullToShardShape", "xla.sdy.GlobalToLocalShape")
FROM_MANUAL = ("SPMDShardToFullShape", "xla.sdy.LocalToGlobalShape")
HINT = ("Sharding", "xla.sdy.FuncResultSharding")
"""custom-calls that mean something to the partitioner only."""


class _Manual:
    def __repr__(self) -> str:
        return "manual"


MANUAL = _Manual()
"""A value that each partition has one of its own of."""

State: TypeAlias = "Tiling | _Manual | tuple[Any, ...] | None"
"""Where a value is: in tiles, one on each partition, whole on all (None); of a tuple's members."""


@dataclass
class _Placed:
    """An instruction of the partitioned module. shape: of the whole value."""

    local: HloInstruction
    shape: Shape
    state: State


def spmd_partition(module: HloModule, num_partitions: int, num_replicas: int = 1) -> bool:
    """Turn `module` into what each of `num_partitions` partitions runs. True: it has changed.

    Parameters and results get the shapes of their shards and keep their shardings; those without
    one are whole on every partition. Raises UnimplementedError, naming the instruction, for
    shardings over part of the devices and for ops that must happen once and would on every
    partition.
    """
    call_inliner(module)
    partitioner = _Partitioner(module, num_partitions, num_replicas)
    partitioner.entry()
    stated = module.header.get("entry_computation_layout")
    if stated is not None:  # of whole arrays; shards lie as these do
        shards = zip(module.entry.parameters, stated[0], strict=True)
        parameters = tuple(p.shape.with_layouts_of(whole) for p, whole in shards)
        result = module.entry.root.shape.with_layouts_of(stated[1])
        module.header["entry_computation_layout"] = (parameters, result)
    module.header["num_partitions"] = num_partitions
    dce(module)
    return True


@dataclass
class _Partitioner:
    module: HloModule
    partitions: int
    replicas: int
    placed: dict[HloInstruction, _Placed] = field(default_factory=dict)
    gathered: dict[HloInstruction, HloInstruction] = field(default_factory=dict)
    channel: int = 0

    def __post_init__(self) -> None:
        used = [
            i.attrs.get("channel_id", 0)
            for c in self.module.computations.values()
            for i in c.instructions
        ]
        self.channel = max([0, *(u for u in used if isinstance(u, int))])

    def entry(self) -> None:
        entry = self.module.entry
        root = entry.root
        for parameter in entry.parameters:
            self._place_parameter(parameter)
        self._walk(entry)
        wanted = self._annotated(root, root.shape, root.sharding)
        sharding = root.sharding
        entry.root = self._moved(Beside(root), self.placed[root], wanted)
        entry.root.sharding = sharding
        entry.sort()

    def _place_parameter(self, parameter: HloInstruction) -> None:
        whole = parameter.shape
        state = self._annotated(parameter, whole, parameter.sharding)
        parameter.shape = _shard_shape(whole, state)
        self.placed[parameter] = _Placed(parameter, whole, state)

    def region(self, computation: HloComputation) -> None:
        """A computation called on whole values, which gives whole values."""
        root = computation.root
        for parameter in computation.parameters:
            self.placed[parameter] = _Placed(parameter, parameter.shape, None)
        self._walk(computation)
        computation.root = self._moved(Beside(root), self.placed[root], None)
        computation.sort()

    def _walk(self, computation: HloComputation) -> None:
        for instruction in list(computation.instructions):
            if instruction in self.placed:
                continue
            try:
                self.placed[instruction] = self._place(instruction)
            except UnimplementedError as error:
                error.add_note(f"partitioning {instruction.opcode} {instruction.name}")
                raise

    def _annotated(
        self, instruction: HloInstruction, shape: Shape, sharding: HloSharding | None
    ) -> State:
        """What an instruction's sharding says of its value."""
        if sharding is None:
            return None
        if shape.is_tuple:
            each = sharding.elements if sharding.is_tuple else (sharding,) * len(shape.elements)
            if len(each) != len(shape.elements):
                each = tuple(_regrouped(shape, iter(each)))
            return tuple(self._annotated(instruction, s, e) for s, e in zip(shape.elements, each))
        if sharding.is_tuple:
            return self._annotated(instruction, shape, sharding.elements[0])
        if sharding.is_manual or not shape.is_array:
            return MANUAL if sharding.is_manual else None
        return tiling_of(sharding, len(shape.dims), self.partitions)

    # --- One instruction --------------------------------------------------------------------------

    def _place(self, instruction: HloInstruction) -> _Placed:
        row, shape = op(instruction), instruction.shape
        operands = [self.placed[o] for o in instruction.operands]
        target = instruction.attrs.get("custom_call_target")
        if target in TO_MANUAL:
            return self._to_manual(instruction, operands[0])
        if target in FROM_MANUAL:
            tiling = self._annotated(instruction, shape, instruction.sharding)
            return _Placed(operands[0].local, shape, tiling)
        if target in HINT:
            return self._hinted(instruction, operands[0])
        if instruction.opcode == "tuple":
            local = Beside(instruction).tuple(*(o.local for o in operands))
            return _Placed(local, shape, tuple(o.state for o in operands))
        if instruction.opcode == "get-tuple-element":
            return self._element(instruction, operands[0])
        if any(_is_manual(o.state) for o in operands) or (
            not operands and row.effect is Effect.STATEFUL
        ):
            return self._as_it_is(instruction, operands, MANUAL)
        if row.is_elementwise and (tiling := _common_tiling(operands)) is not None:
            return self._on_shards(instruction, operands, tiling)
        _refuse_repeated(instruction)
        for called in instruction.called_computations:
            if instruction.opcode != "fusion" and row.lower is Structure.CONTROL:
                self.region(called)
        placed = self._as_it_is(instruction, operands, None)
        return self._hinted(instruction, placed)

    def _element(self, instruction: HloInstruction, whole: _Placed) -> _Placed:
        index = instruction.attrs["index"]
        local = Beside(instruction).element(whole.local, index)
        state = whole.state[index] if isinstance(whole.state, tuple) else whole.state
        return _Placed(local, instruction.shape, state)

    def _as_it_is(
        self, instruction: HloInstruction, operands: list[_Placed], state: State
    ) -> _Placed:
        """The same op, on whole (or manual) operands."""
        at = Beside(instruction)
        instruction.set_operands([self._moved(at, o, None, keep_manual=True) for o in operands])
        return _Placed(instruction, instruction.shape, state)

    def _on_shards(
        self, instruction: HloInstruction, operands: list[_Placed], tiling: Tiling
    ) -> _Placed:
        at = Beside(instruction)
        locals_ = [self._moved(at, o, tiling if o.shape.dims else None) for o in operands]
        shape = tiling.shard_shape(instruction.shape)
        made = at.add(instruction.opcode, shape, locals_, **instruction.attrs)
        return self._hinted(instruction, _Placed(made, instruction.shape, tiling))

    def _hinted(self, instruction: HloInstruction, placed: _Placed) -> _Placed:
        """A value moved to where the instruction's sharding wants it."""
        if instruction.sharding is None or _is_manual(placed.state):
            return _Placed(placed.local, instruction.shape, placed.state)
        state = self._annotated(instruction, instruction.shape, instruction.sharding)
        if _is_manual(state):
            return _Placed(placed.local, instruction.shape, placed.state)
        local = self._moved(Beside(instruction), placed, state, after=placed.local is instruction)
        return _Placed(local, instruction.shape, state)

    def _to_manual(self, instruction: HloInstruction, operand: _Placed) -> _Placed:
        if operand.local.shape.dims != instruction.shape.dims:
            raise UnimplementedError(
                f"{instruction.name} takes shards of {instruction.shape} where its operand has "
                f"{operand.local.shape}"
            )
        return _Placed(operand.local, instruction.shape, MANUAL)

    # --- Moving values ----------------------------------------------------------------------------

    def _moved(
        self,
        at: Beside,
        value: _Placed,
        wanted: State,
        *,
        keep_manual: bool = False,
        after: bool = False,
    ) -> HloInstruction:
        """The value where it is wanted. after: the instruction at hand makes it, and what moves it
        stands behind."""
        if value.state == wanted or (keep_manual and value.state is MANUAL):
            return value.local
        if value.shape.is_tuple:
            return self._moved_tuple(at, value, wanted, keep_manual=keep_manual, after=after)
        if value.state is MANUAL:
            raise UnimplementedError(
                f"{value.local.name} is a value of each partition's own where one of all is wanted"
            )
        if after:
            at = _Behind(at.instruction)
        local = value.local
        if isinstance(value.state, Tiling):
            local = self._gathered(at, value, value.state)
        return local if wanted is None else own_shard(at, local, wanted)  # type: ignore[arg-type]

    def _gathered(self, at: Beside, value: _Placed, tiling: Tiling) -> HloInstruction:
        found = self.gathered.get(value.local)
        if found is None:
            channel = self.channel + 1
            found = whole_array(at, value.local, value.shape, tiling, self.replicas, channel)
            self.channel += len(tiling.split_dimensions())
            self.gathered[value.local] = found
        return found

    def _moved_tuple(
        self, at: Beside, value: _Placed, wanted: State, *, keep_manual: bool, after: bool
    ) -> HloInstruction:
        count = len(value.shape.elements)
        states = value.state if isinstance(value.state, tuple) else (value.state,) * count
        goals = wanted if isinstance(wanted, tuple) else (wanted,) * count
        if after:
            at = _Behind(at.instruction)
        if all(s == g or (keep_manual and _is_manual(s)) for s, g in zip(states, goals)):
            return value.local
        members = [
            self._moved(
                at, _Placed(at.element(value.local, n), shape, state), goal, keep_manual=keep_manual
            )
            for n, (shape, state, goal) in enumerate(zip(value.shape.elements, states, goals))
        ]
        return at.tuple(*members)


class _Behind(Beside):
    """Adds instructions at the end; sorting the computation puts them in order."""

    def add(self, opcode: str, shape: Shape, operands: Any = (), **attrs: Any) -> HloInstruction:
        new = HloInstruction(opcode, shape, operands, attrs)
        new.metadata = self.instruction.metadata
        return self.computation.add(new)


def _is_manual(state: State) -> bool:
    return state is MANUAL or (isinstance(state, tuple) and any(map(_is_manual, state)))


def _common_tiling(operands: list[_Placed]) -> Tiling | None:
    """The tiling of the first operand that has one."""
    return next((o.state for o in operands if isinstance(o.state, Tiling)), None)


def _shard_shape(shape: Shape, state: State) -> Shape:
    if isinstance(state, tuple):
        members = [_shard_shape(s, e) for s, e in zip(shape.elements, state)]
        return Shape(shape.dtype, elements=tuple(members))
    return state.shard_shape(shape) if isinstance(state, Tiling) else shape


def _regrouped(shape: Shape, leaves: Any) -> list[HloSharding]:
    """Shardings of a tuple's leaves, as those of its members."""
    found = []
    for element in shape.elements:
        if element.is_tuple:
            found.append(tuple_sharding(*_regrouped(element, leaves)))
        else:
            found.append(next(leaves))
    return found


def _refuse_repeated(instruction: HloInstruction) -> None:
    row = op(instruction)
    happens = row.effect is Effect.SIDE_EFFECT or instruction.attrs.get(
        "custom_call_has_side_effect"
    )
    if row.lower in (Structure.COLLECTIVE, Structure.POINT_TO_POINT) or happens:
        raise UnimplementedError(
            f"{instruction.opcode} {instruction.name} outside a manual region would happen on "
            "every partition"
        )
