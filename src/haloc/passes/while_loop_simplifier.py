"""Simplification of while loops: less state, known state, loops that run never or once."""

from __future__ import annotations

from haloc.analysis.call_graph import callers
from haloc.analysis.effects import Effects
from haloc.analysis.loops import element_reads, invariant_elements, state_parameter, trip_count
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ops.expand import Beside
from haloc.ops.table import Effect, attr
from haloc.passes.driver import hlo_pass
from haloc.passes.while_loop_state import own_computations, rebuild_state


@hlo_pass("while-loop-simplifier")
def while_loop_simplifier(module: HloModule) -> bool:
    """while running 0 times => init;  while running once => body(init);  unused state => nothing

    Also: state that the body hands on unchanged is replaced by its initial value, outside the loop
    always and inside it where that is a constant. Expects dce and call-inliner afterwards.
    """
    changed = False
    effects = Effects()
    uses: dict[HloComputation, int] = {}
    for loop in module.instructions("while"):
        if loop.control_predecessors or loop.control_successors:
            continue
        if _runs_at_most_once(loop, effects):
            changed = True
            continue
        changed |= _read_unchanged_state_outside(loop)
        if _known_reads(loop) or _needed_state(loop, effects):
            uses = uses or callers(module)
            own_computations(loop, uses)
            for read, value in _known_reads(loop):
                _replace_in(read, value)
            kept = _needed_state(loop, effects)
            if kept:
                rebuild_state(loop, kept, [])
            changed = True
    return changed


def _runs_at_most_once(loop: HloInstruction, effects: Effects) -> bool:
    count = trip_count(loop)
    if count not in (0, 1) or effects.of(loop) is Effect.SIDE_EFFECT:
        return False
    result = loop.operands[0]
    if count == 1:
        result = Beside(loop).add("call", loop.shape, (result,), to_apply=attr(loop, "body"))
    loop.replace_uses_with(result)
    loop.computation.remove(loop)
    return True


def _read_unchanged_state_outside(loop: HloInstruction) -> bool:
    """What reads state that the body hands on unchanged reads its initial value instead."""
    init = loop.operands[0]
    invariant = invariant_elements(loop) if init.opcode == "tuple" else set()
    changed = False
    for user in list(loop.users):
        if user.opcode == "get-tuple-element" and attr(user, "index") in invariant:
            changed |= user.replace_uses_with(init.operands[attr(user, "index")])
            user.computation.remove(user)
    return changed


def _known_reads(loop: HloInstruction) -> list[tuple[HloInstruction, HloInstruction]]:
    """(read of unchanged state inside the loop, its known initial value), where there is a use."""
    init = loop.operands[0]
    invariant = invariant_elements(loop) if init.opcode == "tuple" else set()
    found = []
    for name in ("condition", "body"):
        for read in state_parameter(attr(loop, name)).users:
            if read.opcode != "get-tuple-element" or attr(read, "index") not in invariant:
                continue
            value = init.operands[attr(read, "index")]
            if _is_known(value) and (_users_but_state(read) or _is_condition(read)):
                found.append((read, value))
    return found


def _users_but_state(read: HloInstruction) -> list[HloInstruction]:
    """Its users, but for the tuple in which the body hands it on."""
    root = read.computation.root
    return [u for u in read.users if u is not root or root.opcode != "tuple"]


def _is_condition(read: HloInstruction) -> bool:
    return read.is_root


def _is_known(value: HloInstruction) -> bool:
    """A constant, or a broadcast of a scalar one, or an iota: fit to be repeated inside."""
    if value.opcode == "broadcast":
        source = value.operands[0]
        return "literal" in source.attrs and not source.shape.dims
    return "literal" in value.attrs or value.opcode == "iota"


def _replace_in(read: HloInstruction, value: HloInstruction) -> None:
    b = Beside(read)
    operands = [b.add(o.opcode, o.shape, (), **o.attrs) for o in value.operands]
    copy = b.add(value.opcode, value.shape, operands, **value.attrs)
    for user in _users_but_state(read):
        user.set_operands(copy if o is read else o for o in user.operands)
    if read.is_root:
        read.computation.root = copy


def _needed_state(loop: HloInstruction, effects: Effects) -> list[int]:
    """The elements that the result, the condition or a needed element needs; [] if that is all,
    or none, or not known."""
    body: HloComputation = attr(loop, "body")
    if body.root.opcode != "tuple" or loop.is_root:
        return []
    if any(u.opcode != "get-tuple-element" for u in loop.users):
        return []
    condition_reads, body_reads = element_reads(attr(loop, "condition")), element_reads(body)
    if condition_reads is None or body_reads is None:
        return []
    live = {attr(u, "index") for u in loop.users} | condition_reads.keys()
    _spread_liveness(body, live, effects)
    return sorted(live) if len(live) < len(body.root.operands) else []


def _spread_liveness(body: HloComputation, live: set[int], effects: Effects) -> None:
    state, root = state_parameter(body), body.root
    stack = [root.operands[n] for n in live]
    stack += [i for i in body.instructions if effects.of(i) is Effect.SIDE_EFFECT]
    seen: set[HloInstruction] = set()
    while stack:
        instruction = stack.pop()
        if instruction in seen:
            continue
        seen.add(instruction)
        stack.extend((*instruction.operands, *instruction.control_predecessors))
        if instruction.operands[:1] == (state,):
            index = attr(instruction, "index")
            if index not in live:
                live.add(index)
                stack.append(root.operands[index])
