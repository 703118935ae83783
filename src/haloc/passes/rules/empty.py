"""Rules of nothing: what reads an array without elements has a known value."""

from __future__ import annotations

from haloc.ir.module import HloInstruction
from haloc.ops.expand import Beside
from haloc.ops.table import attr
from haloc.passes.rules.constants import full
from haloc.passes.simplify import RuleSet

EMPTY = RuleSet()
rule = EMPTY.rule


@rule(
    "reduce",
    example="""
  x = f32[0,4] parameter(0)
  z = f32[] constant(3)
  ROOT r = f32[4] reduce(x, z), dimensions={0}, to_apply=add""",
)
def reduce_of_nothing(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """reduce(empty, init) => broadcast(init)"""
    count = len(x.operands) // 2
    if any(o.shape.element_count for o in x.operands[:count]):
        return None
    results = [
        b.broadcast(init, shape.dims, ()) if shape.dims else init
        for init, shape in zip(x.operands[count:], x.shape.leaves())
    ]
    return b.tuple(*results) if x.shape.is_tuple else results[0]


@rule(
    "dot",
    "convolution",
    example="""
  x = f32[3,0] parameter(0)
  y = f32[0,4] parameter(1)
  ROOT r = f32[3,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
)
def contraction_of_nothing(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """dot(empty, y) => 0;  convolution(empty, y) => 0"""
    if all(o.shape.element_count for o in x.operands):
        return None
    return full(b, 0, x.shape)


@rule(
    "pad",
    example="""
  x = f32[0] parameter(0)
  c = f32[] parameter(1)
  ROOT r = f32[3] pad(x, c), padding=1_2""",
)
def pad_of_nothing(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """pad(empty, c) => broadcast(c)"""
    if x.operands[0].shape.element_count:
        return None
    return b.broadcast(x.operands[1], x.shape.dims, ())


@rule(
    "scatter",
    example="""
  x = f32[4] parameter(0)
  i = s32[0,1] parameter(1)
  u = f32[0] parameter(2)
  ROOT r = f32[4] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add""",
)
def scatter_of_nothing(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """scatter(x, indices, empty) => x"""
    if x.shape.is_tuple or x.operands[-1].shape.element_count:
        return None
    return x.operands[0]


@rule(
    "sort",
    example="""
  x = f32[3,1] parameter(0)
  ROOT r = f32[3,1] sort(x), dimensions={1}, to_apply=less""",
)
def sort_of_one(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """sort(x) => x along a dimension of size 1 or 0"""
    if x.operands[0].shape.dims[attr(x, "dimensions")] > 1:
        return None
    return b.tuple(*x.operands) if x.shape.is_tuple else x.operands[0]
