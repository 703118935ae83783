"""Changing what a while loop carries."""

from __future__ import annotations

from haloc.analysis.effects import Effects
from haloc.analysis.loops import state_parameter
from haloc.ir.module import HloComputation, HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.expand import Beside
from haloc.ops.table import attr
from haloc.passes.dce import remove_dead_instructions


def own_computations(loop: HloInstruction, uses: dict[HloComputation, int]) -> bool:
    """Give the loop its own copies of a body or condition that others call too.

    uses: how many instructions name each computation; kept up to date.
    """
    changed = False
    for name in ("condition", "body"):
        computation: HloComputation = attr(loop, name)
        if uses.get(computation, 1) > 1:
            uses[computation] -= 1
            loop.attrs[name] = computation.clone(computation.name)
            for callee in {c for i in computation.instructions for c in i.called_computations}:
                uses[callee] = uses.get(callee, 0) + 1
            changed = True
    return changed


def rebuild_state(
    loop: HloInstruction, kept: list[int], extra: list[HloInstruction]
) -> tuple[HloInstruction, list[HloInstruction]]:
    """Replace `loop` by one that carries the elements `kept` and, unchanged, the values `extra`.

    Returns the new loop and what stands for `extra` inside the body. Body and condition belong to
    the loop alone, use their parameter only through get-tuple-element, the body's root is a tuple,
    and what uses the loop are get-tuple-elements of `kept`.
    """
    b = Beside(loop)
    init = loop.operands[0]
    new_init = b.tuple(*(b.element(init, n) for n in kept), *extra)
    place = {old: new for new, old in enumerate(kept)}
    body: HloComputation = attr(loop, "body")
    condition: HloComputation = attr(loop, "condition")
    inside = _rebuild_body(body, new_init.shape, place, len(extra))
    state = _new_state(condition, new_init.shape, place)
    _tidy(condition, state)
    new_loop = b.add("while", new_init.shape, (new_init,), **loop.attrs)
    new_loop.frontend_attributes = loop.frontend_attributes
    new_loop.backend_config = loop.backend_config
    for read in list(loop.users):
        read.replace_uses_with(b.element(new_loop, place[attr(read, "index")]))
        read.computation.remove(read)
    loop.computation.remove(loop)
    return new_loop, inside


def _rebuild_body(
    body: HloComputation, shape: Shape, place: dict[int, int], extra: int
) -> list[HloInstruction]:
    old_root = body.root
    old_state = _new_state(body, shape, place)
    b = Beside(old_root)
    state = next(p for p in body.parameters if p is not old_state)
    inside = [b.element(state, len(place) + n) for n in range(extra)]
    body.root = b.tuple(*(old_root.operands[n] for n in place), *inside)
    _tidy(body, old_state)
    return inside


def _new_state(computation: HloComputation, shape: Shape, place: dict[int, int]) -> HloInstruction:
    """Add a parameter of the new shape and read from it what is kept; returns the old one."""
    old = state_parameter(computation)
    new = Beside(old).add("parameter", shape, (), parameter_number=0)
    for read in list(old.users):
        index = attr(read, "index")
        if index in place:
            read.replace_uses_with(Beside(read).element(new, place[index]))
    return old


def _tidy(computation: HloComputation, old_state: HloInstruction) -> None:
    remove_dead_instructions(computation, Effects())
    computation.remove(old_state)
    computation.sort()
