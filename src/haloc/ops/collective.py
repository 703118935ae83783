"""all-gather, all-to-all, collective-broadcast and collective-permute: data moved in a group."""

from __future__ import annotations

import numpy as np

from haloc.errors import UnimplementedError
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.attrs import Dims, Pairs, Raw
from haloc.ops.collective_rules import (
    CHANNEL,
    CONSTRAIN,
    EXAMPLE_DTYPES,
    GLOBAL_IDS,
    GROUPS,
    NO_GROUPS,
    check_shards,
    collective_operands,
    example_operands,
    one_dimension,
    piece_of,
    resized,
    results_of,
    shard_count,
)
from haloc.ops.example import ExampleGraph
from haloc.ops.families import pick_dtype
from haloc.ops.participants import check_groups, check_pairs, listed_groups, participant_pairs
from haloc.ops.regions import one_or_tuple, text
from haloc.ops.table import (
    Attr,
    Effect,
    Evaluator,
    OpDef,
    Structure,
    attr,
    invalid,
    register,
)


def _like(instruction: HloInstruction, results: list[np.ndarray]) -> Value:
    return tuple(results) if len(instruction.operands) > 1 else results[0]


# --- all-gather --------------------------------------------------------------------------------

ALL_GATHER_ATTRS = (CHANNEL, GROUPS, Attr("dimensions", Dims()), CONSTRAIN, GLOBAL_IDS)


def gathered_shapes(instruction: HloInstruction, declared: Shape) -> list[Shape]:
    """The results of gathering the operands; `declared` tells the number of shards where
    replica_groups leave it open."""
    shapes = collective_operands(instruction)
    check_groups(instruction, same_size=True)
    dim = one_dimension(instruction, shapes, "all_gather_c1")
    results = []
    for part, whole in zip(shapes, results_of(declared, len(shapes))):
        shards = shard_count(instruction, part, whole, dim)
        results.append(resized(part, dim, part.dims[dim] * shards))
    return results


def evaluate_all_gather(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> list[np.ndarray]:
    meeting = context.meet(instruction, operands)
    (dim,) = attr(instruction, "dimensions")
    return [np.concatenate(shards, dim) for shards in zip(*meeting.values)]


def _infer_all_gather(instruction: HloInstruction) -> Shape:
    return one_or_tuple(gathered_shapes(instruction, instruction.shape))


def _evaluate_all_gather(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    results = evaluate_all_gather(instruction, operands, context)
    check_gathered(instruction, results, instruction.shape)
    return _like(instruction, results)


def check_gathered(instruction: HloInstruction, results: list[np.ndarray], shape: Shape) -> None:
    """As many participants met as `shape` has shards of the operands."""
    for x, wanted in zip(results, shape.leaves()):
        if not wanted.holds(x.shape):
            (dim,) = attr(instruction, "dimensions")
            invalid(
                instruction,
                f"the result {text(wanted)} wants {wanted.dims[dim]} in dimension {dim}, but the "
                f"participants that work together give {x.shape[dim]}",
                "all_gather_c6",
            )


def _example_all_gather(graph: ExampleGraph) -> HloInstruction:
    operands = example_operands(graph, least_rank=1)
    return graph.add(
        "all-gather",
        one_or_tuple([o.shape for o in operands]),
        operands,
        replica_groups=NO_GROUPS,
        dimensions=(0,),
    )


register(
    OpDef(
        opcode="all-gather",
        operands=("operands*",),
        attrs=ALL_GATHER_ATTRS,
        infer=_infer_all_gather,
        evaluate=_evaluate_all_gather,
        any_size=True,
        lower=Structure.COLLECTIVE,
        effect=Effect.STATEFUL,
        example=_example_all_gather,
        spec="all_gather",
    )
)


# --- all-to-all --------------------------------------------------------------------------------


def _infer_all_to_all(instruction: HloInstruction) -> Shape:
    shapes = collective_operands(instruction)
    check_groups(instruction, same_size=True)
    groups = listed_groups(instruction)
    if attr(instruction, "dimensions") is None:
        return _infer_tuple_form(instruction, shapes)
    dim = one_dimension(instruction, shapes, "all_to_all_c1")
    if len(shapes) > 1:
        invalid(instruction, f"with dimensions takes 1 operand, {len(shapes)} given")
    if groups and shapes[0].dims[dim] % len(groups[0]):
        fault = f"dimension {dim} of {text(shapes[0])} is not split evenly by {len(groups[0])}"
        invalid(instruction, fault, "all_to_all_c2")
    return shapes[0]


def _infer_tuple_form(instruction: HloInstruction, shapes: list[Shape]) -> Shape:
    """One operand for each participant, all of one shape; the result is always a tuple."""
    groups = listed_groups(instruction)
    if groups and len(shapes) != len(groups[0]):
        invalid(
            instruction,
            f"takes an operand for each of the {len(groups[0])} participants of a group, "
            f"{len(shapes)} given",
        )
    for number, shape in enumerate(shapes):
        if not shape.compatible(shapes[0]):
            fault = f"operand {number} is {text(shape)}, operand 0 {text(shapes[0])}"
            invalid(instruction, f"{fault}; they must be the same")
    return tuple_shape(*shapes)


def _evaluate_all_to_all(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    meeting = context.meet(instruction, operands)
    dims = attr(instruction, "dimensions")
    if dims is None:
        check_shards(instruction, len(operands), meeting, "exchanges")
        return tuple(np.array(theirs[meeting.place]) for theirs in meeting.values)
    pieces = [piece_of(instruction, x, dims[0], meeting) for (x,) in meeting.values]
    return np.concatenate(pieces, dims[0])


def _example_all_to_all(graph: ExampleGraph) -> HloInstruction:
    operand = graph.operand(pick_dtype(graph, EXAMPLE_DTYPES), graph.dims(1))
    if graph.rng.random() < 0.5:
        shape, form = tuple_shape(operand.shape), {}
    else:
        shape, form = operand.shape, {"dimensions": (0,)}
    return graph.add("all-to-all", shape, [operand], replica_groups=NO_GROUPS, **form)


register(
    OpDef(
        opcode="all-to-all",
        operands=("operands*",),
        # dimensions, of an array: the dimension to split and join. Without, the operands are
        # exchanged one by one.
        attrs=(CHANNEL, GROUPS, CONSTRAIN, Attr("dimensions", Dims(), None)),
        infer=_infer_all_to_all,
        evaluate=_evaluate_all_to_all,
        any_size=True,
        lower=Structure.COLLECTIVE,
        effect=Effect.STATEFUL,
        example=_example_all_to_all,
        spec="all_to_all",
    )
)


# --- collective-broadcast ----------------------------------------------------------------------


def _infer_collective_broadcast(instruction: HloInstruction) -> Shape:
    shapes = collective_operands(instruction)
    check_groups(instruction, same_size=False)
    return one_or_tuple(shapes)


def _evaluate_collective_broadcast(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    """What the first member of the group holds."""
    first = context.meet(instruction, operands).values[0]
    return _like(instruction, [np.array(x) for x in first])


def _example_collective_broadcast(graph: ExampleGraph) -> HloInstruction:
    operands = example_operands(graph)
    shape = one_or_tuple([o.shape for o in operands])
    return graph.add("collective-broadcast", shape, operands, replica_groups=NO_GROUPS)


register(
    OpDef(
        opcode="collective-broadcast",
        operands=("operands*",),
        attrs=(CHANNEL, GROUPS),
        infer=_infer_collective_broadcast,
        evaluate=_evaluate_collective_broadcast,
        any_size=True,
        lower=Structure.COLLECTIVE,
        effect=Effect.STATEFUL,
        example=_example_collective_broadcast,
        spec="collective_broadcast",
    )
)


# --- collective-permute ------------------------------------------------------------------------

PERMUTE_ATTRS = (
    CHANNEL,
    Attr("source_target_pairs", Pairs(), ()),
    Attr("slice_sizes", Raw(), ""),
)


def permuted_shapes(instruction: HloInstruction) -> list[Shape]:
    """The results of a collective-permute: as the operands, or with slice_sizes operand 1."""
    shapes = [o.shape for o in instruction.operands]
    check_pairs(instruction, attr(instruction, "source_target_pairs"))
    if attr(instruction, "slice_sizes"):
        if len(shapes) != 4:
            wanted = "(input, output, input start indices, output start indices)"
            invalid(instruction, f"with slice_sizes takes 4 operands {wanted}, {len(shapes)} given")
        return [shapes[1]]
    return collective_operands(instruction)


def check_no_slices(instruction: HloInstruction) -> None:
    """UnimplementedError for slice_sizes. Only TPU's own passes make it, no StableHLO says it, and
    it is not laid down whose output start indices hold, the source's or the target's."""
    if attr(instruction, "slice_sizes"):
        raise UnimplementedError(
            f"{instruction.opcode} {instruction.name}: slice_sizes, a permute of slices in place, "
            "which is for TPUs only"
        )


def evaluate_permute(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> list[np.ndarray]:
    """What the source of the pair with this target holds; zeros without one."""
    check_no_slices(instruction)
    pairs = participant_pairs(instruction, *context.participants)
    replica, partition = context.device_id
    own = replica * context.participants[1] + partition
    meeting = context.meet(instruction, (own, operands))
    held = dict(meeting.values)
    for source, target in pairs:
        if target == own:
            return [np.array(x) for x in held[source]]
    return [np.zeros_like(x) for x in map(np.asarray, operands)]


def _infer_collective_permute(instruction: HloInstruction) -> Shape:
    return one_or_tuple(permuted_shapes(instruction))


def _evaluate_collective_permute(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    return _like(instruction, evaluate_permute(instruction, operands, context))


def _example_collective_permute(graph: ExampleGraph) -> HloInstruction:
    operand = graph.operand(pick_dtype(graph, EXAMPLE_DTYPES), graph.dims())
    pairs = graph.pick([(), ((0, 0),)])
    return graph.add("collective-permute", operand.shape, [operand], source_target_pairs=pairs)


register(
    OpDef(
        opcode="collective-permute",
        operands=("operands*",),
        attrs=PERMUTE_ATTRS,
        infer=_infer_collective_permute,
        evaluate=_evaluate_collective_permute,
        any_size=True,
        lower=Structure.COLLECTIVE,
        effect=Effect.STATEFUL,
        example=_example_collective_permute,
        spec="collective_permute",
    )
)
