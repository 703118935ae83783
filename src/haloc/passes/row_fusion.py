"""Normalisations as one kernel: a loop over rows that reduces each row and then uses it.

Softmax reads its rows twice (maximum, sum) before it can write them, and so needs three passes
over memory as separate kernels. In one kernel the row stays in cache between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from haloc.analysis.call_graph import sequenced_computations
from haloc.analysis.reducers import is_repeatable
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ops.table import Elementwise, attr, op
from haloc.passes.driver import hlo_pass
from haloc.passes.fusion_group import (
    MAX_INPUTS,
    is_fusible,
    is_heavy,
    is_reshape,
    is_scalar_constant,
)

MAX_INSTRUCTIONS = 120
MAX_ROW_BYTES = 1 << 18  # of one operand: a row has to stay in the second-level cache
MIN_ROWS = 16
MAX_REPEATED = 3  # instructions whose work a row's further passes repeat
UNCACHED_BYTES = 1 << 25


@hlo_pass("row-fusion")
def row_fusion(module: HloModule) -> bool:
    """fusion(x, reduce(x, minor dimensions)) => one fusion with the reduction inside

    Absorbs into a loop fusion, when it is their only user: reductions over the minor dimensions of
    arrays of the fusion's own dimensions whose results are only spread over rows again; small
    computations on such results; and then loops that made what was reduced, where their work is
    little enough to be done again for each pass over a row.
    """
    changed = False
    for computation in sequenced_computations(module):
        for fusion in reversed(computation.instructions):
            if fusion.opcode == "fusion" and fusion.parent is computation:
                changed |= _absorb_all(fusion)
    if changed:
        module.remove_unreachable_computations()
    return changed


def _absorb_all(fusion: HloInstruction) -> bool:
    body = fusion.attrs["calls"]
    if fusion.shape.is_tuple or body.root.opcode in ("reduce", "dynamic-update-slice"):
        return False
    changed, found = False, True
    while found:
        found = False
        for operand in fusion.operands:
            if _may_absorb(fusion, operand):
                _absorb(fusion, operand)
                changed = found = True
                break
    return changed


# --- What may be taken in ----------------------------------------------------------------------


def _may_absorb(fusion: HloInstruction, producer: HloInstruction) -> bool:
    if set(producer.users) != {fusion} or producer.is_root or producer.control_successors:
        return False
    if producer.control_predecessors or not producer.shape.is_array:
        return False
    inside = _instructions(producer)
    body = fusion.attrs["calls"]
    inputs = {*fusion.operands, *producer.operands} - {producer}
    if len(inputs) > MAX_INPUTS or len(inside) + len(body) > MAX_INSTRUCTIONS:
        return False
    root = inside[-1]
    if root.opcode == "reduce":
        return _is_row_reduce(fusion, root) and _is_spread_over_rows(fusion, producer)
    if root.opcode == "dynamic-update-slice" or not (
        is_fusible(producer) or producer.opcode == "fusion"
    ):
        return False
    if producer.shape.dims == fusion.shape.dims:
        return _has_rows(body) and _is_worth_repeating(fusion, inside)
    reduces = any(_instructions(o)[-1].opcode == "reduce" for o in producer.operands)
    return (reduces or _has_rows(body)) and _is_spread_over_rows(fusion, producer)


def _is_worth_repeating(fusion: HloInstruction, inside: list[HloInstruction]) -> bool:
    """Whether doing this work once more for each pass over a row costs less than keeping its result
    in memory. Measured: one exponential does for arrays that no cache holds, nothing more does."""
    work = [i for i in inside if not _is_light(i)]
    if len(work) > MAX_REPEATED or not all(isinstance(op(i).lower, Elementwise) for i in work):
        return False
    return fusion.shape.byte_size >= UNCACHED_BYTES or not any(is_heavy(i) for i in work)


def _is_light(instruction: HloInstruction) -> bool:
    """Parameters, constants and what only says where an element is read, in memory order."""
    return not instruction.operands or is_reshape(instruction) or instruction.opcode == "broadcast"


def _has_rows(body: HloComputation) -> bool:
    """Whether a reduction has been absorbed: only then is the loop over rows."""
    return any(i.opcode == "reduce" for i in body.instructions)


def _instructions(producer: HloInstruction) -> list[HloInstruction]:
    """What the producer computes, its root last."""
    body = producer.attrs.get("calls")
    if body is None:
        return [producer]
    return [*(i for i in body.instructions if i is not body.root), body.root]


def _is_row_reduce(fusion: HloInstruction, reduce: HloInstruction) -> bool:
    """Reduces the minor dimensions of an array with the fusion's dimensions, in cache."""
    if len(reduce.operands) != 2 or not is_repeatable(reduce):
        return False
    dims = fusion.shape.dims
    source = reduce.operands[0].shape
    kept = len(dims) - len(attr(reduce, "dimensions"))
    if source.dims != dims or sorted(attr(reduce, "dimensions")) != list(range(kept, len(dims))):
        return False
    row = prod(dims[kept:])
    rows = prod(dims[:kept])
    return 1 < row <= MAX_ROW_BYTES // source.dtype.byte_size and rows >= MIN_ROWS


def _is_spread_over_rows(fusion: HloInstruction, producer: HloInstruction) -> bool:
    """Whether the producer's elements are only repeated along minor dimensions."""
    body = fusion.attrs["calls"]
    dims = fusion.shape.dims
    parameters = [
        p for p in body.parameters if fusion.operands[p.attrs["parameter_number"]] is producer
    ]
    stack = list(parameters)
    while stack:
        value = stack.pop()
        if value is body.root:
            return False
        for user in value.users:
            if user.opcode == "broadcast":
                if not _repeats_rows(user, dims):
                    return False
            elif is_reshape(user) or isinstance(op(user).lower, Elementwise):
                # Still one value a row: through reshapes and on other such values.
                if user.shape.element_count != value.shape.element_count:
                    return False
                stack.append(user)
            else:
                return False
    return True


def _repeats_rows(broadcast: HloInstruction, dims: tuple[int, ...]) -> bool:
    """A broadcast to `dims` that maps what it reads, unit dimensions aside, to the major ones."""
    if broadcast.shape.dims != dims:
        return False
    source = broadcast.operands[0].shape.dims
    mapped = [d for d, n in zip(attr(broadcast, "dimensions"), source, strict=True) if n != 1]
    major = [d for d, n in enumerate(dims) if n != 1][: len(mapped)]
    return mapped == major


# --- Taking in ---------------------------------------------------------------------------------


def _absorb(fusion: HloInstruction, producer: HloInstruction) -> None:
    """Put the producer's instructions into the fusion's computation, in the parameter's place."""
    body = fusion.attrs["calls"]
    operands = [o for o in fusion.operands if o is not producer]
    places = {o: n for n, o in enumerate(operands)}
    for operand in producer.operands:
        if operand not in places and not is_scalar_constant(operand):
            places[operand] = len(operands)
            operands.append(operand)
    old = body.parameters
    parameters: dict[HloInstruction, HloInstruction] = {}
    for parameter, operand in zip(old, fusion.operands, strict=True):
        if operand is not producer:
            first = parameters.setdefault(operand, parameter)
            first.attrs["parameter_number"] = places[operand]
            if first is not parameter:
                parameter.replace_uses_with(first)
    for operand in operands:
        if operand not in parameters:
            attrs = {"parameter_number": places[operand]}
            new = HloInstruction("parameter", operand.shape, (), attrs)
            parameters[operand] = body.add(new, name=f"param_{places[operand]}")
    root = _copy(body, producer, parameters)
    for parameter, operand in zip(old, fusion.operands, strict=True):
        if operand is producer:
            parameter.replace_uses_with(root)
        if parameter not in parameters.values():
            body.remove(parameter)
    fusion.set_operands(operands)
    fusion.computation.remove(producer)
    body.sort()


def _copy(
    body: HloComputation,
    producer: HloInstruction,
    parameters: dict[HloInstruction, HloInstruction],
) -> HloInstruction:
    """The producer's instructions in `body`, reading its parameters; returns the root."""

    def value(operand: HloInstruction) -> HloInstruction:
        if operand in parameters:
            return parameters[operand]
        constant = HloInstruction("constant", operand.shape, (), dict(operand.attrs))
        return body.add(constant, name=operand.name)

    source = producer.attrs.get("calls")
    if source is None:
        copies = {o: value(o) for o in producer.operands}
        members: Iterator[HloInstruction] = iter([producer])
    else:
        copies = {p: value(o) for p, o in zip(source.parameters, producer.operands, strict=True)}
        members = (i for i in source.instructions if i.opcode != "parameter")
    last = producer
    for member in members:
        new = member.copy_on(copies[o] for o in member.operands)
        copies[member] = body.add(new, name=member.name)
        last = member
    return copies[last if source is None else source.root]
