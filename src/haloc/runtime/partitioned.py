"""Which modules run as they are on several partitions, and the shardings of their leaves.

Partitioned and unpartitioned modules look alike: both say num_partitions=4 and annotate parameters
with their sharding. In the one the shapes are those of shards, in the other those of whole arrays.
"""

from __future__ import annotations

from collections.abc import Iterator

from haloc.errors import UnimplementedError
from haloc.ir.module import HloInstruction, HloModule
from haloc.ir.sharding import REPLICATED, HloSharding, ShardingKind

_WHOLE = (ShardingKind.REPLICATED, ShardingKind.MANUAL, ShardingKind.UNKNOWN)

_TO_PARTITION = (
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
)
"""custom-calls that only the partitioner gives a meaning."""


def check_partitioned(module: HloModule, num_partitions: int) -> None:
    """UnimplementedError, naming the instruction, for a module of several partitions that has yet
    to be partitioned.

    A scheduled module (`is_scheduled=true`) is XLA's after partitioning: its shapes are those of
    one partition. In another one, no value may be spread over devices; if all are replicated or
    manual, it means the same either way.
    """
    if num_partitions == 1 or module.header.get("is_scheduled"):
        return
    for computation in module.post_order():
        for instruction in computation.instructions:
            reason = _spread(instruction)
            if reason:
                raise UnimplementedError(
                    f"module {module.name} is to be partitioned over num_partitions="
                    f"{num_partitions}: {instruction.name} {reason}. haloc runs modules that are "
                    "partitioned already (is_scheduled=true says so), replicated or manual"
                )


def _spread(instruction: HloInstruction) -> str:
    """What about an instruction asks for partitioning; "" if nothing does."""
    if instruction.opcode == "custom-call":
        target = instruction.attrs.get("custom_call_target")
        if target in _TO_PARTITION:
            return f"is a custom-call to {target}"
    for leaf in _leaves(instruction.sharding):
        is_mesh_of_whole = leaf.kind is ShardingKind.MESH and not any(
            d.axes for d in leaf.dim_shardings
        )
        if leaf.kind not in _WHOLE and set(leaf.tiles) != {1} and not is_mesh_of_whole:
            return f"has sharding={leaf}"
    return ""


def _leaves(sharding: HloSharding | None) -> Iterator[HloSharding]:
    if sharding is None:
        return
    if not sharding.is_tuple:
        yield sharding
        return
    for element in sharding.elements:
        yield from _leaves(element)


def leaf_shardings(instructions: list[HloInstruction]) -> list[HloSharding] | None:
    """The shardings of the array leaves of some instructions, replicated where there is no
    annotation; None if there is none at all."""
    if all(i.sharding is None for i in instructions):
        return None
    found: list[HloSharding] = []
    for instruction in instructions:
        leaves = list(_leaves(instruction.sharding)) or [REPLICATED]
        count = sum(leaf.is_array for leaf in instruction.shape.leaves())
        found += leaves if len(leaves) == count else leaves[:1] * count
    return found
