"""rng-get-and-update-state: a 128-bit counter that all programs of the process share."""

from __future__ import annotations

import ctypes

from haloc.codegen.kernel import PREFIX, Kernel, Phase, kernel_for
from haloc.codegen.target import Target
from haloc.ir.module import HloInstruction
from haloc.ops.rng import HIDDEN_STATE
from haloc.ops.table import attr

SYMBOL = "haloc_rng_state"

_state = (ctypes.c_uint64 * 2)(*(int(word) for word in HIDDEN_STATE.take(0)))
"""Low word, high word. Lives as long as the process, as the code that points to it may."""


@kernel_for("rng-get-and-update-state")
def emit_rng_get_and_update_state(instruction: HloInstruction, target: Target) -> Kernel:
    """result = state; state += delta. Two programs at once never get the same low word."""
    symbol = f"{PREFIX}.run"
    delta = attr(instruction, "delta")
    text = f"""
define void @{symbol}(ptr %b0, ptr %scratch, i64 %begin, i64 %end) nounwind {{
  %upper = getelementptr i64, ptr @{SYMBOL}, i64 1
  %low = atomicrmw add ptr @{SYMBOL}, i64 {delta} seq_cst
  %after = add i64 %low, {delta}
  %wrapped = icmp ult i64 %after, %low
  %carry = zext i1 %wrapped to i64
  %high = atomicrmw add ptr %upper, i64 %carry seq_cst
  %second = getelementptr i64, ptr %b0, i64 1
  store i64 %low, ptr %b0
  store i64 %high, ptr %second
  ret void
}}
"""
    declares = (f"@{SYMBOL} = external global [2 x i64]",)
    return Kernel(text, (Phase(symbol),), declares, symbols={SYMBOL: ctypes.addressof(_state)})


def address_of(symbol: str) -> int:
    """Of the counter, for programs loaded from elsewhere."""
    return ctypes.addressof(_state)
