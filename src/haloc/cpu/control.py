"""while, conditional and call in the native program: branches, and where their values live."""

from __future__ import annotations

from haloc.cpu.arena import Slot
from haloc.cpu.run_context import RunContext
from haloc.cpu.sequencer import STRUCTURES, Frame, Leaves, Sequencer, leaf_start
from haloc.ir.module import HloComputation, HloInstruction


def call(seq: Sequencer, frame: Frame, instruction: HloInstruction) -> Leaves:
    """The callee's code, in place."""
    arguments = [frame.values[o] for o in instruction.operands]
    return seq.computation(instruction.attrs["to_apply"], arguments, None)


def while_loop(seq: Sequencer, frame: Frame, instruction: HloInstruction) -> Leaves:
    """Loop-carried values live in fixed slots that the body reads and writes.

    A value the body hands through untouched stays where it came from. Another is taken over from
    the operand if that dies here, else copied once before the loop.
    """
    body, condition = instruction.attrs["body"], instruction.attrs["condition"]
    state, restore = _enter(seq, frame, instruction, body)
    seq.loop_depth += 1
    head, inside, done = seq.label("while"), seq.label("body"), seq.label("done")
    seq.line(f"br label %{head}")
    seq.start_block(head)
    go_on = seq.computation(condition, [state], None)
    flag = seq.value(f"load i8, ptr {seq.pointer(go_on[0])}")
    more = seq.value(f"icmp ne i8 {flag}, 0")
    seq.let_go(go_on)
    seq.line(f"br i1 {more}, label %{inside}, label %{done}")
    seq.start_block(inside)
    produced = seq.computation(body, [state], state)
    seq.assign(produced, state)
    seq.let_go(produced)
    seq.line(f"br label %{head}")
    seq.start_block(done)
    seq.loop_depth -= 1
    for slot, (references, pinned) in restore.items():
        slot.references, slot.pinned = references, pinned
    seq.hold(state)
    return state


def _enter(
    seq: Sequencer, frame: Frame, instruction: HloInstruction, body: HloComputation
) -> tuple[Leaves, dict[Slot, tuple[int, bool]]]:
    """The loop's slots, holding their initial values; and, for those the body writes, what to
    restore after the loop: inside it nobody but the loop's own values counts as their holder."""
    operand = instruction.operands[0]
    initial = frame.values[operand]
    through = _handed_through(body)
    state: Leaves = []
    restore: dict[Slot, tuple[int, bool]] = {}
    for number, slot in enumerate(initial):
        wanted = frame.wanted.get((instruction, number))
        if wanted is not None and wanted.references == 0:
            own = wanted
        elif number in through:
            state.append(slot)
            continue
        elif _may_take_over(seq, frame, operand, slot, initial):
            own = slot
        else:
            own = seq.arena.allocate(slot.size_bytes)
        seq.copy(slot, own)
        restore[own] = (own.references, own.pinned)
        own.references, own.pinned = 0, True
        state.append(own)
    return state, restore


def _may_take_over(
    seq: Sequencer, frame: Frame, operand: HloInstruction, slot: Slot, initial: Leaves
) -> bool:
    """Whether the loop's operand is all that needs `slot`, and nothing needs the operand after."""
    return (
        slot.kind == "arena"
        and not slot.pinned
        and slot.references == 1
        and initial.count(slot) == 1
        and seq.dies_here(frame, operand)
    )


def _handed_through(body: HloComputation) -> set[int]:
    """Leaves of the body's root that are the same leaf of its parameter."""
    through: set[int] = set()
    start = 0
    members = body.root.operands if body.root.opcode == "tuple" else (body.root,)
    for member in members:
        count = len(member.shape.leaves())
        if member.opcode == "parameter" or (
            member.opcode == "get-tuple-element"
            and member.operands[0].opcode == "parameter"
            and leaf_start(member) == start
        ):
            through.update(range(start, start + count))
        start += count
    return through


def conditional(seq: Sequencer, frame: Frame, instruction: HloInstruction) -> Leaves:
    """A switch over the branches, each writing the shared result slots. An index out of range
    takes the last branch."""
    branches = instruction.attrs.get("branch_computations") or (
        instruction.attrs["false_computation"],
        instruction.attrs["true_computation"],
    )
    arguments = [frame.values[o] for o in instruction.operands[1:]]
    if "true_computation" in instruction.attrs:
        arguments.reverse()
    results = seq.allocate(frame, instruction)
    is_pred = instruction.operands[0].shape.dtype.is_pred
    kind = "i8" if is_pred else "i32"
    index = seq.value(f"load {kind}, ptr {seq.pointer(frame.values[instruction.operands[0]][0])}")
    labels = [seq.label("branch") for _ in branches]
    done = seq.label("done")
    cases = " ".join(f"{kind} {k}, label %{label}" for k, label in enumerate(labels[:-1]))
    seq.line(f"switch {kind} {index}, label %{labels[-1]} [ {cases} ]")
    for branch, label, argument in zip(branches, labels, arguments, strict=True):
        seq.start_block(label)
        fresh = [_Target(r) for r in results]
        produced = seq.computation(branch, [argument], [f.slot for f in fresh])
        for source, f in zip(produced, fresh, strict=True):
            if source is not f.slot:
                seq.copy(source, f.result)
        seq.let_go(produced)
        seq.line(f"br label %{done}")
    seq.start_block(done)
    return results


class _Target:
    """A result slot as one branch sees it: same memory, references of its own."""

    def __init__(self, result: Slot):
        self.result = result
        self.slot = Slot(result.kind, result.place, result.size_bytes, pinned=True)


def device_number(seq: Sequencer, frame: Frame, instruction: HloInstruction) -> Leaves:
    """replica-id, partition-id: a field of the run's context."""
    field = getattr(RunContext, instruction.opcode.replace("-", "_"))
    seq.uses_run = True
    leaves = [Slot("run", field.offset, field.size, pinned=True)]
    seq.hold(leaves)
    return leaves


STRUCTURES.update(
    {
        "call": call,
        "while": while_loop,
        "conditional": conditional,
        "replica-id": device_number,
        "partition-id": device_number,
    }
)
