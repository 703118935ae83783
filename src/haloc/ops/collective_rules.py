"""What rows of collectives share: attributes, checks, and how many shards there are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from haloc.ir import dtype as dt
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import Bool, Groups, Int
from haloc.ops.example import ExampleGraph
from haloc.ops.families import pick_dtype
from haloc.ops.participants import GroupMode, group_mode, listed_groups
from haloc.ops.regions import text
from haloc.ops.replica_groups import ReplicaGroups
from haloc.ops.rules import array_operands, check_dims_in_range, label
from haloc.ops.table import Attr, Meeting, attr, invalid

CHANNEL = Attr("channel_id", Int(), 0)
GROUPS = Attr("replica_groups", Groups(), None, "*")
GLOBAL_IDS = Attr("use_global_device_ids", Bool(), False)
CONSTRAIN = Attr("constrain_layout", Bool(), False)

NO_GROUPS = ReplicaGroups()
"""replica_groups={}: all participants work together."""

EXAMPLE_DTYPES = frozenset({dt.F32, dt.S32, dt.BF16, dt.U8, dt.F64, dt.C64, dt.PRED})


def collective_operands(instruction: HloInstruction) -> list[Shape]:
    """The operands' shapes: arrays, at least one."""
    shapes = array_operands(instruction)
    if not shapes:
        invalid(instruction, "takes at least 1 operand, 0 given")
    return shapes


def results_of(shape: Shape, count: int) -> list[Shape | None]:
    """The array shapes of `count` results in a declared shape; None for what it does not say."""
    parts = [shape] if count == 1 else list(shape.elements)
    known: list[Shape | None] = [s if s.is_array else None for s in parts]
    return known if len(parts) == count else [None] * count


def one_dimension(instruction: HloInstruction, shapes: Sequence[Shape], constraint: str) -> int:
    """The single entry of `dimensions`, in range for every operand."""
    dims = attr(instruction, "dimensions")
    if len(dims) != 1:
        invalid(instruction, f"wants one dimension, given {len(dims)}", label(instruction, "i1"))
    for shape in shapes:
        check_dims_in_range(instruction, "dimensions", dims, shape.rank, constraint)
    return int(dims[0])


def resized(shape: Shape, dim: int, size: int) -> Shape:
    """The shape with another size, or bound, of one dimension."""
    dims = (*shape.dims[:dim], size, *shape.dims[dim + 1 :])
    return Shape(shape.dtype, dims, None, shape.dynamic)


def shard_count(
    instruction: HloInstruction, part: Shape | None, whole: Shape | None, dim: int
) -> int:
    """How many shards of `part` make `whole` along `dim`: what replica_groups say, or, where
    they leave it open ({}, or groups of replicas with all their partitions), what the two shapes
    do; 1 when nothing is known."""
    groups = listed_groups(instruction)
    if groups and group_mode(instruction) is not GroupMode.CROSS_REPLICA_AND_PARTITION:
        return len(groups[0])
    if part is None or whole is None or not dim < min(part.rank, whole.rank):
        return 1
    return max(1, whole.dims[dim] // part.dims[dim]) if part.dims[dim] else 1


def check_shards(instruction: HloInstruction, shards: int, meeting: Meeting, does: str) -> None:
    """The group that met has as many members as the shapes say: "gathers 4 shards"."""
    members = len(meeting.values)
    if members != shards:
        invalid(
            instruction,
            f"{does} {shards} shards, {text(instruction.operands[0].shape)} to "
            f"{text(instruction.shape)}, but {members} participants work together",
        )


def piece_of(instruction: HloInstruction, value: Value, dim: int, meeting: Meeting) -> np.ndarray:
    """This participant's piece of a value that is split among all that met."""
    whole, members = np.asarray(value), len(meeting.values)
    if whole.shape[dim] % members:
        invalid(
            instruction,
            f"dimension {dim} has size {whole.shape[dim]}, which is not split evenly by "
            f"{members} participants",
        )
    return np.split(whole, members, dim)[meeting.place]


def example_operands(graph: ExampleGraph, least_rank: int = 0) -> list[HloInstruction]:
    """One or two arrays, of any types, with elements: StableHLO gathers nothing else."""
    dims = [tuple(max(1, d) for d in graph.dims(least_rank)) for _ in range(graph.pick([1, 1, 2]))]
    return [graph.operand(pick_dtype(graph, EXAMPLE_DTYPES), d) for d in dims]
