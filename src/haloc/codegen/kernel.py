"""A `Kernel`: LLVM text for one instruction or fusion, and how the sequencer runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from haloc.codegen.target import Target
from haloc.ir.module import HloInstruction

PREFIX = "KERNEL"
"""Stands at the start of every global symbol a kernel's text defines. The program builder replaces
it by a hash of the text, so that equal kernels are compiled once."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One native function, run over `extent` independent units; the next phase waits for it.

    Signature: void @symbol(ptr b0, ..., ptr bn, ptr scratch, i64 begin, i64 end). The pointers are
    the leaf buffers of the operands, in order, then those of the result; [begin, end) is the range
    of units to do. How units are dealt out to threads never changes the result.
    unit_cost_ns: estimated time of a unit, from which the sequencer chooses the grain.
    can_fail: the signature is i32 @symbol(ptr b0, ..., ptr bn, ptr scratch, ptr run) instead, with
    the run's context (`haloc.cpu.run_context`). It is called once, on the thread that runs the
    program; what it returns is 0 or the absl status code with which the program ends at once.
    """

    symbol: str
    extent: int = 1
    unit_cost_ns: float = 0.0
    can_fail: bool = False


@dataclass(frozen=True, slots=True)
class Kernel:
    """text defines the phases' symbols. Buffers are dense row-major arrays, 64-byte aligned where
    the client allocated them and element-aligned at least; pred is one byte, 0 or 1; sub-byte
    types take one byte an element.

    declares: `declare` lines of what the text calls. symbols: addresses of declared functions that
    the process does not export. library: internal functions shared between kernels, symbol -> text,
    linked once. data: constants of many bytes, 64-byte aligned, symbol -> bytes; the symbols begin
    with PREFIX and LLVM never sees them. scratch_bytes: size of the block passed as `scratch`.
    in_place: leaf operand numbers whose buffer may be the same memory as result leaf 0.
    updates: for each result leaf the operand leaf it starts out as a copy of; whoever runs the
    kernel copies it, or passes the same memory twice where `in_place` names that operand.
    """

    text: str
    phases: tuple[Phase, ...]
    declares: tuple[str, ...] = ()
    symbols: Mapping[str, int] = field(default_factory=dict)
    scratch_bytes: int = 0
    in_place: tuple[int, ...] = ()
    updates: tuple[int, ...] = ()
    library: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, bytes] = field(default_factory=dict)


def joined(first: Kernel, second: Kernel) -> Kernel:
    """Two kernels on the same buffers, without scratch, as one: run one after the other."""
    return Kernel(
        first.text + second.text,
        first.phases + second.phases,
        tuple(dict.fromkeys(first.declares + second.declares)),
        library={**first.library, **second.library},
        data={**first.data, **second.data},
    )


KernelEmitter = Callable[[HloInstruction, Target], Kernel]

KERNELS: dict[str, KernelEmitter] = {}
"""Emitters of ops with a native form of their own (`ops.table.Structure`), by opcode."""


def kernel_for(*opcodes: str) -> Callable[[KernelEmitter], KernelEmitter]:
    """Register the emitter of these opcodes."""

    def add(emitter: KernelEmitter) -> KernelEmitter:
        for opcode in opcodes:
            assert opcode not in KERNELS, opcode
            KERNELS[opcode] = emitter
        return emitter

    return add
