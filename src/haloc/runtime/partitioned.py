"""Which modules are to be partitioned, and the shardings of their leaves.

Partitioned and unpartitioned modules look alike: both say num_partitions=4 and annotate parameters
with their sharding. In the one the shapes are those of shards, in the other those of whole arrays.
"""

from __future__ import annotations

from collections.abc import Iterator

from haloc.ir.module import HloInstruction, HloModule
from haloc.ir.sharding import REPLICATED, HloSharding, ShardingKind
from haloc.spmd.partitioner import FROM_MANUAL, TO_MANUAL, spmd_partition

_WHOLE = (ShardingKind.REPLICATED, ShardingKind.MANUAL, ShardingKind.UNKNOWN)


def partitioned(module: HloModule, num_partitions: int, num_replicas: int) -> HloModule:
    """The module that each of `num_partitions` partitions runs: `module` itself if it is that
    already, else a partitioned copy.

    A scheduled module (`is_scheduled=true`) is XLA's after partitioning: its shapes are those of
    one partition. In another one that spreads no value over devices, where all is replicated or
    manual, the shapes are the same either way.
    Raises UnimplementedError, naming the instruction, for what cannot be partitioned yet.
    """
    if num_partitions == 1 or module.header.get("is_scheduled"):
        return module
    instructions = (i for c in module.post_order() for i in c.instructions)
    if not any(map(_is_spread, instructions)):
        return module
    copy = module.clone()
    spmd_partition(copy, num_partitions, num_replicas)
    return copy


def _is_spread(instruction: HloInstruction) -> bool:
    """Whether an instruction asks for partitioning."""
    target = instruction.attrs.get("custom_call_target")
    if target in TO_MANUAL or target in FROM_MANUAL:
        return True
    for leaf in _leaves(instruction.sharding):
        is_mesh_of_whole = leaf.kind is ShardingKind.MESH and not any(
            d.axes for d in leaf.dim_shardings
        )
        if leaf.kind not in _WHOLE and set(leaf.tiles) != {1} and not is_mesh_of_whole:
            return True
    return False


def _leaves(sharding: HloSharding | None) -> Iterator[HloSharding]:
    if sharding is None:
        return
    if not sharding.is_tuple:
        yield sharding
        return
    for element in sharding.elements:
        yield from _leaves(element)


def leaf_shardings(instructions: list[HloInstruction]) -> list[HloSharding] | None:
    """The shardings of the leaves of some instructions, replicated where there is no annotation;
    None if there is none at all."""
    if all(i.sharding is None for i in instructions):
        return None
    found: list[HloSharding] = []
    for instruction in instructions:
        leaves = list(_leaves(instruction.sharding)) or [REPLICATED]
        count = len(instruction.shape.leaves())
        found += leaves if len(leaves) == count else leaves[:1] * count
    return found
