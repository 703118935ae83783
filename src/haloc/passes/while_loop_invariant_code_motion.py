"""Moving work that every iteration repeats out of while loops."""

from __future__ import annotations

from haloc.analysis.call_graph import callers
from haloc.analysis.effects import Effects
from haloc.analysis.loops import element_reads, invariant_elements, state_parameter, trip_count
from haloc.ir.module import HloComputation, HloInstruction, HloModule, copy_annotations
from haloc.ops.expand import Beside
from haloc.ops.table import Indexed, Structure, attr, op
from haloc.passes.driver import hlo_pass
from haloc.passes.while_loop_state import own_computations, rebuild_state

MAX_EXTRA_STATE = 32


@hlo_pass("while-loop-invariant-code-motion")
def while_loop_invariant_code_motion(module: HloModule) -> bool:
    """while(body: f(unchanged state)) => while(body: state'), with state' = f(init) before it

    Only pure work whose results are no larger than what it reads, so that memory does not grow;
    what costs nothing (index arithmetic on constants) stays. A loop that may not run at all would
    compute in vain, but no more than once.
    """
    changed = False
    effects = Effects()
    for loop in module.instructions("while"):
        if loop.control_predecessors or loop.control_successors or loop.is_root:
            continue
        body: HloComputation = attr(loop, "body")
        if body.root.opcode != "tuple" or element_reads(body) is None:
            continue
        if element_reads(attr(loop, "condition")) is None or trip_count(loop) == 0:
            continue
        if any(u.opcode != "get-tuple-element" for u in loop.users):
            continue
        hoisted = _invariant_work(loop, body, effects)
        if hoisted:
            if own_computations(loop, callers(module)):
                hoisted = _invariant_work(loop, attr(loop, "body"), effects)
            _hoist(loop, hoisted)
            changed = True
    return changed


def _invariant_work(
    loop: HloInstruction, body: HloComputation, effects: Effects
) -> list[HloInstruction]:
    """What depends on nothing that changes, operands first; [] if nothing is worth moving."""
    unchanged = invariant_elements(loop)
    state = state_parameter(body)
    known: set[HloInstruction] = set()
    work: list[HloInstruction] = []
    for instruction in body.instructions:
        if instruction.operands[:1] == (state,):
            if attr(instruction, "index") in unchanged:
                known.add(instruction)
        elif "literal" in instruction.attrs:
            known.add(instruction)
        elif _is_movable(instruction, effects) and all(o in known for o in instruction.operands):
            known.add(instruction)
            work.append(instruction)
    moved = set(work)
    results = [i for i in work if any(u not in moved for u in i.users) and _is_worth_it(i)]
    return _needed(results, moved) if 0 < len(results) <= MAX_EXTRA_STATE else []


def _is_movable(instruction: HloInstruction, effects: Effects) -> bool:
    lower = op(instruction).lower
    if lower in (Structure.COLLECTIVE, Structure.HOST, Structure.CONTROL):
        return False
    if not instruction.shape.is_array or instruction.control_predecessors:
        return False
    return not instruction.control_successors and effects.is_pure(instruction)


def _is_worth_it(instruction: HloInstruction) -> bool:
    """Its results are no larger than what it reads, and it is not mere index arithmetic."""
    lower = op(instruction).lower
    if not instruction.operands or (isinstance(lower, Indexed) and lower.is_remap):
        return False
    if instruction.shape.element_count == 1 and lower not in (
        Structure.REDUCTION,
        Structure.CONTRACTION,
    ):
        return False
    read = sum(o.shape.byte_size for o in instruction.operands)
    return instruction.shape.byte_size <= read


def _needed(results: list[HloInstruction], moved: set[HloInstruction]) -> list[HloInstruction]:
    """The results last; before them what they need, operands first. Results keep their order."""
    order: dict[HloInstruction, None] = {}
    stack: list[tuple[HloInstruction, bool]] = [(r, False) for r in reversed(results)]
    while stack:
        instruction, ready = stack.pop()
        if ready:
            order[instruction] = None
        elif instruction in moved and instruction not in order:
            stack.append((instruction, True))
            stack.extend((o, False) for o in instruction.operands)
    return list(order)


def _hoist(loop: HloInstruction, work: list[HloInstruction]) -> None:
    body: HloComputation = attr(loop, "body")
    state, moved = state_parameter(body), set(work)
    results = [i for i in work if any(u not in moved for u in i.users) and _is_worth_it(i)]
    b = Beside(loop)
    outside: dict[HloInstruction, HloInstruction] = {}

    def value(instruction: HloInstruction) -> HloInstruction:
        if instruction not in outside:
            if instruction.operands[:1] == (state,):
                made = b.element(loop.operands[0], attr(instruction, "index"))
            else:
                operands = [value(o) for o in instruction.operands]
                made = b.add(instruction.opcode, instruction.shape, operands, **instruction.attrs)
                copy_annotations(instruction, made)
            outside[instruction] = made
        return outside[instruction]

    for instruction in work:
        value(instruction)
    _, inside = rebuild_state(
        loop, list(range(len(body.root.operands))), [outside[i] for i in results]
    )
    for old, new in zip(results, inside, strict=True):
        old.replace_uses_with(new)
        old.computation.remove(old)
    body.sort()
