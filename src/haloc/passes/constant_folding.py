"""Evaluation of what is known at compile time."""

from __future__ import annotations

import time

import numpy as np

from haloc.analysis.effects import Effects
from haloc.errors import UnimplementedError
from haloc.interpreter import Interpreter
from haloc.ir.literal import Literal, Value
from haloc.ir.module import HloInstruction, HloModule
from haloc.ops.expand import Beside
from haloc.ops.table import Elementwise, Indexed, Structure, op
from haloc.passes.driver import hlo_pass
from haloc.passes.rules.constants import scalar_value

FOLDED_STRUCTURES = (
    Structure.REDUCTION,
    Structure.CONTRACTION,
    Structure.UPDATE,
    Structure.SORT,
)


@hlo_pass("constant-folding")
def constant_folding(
    module: HloModule,
    *,
    max_bytes: int = 16384,
    max_flops: float = 1e6,
    max_seconds: float = 1.0,
) -> bool:
    """f(constants) => constant, for pure f, computed by the interpreter

    Never makes a constant of more than `max_bytes` out of less, nor one out of a broadcast or an
    iota: those cost nothing where they are used. An op of more than `max_flops` is left, and after
    `max_seconds` in all everything is.
    """
    changed = False
    effects = Effects()
    interpreter = Interpreter()
    deadline = time.monotonic() + max_seconds
    for instruction in module.instructions():
        if not _is_foldable(instruction, max_bytes, max_flops):
            continue
        values = [_known_value(o, max_bytes) for o in instruction.operands]
        if any(v is None for v in values) or not effects.is_pure(instruction):
            continue
        if time.monotonic() > deadline:
            break
        try:
            result = op(instruction).evaluate(instruction, values, interpreter)
        except UnimplementedError:
            continue  # what the interpreter cannot do yet, a backend may
        _replace(instruction, result)
        changed = True
    return changed


def _is_foldable(instruction: HloInstruction, max_bytes: int, max_flops: float) -> bool:
    row, shape = op(instruction), instruction.shape
    if not shape.is_array or not shape.is_static or not instruction.operands:
        return False
    if instruction.control_predecessors or instruction.control_successors:
        return False
    if not isinstance(row.lower, Elementwise | Indexed) and row.lower not in FOLDED_STRUCTURES:
        return False
    if instruction.opcode == "broadcast":
        return False
    largest = max(o.shape.byte_size for o in instruction.operands)
    if shape.byte_size > max(max_bytes, largest):
        return False
    cost = row.cost(instruction)
    return cost.flops + cost.transcendentals <= max_flops


def _known_value(instruction: HloInstruction, max_bytes: int) -> Value:
    """The value of a constant, or of a small broadcast of a scalar one; None if not known."""
    literal = instruction.attrs.get("literal")
    if literal is not None:
        return literal.value
    scalar = scalar_value(instruction)
    if scalar is None or instruction.shape.byte_size > max_bytes:
        return None
    return np.full(instruction.shape.dims, scalar, instruction.shape.dtype.numpy)


def _replace(instruction: HloInstruction, value: Value) -> None:
    literal = Literal(instruction.shape.with_default_layout(), value)
    constant = Beside(instruction).add("constant", literal.shape, (), literal=literal)
    instruction.replace_uses_with(constant)
    instruction.computation.remove(instruction)
