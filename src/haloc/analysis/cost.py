"""Cost analysis: floating-point work and bytes moved, with XLA's keys and conventions.

Work is what the op rows say. Bytes are counted where memory is really read and written: at the
boundary of a fusion, not inside it; a slice reads what it gives; a tuple writes its pointers. A
loop's body counts once, of a conditional's branches the dearest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import prod
from typing import TypeAlias

from haloc.analysis.memory import TUPLE_POINTER_BYTES, packed_size_bytes
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape
from haloc.ops.table import Structure, op


def cost_analysis(module: HloModule) -> dict[str, float]:
    """{"flops", "transcendentals", "bytes accessed", "bytes accessed0{}", "bytes accessedout{}",
    "utilization0{}", ...} of one run of the entry. Quantities that are zero have no key.

    "bytes accessed<i>{}" sums over instructions the bytes they read of their operand i,
    "utilization<i>{}" how much of it that is.
    """
    known: dict[HloComputation, Costs] = {}
    for computation in module.post_order():
        known[computation] = _sum(_instruction_costs(i, known) for i in computation.instructions)
    costs = known[module.entry]
    return {key: float(value) for key, value in sorted(costs.items()) if value}


Costs: TypeAlias = "defaultdict[str, float]"


def _sum(parts: Iterable[Costs]) -> Costs:
    total: Costs = defaultdict(float)
    for part in parts:
        for key, value in part.items():
            total[key] += value
    return total


def _instruction_costs(instruction: HloInstruction, known: dict[HloComputation, Costs]) -> Costs:
    """known: the costs of the computations it calls."""
    row = op(instruction)
    if row.lower is Structure.CONTROL and instruction.opcode != "fusion":
        return _control_costs(instruction, known)
    work = row.cost(instruction)
    costs: Costs = defaultdict(float)
    costs["flops"] = work.flops
    costs["transcendentals"] = work.transcendentals
    read, written = _bytes_accessed(instruction)
    for number, (operand, size) in enumerate(zip(instruction.operands, read, strict=True)):
        costs[f"bytes accessed{number}{{}}"] += size
        costs[f"utilization{number}{{}}"] += _utilization(instruction, operand, size)
    costs["bytes accessedout{}"] = written
    costs["bytes accessed"] = sum(read) + written
    return costs


def _control_costs(instruction: HloInstruction, known: dict[HloComputation, Costs]) -> Costs:
    """while: condition and body once; call: its body; conditional: each quantity's greatest."""
    parts = [known[c] for c in instruction.called_computations]
    if instruction.opcode != "conditional":  # the one op that runs only one of what it calls
        return _sum(parts)
    greatest: Costs = defaultdict(float)
    for part in parts:
        for key, value in part.items():
            greatest[key] = max(greatest[key], value)
    return greatest


def _bytes_accessed(instruction: HloInstruction) -> tuple[list[int], int]:
    """(bytes read of each operand, bytes written)."""
    row = op(instruction)
    sizes = [shape_bytes(o.shape) for o in instruction.operands]
    out = shape_bytes(instruction.shape)
    if instruction.opcode == "fusion":
        return _fusion_reads(instruction, sizes), out
    if row.lower is Structure.NO_CODE:
        pointers = TUPLE_POINTER_BYTES * len(instruction.shape.elements)
        return [0] * len(sizes), pointers if instruction.opcode == "tuple" else 0
    partial = _PARTIAL.get(instruction.opcode)
    return partial(sizes, out) if partial else (sizes, out)


# Ops that touch part of an operand or of their result. This is XLA's bookkeeping, not the ops'
# meaning, so it stands here and not in their rows.
_PARTIAL = {
    "slice": lambda sizes, out: ([out], out),
    "dynamic-slice": lambda sizes, out: ([out, *sizes[1:]], out),
    "gather": lambda sizes, out: ([out, sizes[1]], out),
    "dynamic-update-slice": lambda sizes, out: ([0, *sizes[1:]], sizes[1]),
    "scatter": lambda sizes, out: _scatter_bytes(sizes),
    "cholesky": lambda sizes, out: ([sizes[0] // 2], out // 2),
    "triangular-solve": lambda sizes, out: ([sizes[0] // 2, sizes[1]], out),
}

_TAKES_A_PART = ("slice", "dynamic-slice", "gather")


def _scatter_bytes(sizes: list[int]) -> tuple[list[int], int]:
    """Operands n, indices, updates n: the updated elements are read and written."""
    updates = sizes[len(sizes) // 2 + 1 :]
    return [*updates, sizes[len(sizes) // 2], *updates], sum(updates)


def _fusion_reads(fusion: HloInstruction, sizes: list[int]) -> list[int]:
    """A parameter of which the fusion only takes slices counts as those slices."""
    read = []
    for parameter, size in zip(fusion.called_computations[0].parameters, sizes, strict=True):
        users = list(parameter.users)
        slices = [u for u in users if u.opcode in _PARTIAL and u.operands[0] is parameter]
        if users and len(slices) == len(users):
            size = min(size, sum(_bytes_accessed(u)[0][0] for u in slices))
        read.append(size)
    return read


def _utilization(instruction: HloInstruction, operand: HloInstruction, read: int) -> float:
    """The part of an operand that is used: a slice's, what it takes; 1 for all else but what a
    dynamic-update-slice replaces."""
    size = shape_bytes(operand.shape)
    if instruction.opcode in _TAKES_A_PART:
        return read / size if size else 0.0
    if instruction.opcode == "dynamic-update-slice" and operand is instruction.operands[0]:
        return 1.0 - shape_bytes(instruction.operands[1].shape) / size if size else 0.0
    return 1.0


def shape_bytes(shape: Shape) -> int:
    """Bytes of the arrays in a shape, sub-byte elements packed."""
    arrays = (leaf for leaf in shape.leaves() if leaf.is_array)
    return sum(packed_size_bytes(leaf.dtype, prod(leaf.dims)) for leaf in arrays)
