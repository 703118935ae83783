"""Rules of tuples, slices at known places and control flow with known outcomes."""

from __future__ import annotations

from haloc.ir.module import HloInstruction
from haloc.ops.control import branch_operand, branches
from haloc.ops.expand import Beside
from haloc.ops.table import attr
from haloc.passes.rules.constants import scalar_value
from haloc.passes.simplify import RuleSet

TUPLES = RuleSet()
DYNAMIC = RuleSet()
CONTROL = RuleSet()


@TUPLES.rule(
    "get-tuple-element",
    example="""
  x = f32[4] parameter(0)
  y = f32[3] parameter(1)
  t = (f32[4], f32[3]) tuple(x, y)
  ROOT r = f32[3] get-tuple-element(t), index=1""",
)
def element_of_tuple(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """get-tuple-element(tuple(..., x, ...)) => x"""
    inner = x.operands[0]
    return inner.operands[attr(x, "index")] if inner.opcode == "tuple" else None


@TUPLES.rule(
    "tuple",
    example="""
  t = (f32[4], f32[3]) parameter(0)
  x = f32[4] get-tuple-element(t), index=0
  y = f32[3] get-tuple-element(t), index=1
  ROOT r = (f32[4], f32[3]) tuple(x, y)""",
)
def tuple_of_elements(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """tuple(get-tuple-element(t, 0), ..., get-tuple-element(t, n - 1)) => t"""
    if not x.operands or x.operands[0].opcode != "get-tuple-element":
        return None
    source = x.operands[0].operands[0]
    if len(source.shape.elements) != len(x.operands):
        return None
    for number, operand in enumerate(x.operands):
        if operand.opcode != "get-tuple-element" or operand.operands[0] is not source:
            return None
        if attr(operand, "index") != number:
            return None
    return source


@DYNAMIC.rule(
    "dynamic-slice",
    example="""
  x = f32[8,4] parameter(0)
  i = s32[] constant(7)
  j = s32[] constant(0)
  ROOT r = f32[2,4] dynamic-slice(x, i, j), dynamic_slice_sizes={2,4}""",
)
def dynamic_slice_at_known_place(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """dynamic-slice(x, constants) => slice(x), with starts clamped to fit;  of all of x => x

    A start in a dimension that is taken whole is clamped to 0 whatever it is.
    """
    operand, *starts = x.operands
    ranges = []
    for start, size, dim in zip(starts, x.shape.dims, operand.shape.dims):
        value = 0 if size == dim else scalar_value(start)
        if value is None or start.shape.dims:
            return None
        begin = min(max(int(value), 0), dim - size)
        ranges.append((begin, begin + size, 1))
    if len(ranges) != x.shape.rank:
        return None
    return operand if operand.shape.compatible(x.shape) else b.slice(operand, *ranges)


@DYNAMIC.rule(
    "dynamic-update-slice",
    example="""
  x = f32[8] parameter(0)
  u = f32[8] parameter(1)
  i = s32[] parameter(2)
  ROOT r = f32[8] dynamic-update-slice(x, u, i)""",
)
def dynamic_update_of_all(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """dynamic-update-slice(x, u, i) => u where u is as large as x;  => x where u is empty"""
    operand, update = x.operands[:2]
    if update.shape.compatible(operand.shape):
        return update
    return operand if update.shape.element_count == 0 else None


@CONTROL.rule(
    "conditional",
    example="""
  p = pred[] constant(true)
  x = f32[] parameter(0)
  ROOT r = f32[] conditional(p, x, x), true_computation=double, false_computation=same""",
)
def conditional_with_known_outcome(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """conditional(constant, ...) => call(the branch taken); an index out of range takes the last"""
    options = branches(x)
    value = scalar_value(x.operands[0])
    if len(options) == 1:
        value = 0
    if value is None:
        return None
    taken = int(value)
    if not 0 <= taken < len(options):
        taken = len(options) - 1
    argument = x.operands[branch_operand(x, taken)]
    return b.add("call", x.shape, (argument,), to_apply=options[taken])


@CONTROL.rule(
    "while",
    example="""
  x = f32[] parameter(0)
  ROOT r = f32[] while(x), condition=never, body=double""",
)
def while_that_never_runs(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """while(x) => x where the condition is constant false"""
    value = scalar_value(attr(x, "condition").root)
    return x.operands[0] if value is not None and not value else None
