"""The native function that runs a whole program: kernels in order, loops and branches between.

One walk over the scheduled module does two things at once: it decides where every value lives
(arena memory is handed out and taken back in execution order) and writes the calls. Values that
are only other names for memory (tuples, reshapes, copies) cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from haloc.codegen.kernel import KERNELS, Kernel
from haloc.codegen.loops import emit_loop_kernel
from haloc.codegen.target import Target
from haloc.cpu.arena import Arena, Slot
from haloc.cpu.collective.sites import Sites
from haloc.cpu.constants import ConstantPool
from haloc.cpu.linker import Linker, grain
from haloc.errors import HloError, UnimplementedError
from haloc.ir.module import HloComputation, HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.table import Elementwise, Indexed, op

Leaves: TypeAlias = "list[Slot]"
"""Where the leaves of a value live, depth first."""

TRIPS_ASSUMED = 100
"""Of every loop, for the estimate of a program's time."""


@dataclass
class Frame:
    """One computation being walked. wanted: where the root's leaves should be written, by producer
    and leaf; remaining: uses of each instruction still to come (the root counts as one)."""

    computation: HloComputation
    values: dict[HloInstruction, Leaves] = field(default_factory=dict)
    remaining: dict[HloInstruction, int] = field(default_factory=dict)
    wanted: dict[tuple[HloInstruction, int], Slot] = field(default_factory=dict)
    done: set[HloInstruction] = field(default_factory=set)


class Sequencer:
    """on_progress is told how many instructions have been dealt with. sites: of the collectives;
    the default is a program of one participant. cost_ns: estimated time of the program so far."""

    def __init__(
        self,
        target: Target,
        linker: Linker,
        on_progress: Callable[[int], None] | None = None,
        sites: Sites | None = None,
    ):
        self.target = target
        self.sites = sites or Sites()
        self.on_progress = on_progress
        self.instructions = 0
        self.linker = linker
        self.arena = Arena()
        self.constants = ConstantPool()
        self.lines: list[str] = []
        self.kernels = 0
        self.loop_depth = 0
        self.uses_run = False
        self.cost_ns = 0.0
        self.fallible_calls = 0
        self._counter = 0
        self._context_size = 0

    # --- Program --------------------------------------------------------------------------------

    def program(self, entry: HloComputation, symbol: str, aliases: dict[int, int]) -> str:
        """The function `i32 symbol(ptr arguments, ptr results, ptr arena, ptr constants, ptr run)`;
        arguments and results are arrays of pointers, one a leaf; run and the result as in
        `haloc.cpu.run_context`. aliases: result leaf -> argument leaf whose memory it takes over;
        its pointer in `results` is not looked at."""
        arguments = self._external("argument", [p.shape for p in entry.parameters])
        results = self._external("result", [entry.root.shape])[0]
        flat = [slot for leaves in arguments for slot in leaves]
        for result, argument in aliases.items():
            results[result] = flat[argument]
        produced = self.computation(entry, arguments, results)
        self.assign(produced, results)
        context = f"  %context = alloca [{max(1, self._context_size)} x ptr], align 64"
        head = [
            f"define i32 @{symbol}(ptr noalias %arguments, ptr noalias %results, "
            "ptr noalias %arena, ptr noalias %constants, ptr %run) nounwind {",
            "entry:",
            context,
        ]
        return "\n".join([*head, *self.lines, "  ret i32 0", "}", ""])

    def _external(self, kind: str, shapes: Sequence[Shape]) -> list[Leaves]:
        slots: list[Leaves] = []
        count = 0
        for shape in shapes:
            leaves = []
            for leaf in shape.leaves():
                leaves.append(Slot(kind, count, leaf.byte_size, pinned=True))
                count += 1
            slots.append(leaves)
        return slots

    def computation(
        self, computation: HloComputation, arguments: list[Leaves], results: Leaves | None
    ) -> Leaves:
        """Run a computation on arguments; returns where its root's leaves are, each holding a
        reference. Leaves are written to `results` where that can be done directly."""
        frame = Frame(computation)
        for instruction in computation.instructions:
            frame.remaining[instruction] = len(instruction.users) + instruction.is_root
        if results is not None:
            _want(frame, computation.root, results)
        for parameter, leaves in zip(computation.parameters, arguments, strict=True):
            frame.values[parameter] = leaves
            frame.done.add(parameter)
            self.hold(leaves)
        for parameter in computation.parameters:
            self._unpack(frame, parameter)
        for instruction in computation.instructions:
            if instruction not in frame.done:
                self._instruction(frame, instruction)
        return frame.values[computation.root]

    def _unpack(self, frame: Frame, instruction: HloInstruction) -> None:
        """Give elements of a tuple their own lives at once, and drop the tuple's if that is all."""
        for user in list(instruction.users):
            if user.opcode == "get-tuple-element" and user not in frame.done:
                self._instruction(frame, user)
        self._end_if_unused(frame, instruction)

    def _end_if_unused(self, frame: Frame, instruction: HloInstruction) -> None:
        if frame.remaining[instruction] == 0 and instruction in frame.values:
            self.let_go(frame.values.pop(instruction))

    # --- Lives ----------------------------------------------------------------------------------

    def hold(self, leaves: Leaves) -> None:
        for slot in leaves:
            slot.references += 1

    def let_go(self, leaves: Leaves) -> None:
        for slot in leaves:
            slot.references -= 1
            if slot.references == 0 and slot.kind == "arena" and not slot.pinned:
                self.arena.free(slot)

    def _finish(self, frame: Frame, instruction: HloInstruction, leaves: Leaves) -> None:
        """Record a result (which must hold its references) and end lives that end here."""
        frame.values[instruction] = leaves
        for operand in dict.fromkeys(instruction.operands):
            frame.remaining[operand] -= 1
            self._end_if_unused(frame, operand)
        self._end_if_unused(frame, instruction)

    def dies_here(self, frame: Frame, operand: HloInstruction) -> bool:
        return frame.remaining[operand] == 1 and not operand.is_root

    def allocate(
        self,
        frame: Frame,
        instruction: HloInstruction,
        in_place: Sequence[int] = (),
        updates: Sequence[int] = (),
    ) -> Leaves:
        """Memory for a result: where the root wants it, else over a dying operand, else new."""
        leaves: Leaves = []
        for number, shape in enumerate(instruction.shape.leaves()):
            reusable = in_place if number == 0 else ()
            if updates:
                reusable = [k for k in in_place if k == updates[number]]
            wanted = frame.wanted.get((instruction, number))
            slot = None
            if wanted is not None and self._may_write(frame, instruction, wanted, reusable):
                slot = wanted
            if slot is None:
                slot = self._reused(frame, instruction, shape.byte_size, reusable)
            if slot is None:
                slot = self.arena.allocate(shape.byte_size)
            slot.references += 1
            leaves.append(slot)
        return leaves

    def _may_write(
        self, frame: Frame, instruction: HloInstruction, slot: Slot, in_place: Sequence[int]
    ) -> bool:
        """Whether nobody needs what `slot` holds any more."""
        if slot.references == 0:
            return True
        holders = [
            k
            for k, o in enumerate(instruction.operands)
            if slot in frame.values[o] and self.dies_here(frame, o)
        ]
        return slot.references == len(holders) == 1 and holders[0] in in_place

    def _reused(
        self, frame: Frame, instruction: HloInstruction, size_bytes: int, in_place: Sequence[int]
    ) -> Slot | None:
        for k in in_place:
            operand = instruction.operands[k]
            slot = frame.values[operand][0]
            if (
                slot.kind == "arena"
                and not slot.pinned
                and slot.references == 1
                and slot.size_bytes == size_bytes
                and self.dies_here(frame, operand)
                and instruction.operands.count(operand) == 1
            ):
                return slot
        return None

    # --- Instructions ---------------------------------------------------------------------------

    def _instruction(self, frame: Frame, instruction: HloInstruction) -> None:
        frame.done.add(instruction)
        self.instructions += 1
        if self.on_progress is not None:
            self.on_progress(self.instructions)
        alias = ALIASES.get(instruction.opcode)
        structure = STRUCTURES.get(instruction.opcode)
        if alias is not None:
            leaves = alias(instruction, [frame.values[o] for o in instruction.operands])
            self.hold(leaves)
        elif instruction.opcode == "constant":
            leaves = self.constants.slots(instruction.attrs["literal"])
            self.hold(leaves)
        elif structure is not None:
            leaves = structure(self, frame, instruction)
        else:
            leaves = self._kernel(frame, instruction)
        self._finish(frame, instruction, leaves)
        if instruction.shape.is_tuple and instruction in frame.values:
            self._unpack(frame, instruction)

    def _kernel(self, frame: Frame, instruction: HloInstruction) -> Leaves:
        try:
            kernel = self._emit(instruction)
        except HloError as error:
            error.add_note(f"in instruction {instruction!r} of {frame.computation.name}")
            raise
        return self.place(frame, instruction, kernel)

    def place(self, frame: Frame, instruction: HloInstruction, kernel: Kernel) -> Leaves:
        """Run an instruction's kernel here; where its results are."""
        results = self.allocate(frame, instruction, kernel.in_place, kernel.updates)
        buffers = [s for o in instruction.operands for s in frame.values[o]]
        for operand, result in zip(kernel.updates, results, strict=False):
            self.copy(buffers[operand], result)
        self.run_kernel(kernel, [*buffers, *results])
        return results

    def _emit(self, instruction: HloInstruction) -> Kernel:
        row = op(instruction)
        # A fusion is emitted as its root is: a loop, or what the root's own emitter makes of it.
        calls = instruction.attrs.get("calls")
        emitter = KERNELS.get(instruction.opcode if calls is None else calls.root.opcode)
        if emitter is not None:
            return emitter(instruction, self.target)
        if instruction.opcode in ("fusion", "reduce", "reduce-window") or isinstance(
            row.lower, Elementwise | Indexed
        ):
            return emit_loop_kernel(instruction, self.target)
        raise UnimplementedError(f"{instruction.opcode} on the cpu backend")

    def run_kernel(self, kernel: Kernel, buffers: Leaves) -> None:
        """Calls of a kernel's phases, on this thread or through the pool."""
        self.kernels += 1
        names = self.linker.add(kernel, inline=self.loop_depth > 0)
        scratch = self.arena.allocate(kernel.scratch_bytes) if kernel.scratch_bytes else None
        pointers = [self.pointer(b) for b in buffers]
        pointers.append("null" if scratch is None else self.pointer(scratch))
        for phase in kernel.phases:
            symbol = names[phase.symbol]
            self.cost_ns += phase.extent * phase.unit_cost_ns * TRIPS_ASSUMED**self.loop_depth
            if phase.can_fail:
                self.checked_call(symbol, [*pointers, "%run"])
                continue
            size = grain(phase)
            if size is None:
                arguments = ", ".join(f"ptr {p}" for p in pointers)
                self.line(f"call void @{symbol}({arguments}, i64 0, i64 {phase.extent})")
                continue
            self._context_size = max(self._context_size, len(pointers))
            for k, pointer in enumerate(pointers):
                place = self.value(f"getelementptr ptr, ptr %context, i64 {k}")
                self.line(f"store ptr {pointer}, ptr {place}")
            thunk = self.linker.thunk(symbol, len(pointers))
            self.line(
                f"call void @haloc_parallel_for(ptr @{thunk}, ptr %context, "
                f"i64 {phase.extent}, i64 {size})"
            )
        if scratch is not None:
            self.arena.free(scratch)

    @property
    def calls_host(self) -> bool:
        """Whether some call that may fail is no collective."""
        return self.fallible_calls > len(self.sites.all)

    def checked_call(self, symbol: str, pointers: Sequence[str]) -> None:
        """Call `i32 symbol(ptr, ...)`; a result other than 0 is the program's, which ends there.
        The pointer "%run" is the run's context."""
        self.uses_run = True
        self.fallible_calls += 1
        arguments = ", ".join(f"ptr {p}" for p in pointers)
        status = self.value(f"call i32 @{symbol}({arguments})")
        is_ok = self.value(f"icmp eq i32 {status}, 0")
        failed, go_on = self.label("failed"), self.label("ok")
        self.line(f"br i1 {is_ok}, label %{go_on}, label %{failed}")
        self.start_block(failed)
        self.line(f"ret i32 {status}")
        self.start_block(go_on)

    # --- Text -----------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def value(self, text: str) -> str:
        self._counter += 1
        self.line(f"%v{self._counter} = {text}")
        return f"%v{self._counter}"

    def label(self, stem: str) -> str:
        self._counter += 1
        return f"{stem}{self._counter}"

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def pointer(self, slot: Slot) -> str:
        """An LLVM pointer to a slot's memory."""
        if slot.kind in ("argument", "result"):
            place = self.value(f"getelementptr ptr, ptr %{slot.kind}s, i64 {slot.place}")
            return self.value(f"load ptr, ptr {place}, !invariant.load !{{}}")
        base = f"%{'constants' if slot.kind == 'constant' else slot.kind}"
        return self.value(f"getelementptr i8, ptr {base}, i64 {slot.place}")

    def copy(self, source: Slot, target: Slot) -> None:
        if source is target or target.size_bytes == 0:
            return
        self.line(
            f"call void @llvm.memcpy.p0.p0.i64(ptr align 1 {self.pointer(target)}, "
            f"ptr align 1 {self.pointer(source)}, i64 {target.size_bytes}, i1 false)"
        )

    def assign(self, sources: Leaves, targets: Leaves) -> None:
        """targets[k] = sources[k] for all k at once: a source that another copy overwrites is
        saved first."""
        moves = [(s, t) for s, t in zip(sources, targets, strict=True) if s is not t]
        written = {id(t) for _, t in moves}
        saved: dict[int, Slot] = {}
        for source, _ in moves:
            if id(source) in written and id(source) not in saved:
                saved[id(source)] = self.arena.allocate(source.size_bytes)
                self.copy(source, saved[id(source)])
        for source, target in moves:
            self.copy(saved.get(id(source), source), target)
        for slot in saved.values():
            self.arena.free(slot)


def _want(frame: Frame, root: HloInstruction, results: Leaves) -> None:
    """Record who should write where. A producer that appears twice writes one and is copied."""
    if root.opcode == "tuple":
        start = 0
        for operand in root.operands:
            count = len(operand.shape.leaves())
            _want(frame, operand, results[start : start + count])
            start += count
        return
    for number, slot in enumerate(results):
        # Through names for the same memory: the wish belongs to what they name.
        source = root
        while source.opcode in ALIASES and len(source.operands) == 1 and source.opcode != "tuple":
            if source.opcode == "get-tuple-element":
                number += leaf_start(source)
            source = source.operands[0]
        frame.wanted.setdefault((source, number), slot)


def leaf_start(gte: HloInstruction) -> int:
    """Which of its operand's leaves a get-tuple-element's first one is."""
    elements = gte.operands[0].shape.elements[: gte.attrs["index"]]
    return sum(len(e.leaves()) for e in elements)


def _elements(gte: HloInstruction, operands: list[Leaves]) -> Leaves:
    start = leaf_start(gte)
    return operands[0][start : start + len(gte.shape.leaves())]


ALIASES = {
    "tuple": lambda i, operands: [slot for leaves in operands for slot in leaves],
    "get-tuple-element": _elements,
    "reshape": lambda i, operands: list(operands[0]),
    "bitcast": lambda i, operands: list(operands[0]),
    "copy": lambda i, operands: list(operands[0]),
    "opt-barrier": lambda i, operands: list(operands[0]),
    "add-dependency": lambda i, operands: list(operands[0]),
    "domain": lambda i, operands: list(operands[0]),
    "after-all": lambda i, operands: [Slot("constant", 0, 0, pinned=True)],
}
"""Ops whose result is memory that is there already."""

STRUCTURES: dict = {}
"""Control flow, filled by `control.py`: opcode -> (sequencer, frame, instruction) -> leaves."""
