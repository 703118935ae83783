"""Async sugar: `negate-start(x)`, `negate-update(s)`, `negate-done(s)`.

They stand for async-start, async-update and async-done of a computation that holds the one op.
"""

from __future__ import annotations

from typing import Any

from haloc.ir.module import HloComputation, HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.table import OPS

SUFFIXES = ("-start", "-update", "-done")
THREAD = "async_execution_thread"


def split_sugar(opcode: str) -> tuple[str, str]:
    """("negate", "async-start") of "negate-start"; ("", "") of anything else."""
    for suffix in SUFFIXES:
        if opcode.endswith(suffix):
            return opcode.removesuffix(suffix), "async" + suffix
    return "", ""


def fill_wrapped(
    computation: HloComputation,
    opcode: str,
    operand_shapes: list[Shape],
    shape: Shape,
    attrs: dict[str, Any],
) -> HloInstruction:
    """Put parameters and the one op into an empty computation; gives the op, its root."""
    parameters = [
        computation.add(HloInstruction("parameter", s, (), {"parameter_number": n}, f"param_{n}"))
        for n, s in enumerate(operand_shapes)
    ]
    computation.root = computation.add(HloInstruction(opcode, shape, parameters, attrs))
    return computation.root


def wrapped_op(computation: HloComputation) -> HloInstruction | None:
    """The one op of a computation that sugar can stand for: its parameters, in order, and it.

    Sugar has no place for what the op itself carries beyond its attributes.
    """
    root = computation.root
    parameters = computation.parameters
    if len(computation) != len(parameters) + 1 or list(root.operands) != parameters:
        return None
    carries = root.sharding or root.frontend_attributes or root.backend_config
    if any(root.opcode + suffix in OPS for suffix in SUFFIXES):
        return None  # all-gather-start, say, is an op of its own
    return None if carries or root.control_predecessors else root


def sugared(instruction: HloInstruction) -> HloInstruction | None:
    """The op that an async-start, -update or -done instruction starts, if sugar can say it."""
    start = instruction
    while start.opcode in ("async-update", "async-done") and start.operands:
        start = start.operands[0]
    called = start.attrs.get("calls")
    if start.opcode != "async-start" or not isinstance(called, HloComputation):
        return None
    same_thread = called.execution_thread == start.attrs.get(THREAD, "")
    return wrapped_op(called) if same_thread else None
