"""infeed, outfeed, and send and recv with the host: calls into Python, where the queues are."""

from __future__ import annotations

from dataclasses import replace

import haloc.ffi.transfers  # noqa: F401  (says what to call)
from haloc.codegen.kernel import Kernel, kernel_for
from haloc.codegen.target import Target
from haloc.cpu.custom_call.registered import registered_kernel
from haloc.errors import UnimplementedError
from haloc.ffi.sites import TRANSFERS, registered_target
from haloc.ir.module import HloInstruction

WAIT_NS = 1e9
"""What a transfer is taken to cost: the other side may take its time, so programs with one are not
run on the thread that launches them."""


@kernel_for(*TRANSFERS)
def transfer_kernel(instruction: HloInstruction, target: Target) -> Kernel:
    """The call; UnimplementedError for send and recv between participants."""
    transfer = registered_target(instruction)
    if transfer is None:
        raise UnimplementedError(
            f"{instruction.opcode} between participants on cpu; is_host_transfer=true only"
        )
    kernel = registered_kernel(instruction, transfer, target)
    return replace(kernel, phases=tuple(replace(p, unit_cost_ns=WAIT_NS) for p in kernel.phases))
