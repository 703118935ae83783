"""ragged-all-to-all: each participant sends slices of rows to the others, of sizes known late."""

from __future__ import annotations

import numpy as np

from haloc.ir import dtype as dt
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.collective_rules import CHANNEL, EXAMPLE_DTYPES, GROUPS, NO_GROUPS
from haloc.ops.example import ExampleGraph
from haloc.ops.families import pick_dtype
from haloc.ops.participants import check_groups, listed_groups
from haloc.ops.regions import text
from haloc.ops.rules import array_operands
from haloc.ops.table import Effect, Evaluator, OpDef, Structure, invalid, register

OPERANDS = ("operand", "output", "input_offsets", "send_sizes", "output_offsets", "recv_sizes")


def _infer(instruction: HloInstruction) -> Shape:
    operand, output, *tables = array_operands(instruction)
    check_groups(instruction, same_size=True)
    rows_fit = operand.rank and operand.rank == output.rank and operand.dims[1:] == output.dims[1:]
    if not rows_fit or operand.dtype is not output.dtype:
        invalid(
            instruction,
            f"operand {text(operand)} and output {text(output)} must have one element type and "
            "equal dimensions but for the first",
        )
    for name, table in zip(OPERANDS[2:], tables):
        if table.rank != 1 or not table.dtype.is_integer or table.dims != tables[0].dims:
            invalid(
                instruction,
                f"{name} is {text(table)}, wanted integers in one dimension, as many as "
                f"{OPERANDS[2]}, {text(tables[0])}",
            )
    groups = listed_groups(instruction)
    if groups and tables[0].dims[0] % len(groups[0]):
        invalid(
            instruction,
            f"{tables[0].dims[0]} slices are not as many for each of the {len(groups[0])} "
            "participants of a group",
        )
    return output


def _evaluate(instruction: HloInstruction, operands: list[Value], context: Evaluator) -> Value:
    """output, with what every member sends here written over it.

    Each member's tables list, participant by participant, the slices for it: rows
    input_offsets[i] to input_offsets[i] + send_sizes[i] of the operand go to the receiver's rows
    from output_offsets[i] on. recv_sizes says how many rows come, and must agree.
    """
    meeting = context.meet(instruction, operands)
    result = np.array(operands[1])
    members, own_recv = len(meeting.values), np.asarray(operands[5])
    if len(own_recv) % members:
        fault = f"{len(own_recv)} slices are not as many for each of {members} participants"
        invalid(instruction, fault)
    each = len(own_recv) // members
    for number, theirs in enumerate(meeting.values):
        rows, _, starts, sizes, targets, _ = map(np.asarray, theirs)
        for piece in range(each):
            at = meeting.place * each + piece
            start, size, target = int(starts[at]), int(sizes[at]), int(targets[at])
            _check(instruction, rows.shape[0], result.shape[0], start, size, target)
            expected = int(own_recv[number * each + piece])
            if size != expected:
                fault = f"member {number} of the group sends {size} rows, recv_sizes has {expected}"
                invalid(instruction, fault)
            result[target : target + size] = rows[start : start + size]
    return result


def _check(
    instruction: HloInstruction, rows: int, places: int, start: int, size: int, target: int
) -> None:
    """A slice of `size` rows lies inside the sender's rows and the receiver's places."""
    if size < 0 or not 0 <= start <= rows - size:
        fault = f"rows {start} to {start + size} of an operand of {rows} rows"
        invalid(instruction, f"send_sizes and input_offsets name {fault}")
    if not 0 <= target <= places - size:
        fault = f"rows {target} to {target + size} of an output of {places} rows"
        invalid(instruction, f"send_sizes and output_offsets name {fault}")


def _example(graph: ExampleGraph) -> HloInstruction:
    dims = graph.dims(1)
    dtype = pick_dtype(graph, EXAMPLE_DTYPES)
    size = int(graph.rng.integers(dims[0] + 1))
    start = int(graph.rng.integers(dims[0] - size + 1))
    tables = [graph.constant([value], dt.S32) for value in (start, size, 0, size)]
    operands = [graph.operand(dtype, dims), graph.operand(dtype, dims), *tables]
    return graph.add("ragged-all-to-all", Shape(dtype, dims), operands, replica_groups=NO_GROUPS)


register(
    OpDef(
        opcode="ragged-all-to-all",
        operands=OPERANDS,
        attrs=(CHANNEL, GROUPS),
        infer=_infer,
        evaluate=_evaluate,
        any_size=True,
        lower=Structure.COLLECTIVE,
        effect=Effect.STATEFUL,
        example=_example,
        spec="XLA ragged-all-to-all",
    )
)
