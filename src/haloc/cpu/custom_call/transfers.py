"""infeed, outfeed, and send and recv with the host: calls into Python, where the queues are."""

from __future__ import annotations

from dataclasses import replace

import haloc.ffi.transfers  # noqa: F401  (says what to call)
from haloc.codegen.kernel import Kernel, kernel_for
from haloc.codegen.target import Target
from haloc.cpu.custom_call.registered import registered_kernel
from haloc.ffi.sites import TRANSFERS
from haloc.ir.module import HloInstruction

WAIT_NS = 1e9
"""What a transfer is taken to cost: the other side may take its time, so programs with one are not
run on the thread that launches them."""


@kernel_for("infeed", "outfeed")
def host_transfer(instruction: HloInstruction, target: Target) -> Kernel:
    """The call; also for send, recv and their dones when it is the host they speak to."""
    kernel = registered_kernel(instruction, TRANSFERS[instruction.opcode], target)
    return replace(kernel, phases=tuple(replace(p, unit_cost_ns=WAIT_NS) for p in kernel.phases))
