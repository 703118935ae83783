"""What is known about a while loop: which state passes through, how often the body runs."""

from __future__ import annotations

from haloc.ir.module import HloComputation, HloInstruction
from haloc.ops.table import attr


def state_parameter(computation: HloComputation) -> HloInstruction:
    """The one parameter of a loop's body or condition."""
    return computation.parameters[0]


def element_reads(computation: HloComputation) -> dict[int, list[HloInstruction]] | None:
    """The get-tuple-elements of the state, by index; None when the state is used otherwise."""
    reads: dict[int, list[HloInstruction]] = {}
    state = state_parameter(computation)
    for user in state.users:
        if user.opcode != "get-tuple-element":
            return None
        reads.setdefault(attr(user, "index"), []).append(user)
    return None if computation.root is state else reads


def invariant_elements(loop: HloInstruction) -> set[int]:
    """The indices of state elements that the body hands on unchanged."""
    body: HloComputation = attr(loop, "body")
    root, state = body.root, state_parameter(body)
    if root.opcode != "tuple":
        return set()
    return {
        n
        for n, value in enumerate(root.operands)
        if value.opcode == "get-tuple-element"
        and value.operands[0] is state
        and attr(value, "index") == n
    }


def trip_count(loop: HloInstruction) -> int | None:
    """How often the body runs, where the state counts from a constant to a constant by a constant.

    Understands condition = compare(state[i], constant) with LT, LE, GT, GE or NE over integers,
    body[i] = state[i] + constant and init[i] constant. None for everything else, and for counters
    that would wrap around.
    """
    condition: HloComputation = attr(loop, "condition")
    test = condition.root
    init = loop.operands[0]
    if test.opcode != "compare" or init.opcode != "tuple":
        return None
    counter, limit = test.operands
    index = _state_index(counter, condition)
    end = _integer(limit)
    if index is None or end is None:
        return None
    start = _integer(init.operands[index])
    step = _step(attr(loop, "body"), index)
    if start is None or step is None or step == 0:
        return None
    count = _count(attr(test, "direction"), start, end, step)
    dtype = counter.shape.dtype
    low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    high = low + (1 << dtype.bits) - 1
    if count is None or not low <= start + count * step <= high:
        return None
    return count


def _count(direction: str, start: int, end: int, step: int) -> int | None:
    if direction == "NE":
        return (
            (end - start) // step
            if (end - start) % step == 0 and (end - start) / step >= 0
            else None
        )
    if direction in ("LE", "GE"):
        end += 1 if direction == "LE" else -1
        direction = "LT" if direction == "LE" else "GT"
    if direction == "GT":
        start, end, step, direction = -start, -end, -step, "LT"
    if direction != "LT":
        return None
    if start >= end:
        return 0
    return -(-(end - start) // step) if step > 0 else None


def _state_index(value: HloInstruction, computation: HloComputation) -> int | None:
    if value.opcode != "get-tuple-element":
        return None
    return attr(value, "index") if value.operands[0] is state_parameter(computation) else None


def _integer(value: HloInstruction) -> int | None:
    literal = value.attrs.get("literal")
    if literal is None or value.shape.dims or not value.shape.dtype.is_integer:
        return None
    return int(literal.array[()])


def _step(body: HloComputation, index: int) -> int | None:
    """The constant that the body adds to state[index]."""
    if body.root.opcode != "tuple":
        return None
    update = body.root.operands[index]
    if update.opcode not in ("add", "subtract"):
        return None
    left, right = update.operands
    if update.opcode == "add" and _integer(left) is not None:
        left, right = right, left
    amount = _integer(right)
    if amount is None or _state_index(left, body) != index:
        return None
    return amount if update.opcode == "add" else -amount
