"""Rules of broadcast: compute first, repeat later."""

from __future__ import annotations

from haloc.ir.module import HloInstruction
from haloc.ops.expand import Beside
from haloc.ops.table import OPS, Indexed, attr
from haloc.passes.rules.constants import full, scalar_value
from haloc.passes.simplify import RuleSet

BROADCAST = RuleSet()
rule = BROADCAST.rule

ELEMENTWISE = tuple(row.opcode for row in OPS.values() if row.is_elementwise)
REMAPS = tuple(
    row.opcode for row in OPS.values() if isinstance(row.lower, Indexed) and row.lower.is_remap
)


@rule(
    "constant",
    example="""
  ROOT r = f32[2,2] constant({ {3, 3}, {3, 3} })""",
)
def constant_of_one_value(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """constant {v, v, ...} => broadcast(v)"""
    if not x.shape.is_array or not x.shape.dims or not x.attrs["literal"].is_splat:
        return None
    return full(b, x.attrs["literal"].array.reshape(-1)[0], x.shape)


@rule(
    "broadcast",
    example="""
  x = f32[4,3] parameter(0)
  ROOT r = f32[4,3] broadcast(x), dimensions={0,1}""",
)
def broadcast_to_itself(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """broadcast(x), dimensions={0,1,...} => x, of the same shape"""
    operand = x.operands[0]
    identity = tuple(range(operand.shape.rank))
    return operand if tuple(attr(x, "dimensions")) == identity and _same_dims(x, operand) else None


@rule(
    "broadcast",
    example="""
  x = f32[3] parameter(0)
  y = f32[4,3] broadcast(x), dimensions={1}
  ROOT r = f32[4,5,3] broadcast(y), dimensions={0,2}""",
)
def broadcast_of_broadcast(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """broadcast(broadcast(x, p), q) => broadcast(x, q[p])"""
    inner = x.operands[0]
    if inner.opcode != "broadcast":
        return None
    outer_dims = attr(x, "dimensions")
    dims = tuple(outer_dims[d] for d in attr(inner, "dimensions"))
    return b.broadcast(inner.operands[0], x.shape.dims, dims)


@rule(
    "broadcast",
    example="""
  x = f32[3] parameter(0)
  ROOT r = f32[1,3] broadcast(x), dimensions={1}""",
)
def broadcast_that_repeats_nothing(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """broadcast(x) => reshape(x) where only dimensions of size 1 come in, for x not a scalar"""
    operand = x.operands[0]
    dims = list(attr(x, "dimensions"))
    if not dims or sorted(dims) != dims or not x.shape.is_static:
        return None
    if operand.shape.element_count != x.shape.element_count or not operand.shape.element_count:
        return None
    return b.reshape(operand, x.shape.dims)


@rule(
    "broadcast",
    example="""
  x = f32[3,1] parameter(0)
  ROOT r = f32[4,3,1] broadcast(x), dimensions={1,2}""",
)
def broadcast_of_unit_dimensions(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """broadcast(x) => broadcast(reshape(x)), reshaped to be without dimensions of size 1"""
    operand = x.operands[0]
    dims = attr(x, "dimensions")
    kept = [d for d, size in enumerate(operand.shape.dims) if size != 1]
    if len(kept) == operand.shape.rank or not operand.shape.is_static:
        return None
    small = b.reshape(operand, [operand.shape.dims[d] for d in kept])
    return b.broadcast(small, x.shape.dims, [dims[d] for d in kept])


@rule(
    *ELEMENTWISE,
    example="""
  x = f32[3] parameter(0)
  c = f32[] constant(2)
  y = f32[4,3] broadcast(x), dimensions={1}
  z = f32[4,3] broadcast(c), dimensions={}
  ROOT r = f32[4,3] multiply(y, z)""",
)
def elementwise_of_broadcasts(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """op(broadcast(x, p), broadcast(y, p), broadcast(scalar)) => broadcast(op(x, y, scalar), p)"""
    widest: HloInstruction | None = None
    for operand in x.operands:
        if not operand.shape.dims and x.shape.dims:
            continue
        if operand.opcode != "broadcast" or operand.shape.dims != x.shape.dims:
            return None
        source = operand.operands[0]
        if widest is None or source.shape.rank > widest.operands[0].shape.rank:
            widest = operand
    if widest is None or widest.operands[0].shape.element_count >= x.shape.element_count:
        return None
    dims, small = tuple(attr(widest, "dimensions")), widest.operands[0].shape.dims
    for operand in x.operands:
        if operand.shape.dims and operand.operands[0].shape.dims:
            same = tuple(attr(operand, "dimensions")) == dims
            if not same or operand.operands[0].shape.dims != small:
                return None
    operands = [_narrowed(b, o, small) for o in x.operands]
    result = b.add(x.opcode, x.shape.with_dims(small), operands, **x.attrs)
    return b.broadcast(result, x.shape.dims, dims)


def _narrowed(b: Beside, operand: HloInstruction, dims: tuple[int, ...]) -> HloInstruction:
    source = operand.operands[0] if operand.shape.dims else operand
    return source if source.shape.dims == dims else b.broadcast(source, dims, ())


@rule(
    *REMAPS,
    example="""
  c = f32[] parameter(0)
  y = f32[4,3] broadcast(c), dimensions={}
  ROOT r = f32[3,4] transpose(y), dimensions={1,0}""",
)
def remap_of_scalar_broadcast(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """transpose, slice, reshape, reverse, ... (broadcast(scalar)) => broadcast(scalar)"""
    inner = x.operands[0]
    if inner.opcode != "broadcast" or x.opcode == "broadcast" or inner.operands[0].shape.dims:
        return None
    if x.shape.dtype is not inner.shape.dtype or not x.shape.is_static:
        return None
    scalar = inner.operands[0]
    return b.broadcast(scalar, x.shape.dims, ()) if x.shape.dims else scalar


@rule(
    "transpose",
    example="""
  x = f32[3] parameter(0)
  y = f32[4,3] broadcast(x), dimensions={1}
  ROOT r = f32[3,4] transpose(y), dimensions={1,0}""",
)
def transpose_of_broadcast(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """transpose(broadcast(x, p), q) => broadcast(x, places of p in q), while they ascend"""
    inner = x.operands[0]
    if inner.opcode != "broadcast":
        return None
    permutation = list(attr(x, "dimensions"))
    dims = [permutation.index(d) for d in attr(inner, "dimensions")]
    if sorted(dims) != dims:
        return None
    return b.broadcast(inner.operands[0], x.shape.dims, dims)


@rule(
    "reshape",
    example="""
  x = f32[3] parameter(0)
  y = f32[4,3] broadcast(x), dimensions={1}
  ROOT r = f32[1,4,3] reshape(y)""",
)
def unit_reshape_of_broadcast(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """reshape(broadcast(x, p)) => broadcast(x, p') where only dimensions of size 1 come or go"""
    inner = x.operands[0]
    if inner.opcode != "broadcast":
        return None
    places = unit_reshape_places(inner.shape.dims, x.shape.dims)
    dims = attr(inner, "dimensions")
    if places is None or any(d not in places for d in dims):
        return None
    return b.broadcast(inner.operands[0], x.shape.dims, [places[d] for d in dims])


def unit_reshape_places(source: tuple[int, ...], target: tuple[int, ...]) -> dict[int, int] | None:
    """Where each source dimension of size > 1 goes in a reshape that only adds or drops 1s."""
    old = [d for d, s in enumerate(source) if s != 1]
    new = [d for d, s in enumerate(target) if s != 1]
    if [source[d] for d in old] != [target[d] for d in new]:
        return None
    return dict(zip(old, new))


@rule(
    "slice",
    example="""
  x = f32[3] parameter(0)
  y = f32[4,3] broadcast(x), dimensions={1}
  ROOT r = f32[2,3] slice(y), slice={[1:3], [0:3]}""",
)
def slice_of_broadcast(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """slice(broadcast(x, p)) => broadcast(slice(x), p)"""
    inner = x.operands[0]
    if inner.opcode != "broadcast":
        return None
    ranges = attr(x, "slice")
    dims = attr(inner, "dimensions")
    small = b.slice(inner.operands[0], *(ranges[d] for d in dims))
    return b.broadcast(small, x.shape.dims, dims)


@rule(
    "concatenate",
    example="""
  c = f32[] parameter(0)
  x = f32[2] broadcast(c), dimensions={}
  y = f32[3] broadcast(c), dimensions={}
  ROOT r = f32[5] concatenate(x, y), dimensions={0}""",
)
def concatenate_of_scalar_broadcasts(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """concatenate(broadcast(s), broadcast(s), ...) => broadcast(s)"""
    if any(o.opcode != "broadcast" or o.operands[0].shape.dims for o in x.operands):
        return None
    scalars = {o.operands[0] for o in x.operands}
    return b.broadcast(scalars.pop(), x.shape.dims, ()) if len(scalars) == 1 else None


@rule(
    "pad",
    example="""
  c = f32[] constant(1)
  x = f32[2] broadcast(c), dimensions={}
  ROOT r = f32[5] pad(x, c), padding=1_2""",
)
def pad_with_the_same(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """pad(broadcast(c), c) => broadcast(c)"""
    inner, value = x.operands
    if inner.opcode != "broadcast" or inner.operands[0].shape.dims:
        return None
    given, padded = scalar_value(inner), scalar_value(value)
    same = inner.operands[0] is value or (
        given is not None and padded is not None and given.tobytes() == padded.tobytes()
    )
    return b.broadcast(value, x.shape.dims, ()) if same else None


def _same_dims(x: HloInstruction, y: HloInstruction) -> bool:
    return x.shape.dims == y.shape.dims and x.shape.dtype is y.shape.dtype
