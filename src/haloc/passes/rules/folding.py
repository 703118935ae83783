"""Rules of reductions and contractions: rearrangements of operands become dimension numbers."""

from __future__ import annotations

import numpy as np

from haloc.ir.module import HloInstruction
from haloc.ops.contraction import DOT_DIMS, dot_dims, free_dims
from haloc.ops.expand import Beside
from haloc.ops.table import attr, op
from haloc.passes.rules.constants import bits, full, is_value, scalar_value
from haloc.passes.simplify import RuleSet

REDUCTIONS = RuleSet()
DOTS = RuleSet()


@REDUCTIONS.rule(
    "reduce",
    example="""
  x = f32[4,1] parameter(0)
  z = f32[] constant(1)
  ROOT r = f32[4] reduce(x, z), dimensions={1}, to_apply=add""",
)
def reduce_of_one_element(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """reduce(x, init, f) => f(init, reshape(x)) over dimensions of size 1, f a single operation"""
    if len(x.operands) != 2:
        return None
    operand, init = x.operands
    if any(operand.shape.dims[d] != 1 for d in attr(x, "dimensions")):
        return None
    region = attr(x, "to_apply")
    root = region.root
    parameters = region.parameters
    if not op(root).is_elementwise or sorted(map(id, root.operands)) != sorted(map(id, parameters)):
        return None
    if any(o.shape.dtype is not x.shape.dtype for o in (operand, init)):
        return None
    one = b.reshape(operand, x.shape.dims)
    start = b.broadcast(init, x.shape.dims, ()) if x.shape.dims else init
    given = (start, one) if root.operands[0] is parameters[0] else (one, start)
    return b.add(root.opcode, x.shape, given, **root.attrs)


@REDUCTIONS.rule(
    "reduce",
    example="""
  x = f32[2,3,4] parameter(0)
  z = f32[] constant(0)
  t = f32[4,2,3] transpose(x), dimensions={2,0,1}
  ROOT r = f32[4,3] reduce(t, z), dimensions={1}, to_apply=add""",
)
def reduce_of_transpose(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """reduce(transpose(x, p), dims) => transpose(reduce(x, p[dims])), the smaller transpose

    The order in which elements are combined is free.
    """
    if len(x.operands) != 2 or x.operands[0].opcode != "transpose":
        return None
    transpose, init = x.operands
    permutation = attr(transpose, "dimensions")
    reduced = attr(x, "dimensions")
    source = transpose.operands[0]
    dims = tuple(sorted(permutation[d] for d in reduced))
    kept = [d for d in range(source.shape.rank) if d not in dims]
    shape = x.shape.with_dims(tuple(source.shape.dims[d] for d in kept))
    result = b.add("reduce", shape, (source, init), **{**x.attrs, "dimensions": dims})
    order = tuple(kept.index(p) for d, p in enumerate(permutation) if d not in reduced)
    if order == tuple(range(len(kept))):
        return result
    return b.add("transpose", x.shape, (result,), dimensions=order)


@REDUCTIONS.rule(
    "reduce",
    example="""
  x = f32[2,3,4] parameter(0)
  z = f32[] constant(-inf)
  y = f32[2,4] reduce(x, z), dimensions={1}, to_apply=max
  ROOT r = f32[4] reduce(y, z), dimensions={0}, to_apply=max""",
)
def reduce_of_reduce(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """reduce(reduce(x, z, f), init, f) => reduce(x, init, f) over both sets of dimensions

    For f an associative operation and z such that f(init, z) is init: its identity, or, where
    f(z, z) is z, the same value as init.
    """
    inner = x.operands[0]
    if inner.opcode != "reduce" or len(x.operands) != 2 or len(inner.operands) != 2:
        return None
    opcode = _combiner(x)
    if opcode is None or opcode != _combiner(inner) or len(inner.users) > 1:
        return None
    source, z = inner.operands
    init = x.operands[1]
    if z.shape.dtype is not x.shape.dtype or source.shape.dtype is not x.shape.dtype:
        return None
    same = z is init or (scalar_value(z) is not None and _same_value(z, init))
    if not (same if opcode in IDEMPOTENT else is_value(z, IDENTITIES[opcode])):
        return None
    first = attr(inner, "dimensions")
    kept = [d for d in range(source.shape.rank) if d not in first]
    dims = tuple(sorted((*first, *(kept[d] for d in attr(x, "dimensions")))))
    return b.add("reduce", x.shape, (source, init), **{**x.attrs, "dimensions": dims})


IDENTITIES = {"add": 0, "multiply": 1, "xor": 0}
IDEMPOTENT = ("maximum", "minimum", "and", "or")


def _combiner(reduce: HloInstruction) -> str | None:
    """The opcode of a region that is one associative operation on its two parameters."""
    region = attr(reduce, "to_apply")
    opcode = region.root.opcode
    if opcode not in IDEMPOTENT and opcode not in IDENTITIES:
        return None
    return opcode if set(region.root.operands) == set(region.parameters) else None


def _same_value(x: HloInstruction, y: HloInstruction) -> bool:
    value = scalar_value(y)
    return value is not None and bits(value) == bits(scalar_value(x))


@DOTS.rule(
    "dot",
    example="""
  x = f32[3,2] parameter(0)
  y = f32[3,4] parameter(1)
  t = f32[2,3] transpose(x), dimensions={1,0}
  ROOT r = f32[2,4] dot(t, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
)
def dot_of_transpose(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """dot(transpose(x, p), y) => dot(x, y) with dimension numbers through p

    Where the dimensions that are neither batch nor contracting keep their order; then the
    result's dimensions are the same.
    """
    operands, dims = list(x.operands), list(dot_dims(x))
    changed = False
    for side in (0, 1):
        transpose = operands[side]
        if transpose.opcode != "transpose":
            continue
        p = attr(transpose, "dimensions")
        batch, contracting = dims[2 * side], dims[2 * side + 1]
        free = [p[d] for d in free_dims(transpose.shape.rank, batch, contracting)]
        if sorted(free) != free:
            continue
        dims[2 * side] = tuple(p[d] for d in batch)
        dims[2 * side + 1] = tuple(p[d] for d in contracting)
        operands[side] = transpose.operands[0]
        changed = True
    if not changed:
        return None
    return b.add("dot", x.shape, operands, **{**x.attrs, **dict(zip(DOT_DIMS, dims))})


@DOTS.rule(
    "transpose",
    example="""
  x = f32[2,3] parameter(0)
  y = f32[3,4] parameter(1)
  d = f32[2,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[4,2] transpose(d), dimensions={1,0}""",
)
def transpose_of_dot(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """transpose(dot(x, y)) => dot(y, x) where it puts y's free dimensions before x's"""
    dot = x.operands[0]
    if dot.opcode != "dot" or len(dot.users) > 1:
        return None
    lb, lc, rb, rc = dot_dims(dot)
    lhs, rhs = dot.operands
    batch = len(lb)
    left = len(free_dims(lhs.shape.rank, lb, lc))
    right = len(free_dims(rhs.shape.rank, rb, rc))
    swapped = [*range(batch), *range(batch + left, batch + left + right)]
    swapped += range(batch, batch + left)
    if list(attr(x, "dimensions")) != swapped or not left or not right:
        return None
    attrs = {**dot.attrs, **dict(zip(DOT_DIMS, (rb, rc, lb, lc)))}
    if "operand_precision" in attrs:
        attrs["operand_precision"] = tuple(reversed(attrs["operand_precision"]))
    return b.add("dot", x.shape, (rhs, lhs), **attrs)


@DOTS.rule(
    "dot",
    example="""
  x = f32[3,1] parameter(0)
  y = f32[1,4] parameter(1)
  ROOT r = f32[3,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
)
def dot_of_one_product(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """dot(x, y) => broadcast(x) * broadcast(y) + 0 where the contracted size is 1

    For operands of the result's type. The sum starts from +0, which turns -0 into +0.
    """
    lhs, rhs = x.operands
    lb, lc, rb, rc = dot_dims(x)
    dtype = x.shape.dtype
    if lhs.shape.dtype is not dtype or rhs.shape.dtype is not dtype or dtype.is_complex:
        return None
    if any(lhs.shape.dims[d] != 1 for d in lc) or not (dtype.is_float or dtype.is_integer):
        return None
    if attr(x, "algorithm"):
        return None
    batch = len(lb)
    left, right = free_dims(lhs.shape.rank, lb, lc), free_dims(rhs.shape.rank, rb, rc)
    places = {d: n for n, d in enumerate((*lb, *left))}
    wide_lhs = _spread(b, lhs, places, x)
    places = {d: n for n, d in enumerate(rb)}
    places |= {d: batch + len(left) + n for n, d in enumerate(right)}
    wide_rhs = _spread(b, rhs, places, x)
    product = b.binary("multiply", wide_lhs, wide_rhs)
    return b.binary("add", product, full(b, np.zeros((), dtype.numpy)[()], x.shape))


def _spread(
    b: Beside, operand: HloInstruction, places: dict[int, int], result: HloInstruction
) -> HloInstruction:
    """Operand dimension d at the result's dimension places[d], repeated along the others."""
    kept = sorted(places)
    small = b.reshape(operand, [operand.shape.dims[d] for d in kept])
    order = sorted(range(len(kept)), key=lambda n: places[kept[n]])
    if order != list(range(len(kept))):
        shape = small.shape.with_dims(tuple(small.shape.dims[n] for n in order))
        small = b.add("transpose", shape, (small,), dimensions=tuple(order))
    return b.broadcast(small, result.shape.dims, sorted(places.values()))
