"""Rules that move reshapes down, so that loops above and below them meet."""

from __future__ import annotations

from haloc.ir.module import HloInstruction
from haloc.ops.expand import Beside
from haloc.ops.table import OPS
from haloc.passes.simplify import RuleSet

RESHAPE_MOVES = RuleSet()

ELEMENTWISE = tuple(row.opcode for row in OPS.values() if row.is_elementwise)


@RESHAPE_MOVES.rule(
    *ELEMENTWISE,
    example="""
  x = f32[4,3] parameter(0)
  y = f32[4,3] parameter(1)
  p = f32[12] reshape(x)
  q = f32[12] reshape(y)
  ROOT r = f32[12] add(p, q)""",
)
def elementwise_of_reshapes(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """op(reshape(x), reshape(y), broadcast(scalar)) => reshape(op(x, y, broadcast(scalar)))"""
    dims: tuple[int, ...] | None = None
    for operand in x.operands:
        if not operand.shape.dims and x.shape.dims:
            continue
        if operand.shape.dims != x.shape.dims:
            return None
        if operand.opcode == "broadcast" and not operand.operands[0].shape.dims:
            continue
        if operand.opcode != "reshape":
            return None
        source = operand.operands[0].shape.dims
        if dims is not None and source != dims:
            return None
        dims = source
    if dims is None or not x.shape.is_static:
        return None
    operands = [_before_reshape(b, o, dims, x) for o in x.operands]
    return b.reshape(b.add(x.opcode, x.shape.with_dims(dims), operands, **x.attrs), x.shape.dims)


def _before_reshape(
    b: Beside, operand: HloInstruction, dims: tuple[int, ...], x: HloInstruction
) -> HloInstruction:
    if operand.opcode == "reshape":
        return operand.operands[0]
    if not operand.shape.dims and x.shape.dims:
        return operand
    scalar = operand.operands[0]
    return b.broadcast(scalar, dims, ()) if dims else scalar
