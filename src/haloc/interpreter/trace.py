"""`trace`: every intermediate value of a run, by instruction name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from haloc.interpreter.guard import NanGuard
from haloc.interpreter.run import run
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction, HloModule


def trace(
    module: HloModule,
    arguments: Sequence[Value],
    *,
    every: bool = False,
    guard: NanGuard | None = None,
) -> dict[str, Any]:
    """Run the module on arguments of its parameters' shapes; {instruction name: its value}.

    Instructions of the entry go by their own names, those of other computations by
    `computation/instruction`, in order of first execution. Values are NumPy arrays, tuples of them,
    None for tokens; they are not to be changed. A computation may run many times (a loop's body, a
    function called twice): the value is that of the last time or, with `every`, of every
    instruction the list of its values, one an execution. Scalar regions of reductions, sorts and
    the like run on whole arrays and are not in it.
    Raises what `interpreter.run` raises.
    """
    values: dict[str, Any] = {}

    def keep(instruction: HloInstruction, value: Value) -> None:
        name = traced_name(instruction)
        if every:
            values.setdefault(name, []).append(value)
        else:
            values[name] = value

    run(module, arguments, on_value=keep, guard=guard)
    return values


def traced_name(instruction: HloInstruction) -> str:
    """The name of an instruction in a trace."""
    computation = instruction.computation
    entry = computation.module is not None and computation.module.entry is computation
    return instruction.name if entry else f"{computation.name}/{instruction.name}"
