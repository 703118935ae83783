"""The custom-call kernel: looks the target up; and the targets that only copy."""

from __future__ import annotations

from haloc.codegen.kernel import PREFIX, Kernel, Phase, kernel_for
from haloc.codegen.target import Target
from haloc.cpu.custom_call import TARGETS, target_for
from haloc.cpu.writer import Function
from haloc.errors import NotFoundError, UnimplementedError
from haloc.ir.module import HloInstruction
from haloc.ops.table import attr

_MEMCPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
_CHUNK_BYTES = 1 << 18


@kernel_for("custom-call")
def custom_call_kernel(instruction: HloInstruction, target: Target) -> Kernel:
    """The registered target's kernel; NotFoundError if there is none."""
    name = attr(instruction, "custom_call_target")
    emitter = TARGETS.get(name)
    if emitter is None:
        raise NotFoundError(
            f"No registered implementation for custom call to {name} for cpu; "
            f"known: {', '.join(sorted(TARGETS))}"
        )
    return emitter(instruction, target)


@target_for(
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
    "LayoutConstraint",
    "Pin",
    "Unpin",
)
def copy_operand(instruction: HloInstruction, target: Target) -> Kernel:
    """Markers: the result is the one operand, of the same shape."""
    shapes = [o.shape for o in instruction.operands]
    if len(shapes) != 1 or not shapes[0].compatible(instruction.shape):
        raise UnimplementedError(
            f"custom-call to {attr(instruction, 'custom_call_target')} from "
            f"{', '.join(map(str, shapes))} to {instruction.shape} on cpu: not the identity"
        )
    size = instruction.shape.byte_size
    extent = max(1, -(-size // _CHUNK_BYTES))
    f = Function(f"{PREFIX}.copy", "ptr %b0, ptr %b1, ptr %scratch, i64 %begin, i64 %end")
    first = f.mul("%begin", _CHUNK_BYTES)
    end = f.mul("%end", _CHUNK_BYTES)
    last = f.op(f"select i1 {f.op(f'icmp slt i64 {end}, {size}')}, i64 {end}, i64 {size}")
    source, result = f.element("%b0", "i8", first), f.element("%b1", "i8", first)
    count = f.sub(last, first)
    f.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {result}, ptr {source}, i64 {count}, i1 false)")
    cost = _CHUNK_BYTES / 10
    return Kernel(f.text(), (Phase(f"{PREFIX}.copy", extent, cost),), (_MEMCPY,), in_place=(0,))
