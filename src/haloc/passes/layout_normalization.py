"""Layouts: inside a module every array is row-major."""

from __future__ import annotations

from haloc.ir.module import HloInstruction, HloModule
from haloc.ir.shape import Shape
from haloc.ops.expand import Beside
from haloc.ops.table import op
from haloc.passes.driver import hlo_pass

KEEPS_LAYOUT = "operand_layout_constraints"
"""Ops with this attribute hand their buffers to foreign code, which counts on the layouts."""


@hlo_pass("layout-normalization")
def layout_normalization(module: HloModule) -> bool:
    """x{any layout} => x{row-major};  bitcast(x) => transpose(reshape(transpose(x)))

    Values do not depend on layouts, except through bitcast, which is rewritten to what it does to
    values. The entry's layouts stay in the header (entry_computation_layout), where the runtime
    finds them; those of custom calls stay on the call.
    """
    changed = _keep_entry_layouts(module)
    for computation in module.computations.values():
        for instruction in computation.instructions:
            if instruction.opcode == "bitcast":
                instruction.replace_uses_with(_as_movement(instruction))
                computation.remove(instruction)
                changed = True
    for computation in module.computations.values():
        for instruction in computation.instructions:
            if KEEPS_LAYOUT in op(instruction).attr_defaults:
                continue
            normal = instruction.shape.with_default_layout()
            if normal != instruction.shape:
                instruction.shape = normal
                changed = True
    return changed


def _keep_entry_layouts(module: HloModule) -> bool:
    """Write into the header, where it does not say, what the entry's own shapes say."""
    if "entry_computation_layout" in module.header:
        return False
    parameters = tuple(p.shape for p in module.entry.parameters)
    result = module.entry.root.shape
    if all(s == s.with_default_layout() for s in (*parameters, result)):
        return False
    module.header["entry_computation_layout"] = (parameters, result)
    return True


def _as_movement(bitcast: HloInstruction) -> HloInstruction:
    """Transpose to the order in memory, reinterpret, transpose back to logical order."""
    b = Beside(bitcast)
    (x,) = bitcast.operands
    source, target = x.shape, bitcast.shape
    assert source.layout is not None and target.layout is not None
    x = _transposed(b, x, source.layout.minor_to_major[::-1])
    order = target.layout.minor_to_major[::-1]
    in_memory = tuple(target.dims[d] for d in order)
    if source.dtype is target.dtype:
        x = b.reshape(x, in_memory)
    elif source.dtype.byte_size == target.dtype.byte_size:
        x = b.bitcast_convert(b.reshape(x, in_memory), Shape(target.dtype, in_memory))
    elif source.dtype.byte_size < target.dtype.byte_size:
        ratio = target.dtype.byte_size // source.dtype.byte_size
        x = b.reshape(x, (*in_memory, ratio))
        x = b.bitcast_convert(x, Shape(target.dtype, in_memory))
    else:
        ratio = source.dtype.byte_size // target.dtype.byte_size
        flat = b.reshape(x, (source.element_count,))
        wide = Shape(target.dtype, (source.element_count, ratio))
        x = b.reshape(b.bitcast_convert(flat, wide), in_memory)
    inverse = tuple(order.index(d) for d in range(len(order)))
    return _transposed(b, x, inverse)


def _transposed(b: Beside, x: HloInstruction, order: tuple[int, ...]) -> HloInstruction:
    if order == tuple(range(len(order))):
        return x
    shape = x.shape.with_dims(tuple(x.shape.dims[d] for d in order))
    return b.add("transpose", shape, (x,), dimensions=order)
