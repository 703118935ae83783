"""Makes a failing module small: fewer results, then instructions turned into parameters."""

from __future__ import annotations

from haloc import interpreter
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction, HloModule
from haloc.ir.shape import tuple_shape
from haloc.passes.dce import dce
from tests.fuzz.generate import random_arguments
from tests.fuzz.judge import judge


def reduced(module: HloModule, seed: int) -> HloModule:
    """A module that fails in the same way (same type of error, same judge), as small as found.

    Arguments are those of `random_arguments(module, seed)`; an instruction that becomes a parameter
    is given the value it had.
    """
    arguments = random_arguments(module, seed)
    wanted = _failure(module, arguments, seed)
    module, arguments = _fewer_results(module, arguments, seed, wanted)
    progress = True
    while progress:
        progress = False
        for k in reversed(range(len(module.entry.instructions))):
            if k >= len(module.entry.instructions):
                continue
            smaller = _as_parameter(module, arguments, k)
            if smaller and _failure(*smaller, seed) == wanted:
                module, arguments = smaller
                progress = True
    return module


def _failure(module: HloModule, arguments: list[Value], seed: int) -> str:
    try:
        judge(module, arguments, seed)
    except Exception as error:
        return f"{type(error).__name__} {str(error).partition(':')[0]}"
    return ""


def _fewer_results(
    module: HloModule, arguments: list[Value], seed: int, wanted: str
) -> tuple[HloModule, list[Value]]:
    """One result of the root tuple, if one fails alone."""
    for k in range(len(module.entry.root.operands)):
        smaller = module.clone()
        root = smaller.entry.root
        chosen = root.operands[k]
        smaller.entry.root = smaller.entry.add(
            HloInstruction("tuple", tuple_shape(chosen.shape), [chosen])
        )
        dce(smaller)
        given = _renumbered(smaller, arguments)
        if _failure(*given, seed) == wanted:
            return given
    return module, arguments


def _as_parameter(
    module: HloModule, arguments: list[Value], k: int
) -> tuple[HloModule, list[Value]] | None:
    """The module with its k-th instruction given from outside; None if that is no change."""
    smaller = module.clone()
    old = smaller.entry.instructions[k]
    if old.opcode in ("parameter", "constant") or old.is_root or not old.shape.is_array:
        return None
    values: dict[str, Value] = {}
    interpreter.run(module, arguments, on_value=lambda i, v: values.setdefault(i.name, v))
    number = len(smaller.entry.parameters)
    old.replace("parameter", (), attrs={"parameter_number": number})
    given = [*arguments, values[old.name]]
    dce(smaller)
    return _renumbered(smaller, given)


def _renumbered(module: HloModule, arguments: list[Value]) -> tuple[HloModule, list[Value]]:
    """Without the parameters nothing uses."""
    entry = module.entry
    kept = [p for p in entry.parameters if p.users or p.is_root]
    given = [arguments[p.attrs["parameter_number"]] for p in kept]
    for p in entry.parameters:
        if p not in kept:
            entry.remove(p)
    for number, p in enumerate(kept):
        p.attrs["parameter_number"] = number
    return module, given
