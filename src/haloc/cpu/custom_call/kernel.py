"""The custom-call kernel: looks the target up; and the targets that only copy."""

from __future__ import annotations

from haloc.codegen.kernel import PREFIX, Kernel, Phase, kernel_for
from haloc.codegen.target import Target
from haloc.cpu.custom_call import TARGETS, target_for
from haloc.cpu.custom_call.registered import registered_kernel
from haloc.cpu.writer import Function
from haloc.errors import UnimplementedError
from haloc.ffi.sites import registered_target
from haloc.ir.module import HloInstruction
from haloc.ops.custom_call import not_found
from haloc.ops.table import attr

_MEMCPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
_CHUNK_BYTES = 1 << 18


@kernel_for("custom-call")
def custom_call_kernel(instruction: HloInstruction, target: Target) -> Kernel:
    """The kernel of haloc's own target, or the call of a registered one, which comes first;
    NotFoundError if there is neither."""
    registered = registered_target(instruction)
    if registered is not None:
        return registered_kernel(instruction, registered, target)
    emitter = TARGETS.get(attr(instruction, "custom_call_target"))
    if emitter is None:
        raise not_found(instruction, TARGETS)
    return emitter(instruction, target)


@target_for(
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "annotate_device_placement",
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
    leaves = instruction.shape.leaves()
    parameters = ", ".join(f"ptr %b{i}" for i in range(2 * len(leaves)))
    texts, phases = [], []
    for number, leaf in enumerate(leaves):
        f = Function(f"{PREFIX}.copy{number}", f"{parameters}, ptr %scratch, i64 %begin, i64 %end")
        _copy_chunks(f, f"%b{number}", f"%b{number + len(leaves)}", leaf.byte_size)
        extent = max(1, -(-leaf.byte_size // _CHUNK_BYTES))
        texts.append(f.text())
        phases.append(Phase(f"{PREFIX}.copy{number}", extent, _CHUNK_BYTES / 10))
    in_place = (0,) if len(leaves) == 1 else ()
    return Kernel("".join(texts), tuple(phases), (_MEMCPY,), in_place=in_place)


def _copy_chunks(f: Function, source: str, result: str, size_bytes: int) -> None:
    """Chunks [%begin, %end); where both are the same memory nothing needs doing."""
    with f.when(f.op(f"icmp ne ptr {source}, {result}")):
        first, end = f.mul("%begin", _CHUNK_BYTES), f.mul("%end", _CHUNK_BYTES)
        is_inside = f.op(f"icmp slt i64 {end}, {size_bytes}")
        last = f.op(f"select i1 {is_inside}, i64 {end}, i64 {size_bytes}")
        places = f"ptr {f.element(result, 'i8', first)}, ptr {f.element(source, 'i8', first)}"
        f.do(f"call void @llvm.memcpy.p0.p0.i64({places}, i64 {f.sub(last, first)}, i1 false)")
