"""Rules of reshape, transpose, slice, pad, concatenate, reverse: fewer and smaller moves."""

from __future__ import annotations

from haloc.ir.module import HloInstruction
from haloc.ops.expand import Beside
from haloc.ops.table import attr
from haloc.passes.rules.constants import full
from haloc.passes.simplify import RuleSet

MOVEMENT = RuleSet()
rule = MOVEMENT.rule


@rule(
    "reshape",
    "copy",
    example="""
  x = f32[4,3] parameter(0)
  ROOT r = f32[4,3] reshape(x)""",
)
def reshape_to_itself(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """reshape(x) => x, of the same dimensions;  copy(x) => x

    A copy is a matter of buffers, and buffer assignment puts copies where they are needed.
    """
    operand = x.operands[0]
    return operand if x.shape.compatible(operand.shape) else None


@rule(
    "reshape",
    example="""
  x = f32[4,3] parameter(0)
  y = f32[12] reshape(x)
  ROOT r = f32[3,4] reshape(y)""",
)
def reshape_of_reshape(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """reshape(reshape(x)) => reshape(x)"""
    inner = x.operands[0]
    if inner.opcode != "reshape" or not x.shape.is_static:
        return None
    return b.reshape(inner.operands[0], x.shape.dims)


@rule(
    "transpose",
    example="""
  x = f32[2,3,4] parameter(0)
  y = f32[3,2,4] transpose(x), dimensions={1,0,2}
  ROOT r = f32[4,3,2] transpose(y), dimensions={2,0,1}""",
)
def transpose_of_transpose(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """transpose(transpose(x, p), q) => transpose(x, p[q])"""
    inner = x.operands[0]
    if inner.opcode != "transpose":
        return None
    first = attr(inner, "dimensions")
    dims = tuple(first[d] for d in attr(x, "dimensions"))
    return b.add("transpose", x.shape, inner.operands, dimensions=dims)


@rule(
    "transpose",
    example="""
  x = f32[1,3,4] parameter(0)
  ROOT r = f32[3,1,4] transpose(x), dimensions={1,0,2}""",
)
def transpose_of_unit_dimensions(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """transpose(x) => reshape(x) where no two dimensions of size > 1 change their order"""
    operand = x.operands[0]
    dims = operand.shape.dims
    real = [d for d in attr(x, "dimensions") if dims[d] != 1]
    if sorted(real) != real or not x.shape.is_static:
        return None
    return b.reshape(operand, x.shape.dims)


@rule(
    "transpose",
    example="""
  x = s32[3,4] iota(), iota_dimension=1
  ROOT r = s32[4,3] transpose(x), dimensions={1,0}""",
)
def transpose_of_iota(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """transpose(iota(d), p) => iota(place of d in p)"""
    inner = x.operands[0]
    if inner.opcode != "iota":
        return None
    place = list(attr(x, "dimensions")).index(attr(inner, "iota_dimension"))
    return b.iota(x.shape.dtype, x.shape.dims, place)


@rule(
    "iota",
    example="""
  ROOT r = s32[1,4] iota(), iota_dimension=0""",
)
def iota_of_one(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """iota along a dimension of size 1 => 0"""
    return full(b, 0, x.shape) if x.shape.dims[attr(x, "iota_dimension")] == 1 else None


@rule(
    "iota",
    example="""
  ROOT r = s32[3,4] iota(), iota_dimension=1""",
)
def iota_of_many_dimensions(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """iota[m,n](d) => broadcast(iota[n](0), {d})"""
    if x.shape.rank <= 1:
        return None
    dim = attr(x, "iota_dimension")
    line = b.iota(x.shape.dtype, (x.shape.dims[dim],), 0)
    return b.broadcast(line, x.shape.dims, (dim,))


@rule(
    "reverse",
    example="""
  x = f32[1,3] parameter(0)
  ROOT r = f32[1,3] reverse(x), dimensions={0}""",
)
def reverse_of_unit_dimensions(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """reverse(x, dims) => reverse(x, dims of size > 1), or x where there is none"""
    operand = x.operands[0]
    dims = attr(x, "dimensions")
    kept = tuple(d for d in dims if x.shape.dims[d] != 1)
    if len(kept) == len(dims) and dims:
        return None
    return b.add("reverse", x.shape, (operand,), dimensions=kept) if kept else operand


@rule(
    "reverse",
    example="""
  x = f32[2,3] parameter(0)
  y = f32[2,3] reverse(x), dimensions={0,1}
  ROOT r = f32[2,3] reverse(y), dimensions={0}""",
)
def reverse_of_reverse(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """reverse(reverse(x, p), q) => reverse(x, p xor q)"""
    inner = x.operands[0]
    if inner.opcode != "reverse":
        return None
    dims = tuple(sorted(set(attr(x, "dimensions")) ^ set(attr(inner, "dimensions"))))
    source = inner.operands[0]
    return b.add("reverse", x.shape, (source,), dimensions=dims) if dims else source


@rule(
    "slice",
    example="""
  x = f32[2,3] parameter(0)
  ROOT r = f32[2,3] slice(x), slice={[0:2], [0:3]}""",
)
def slice_of_all(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """slice(x) => x, of the same dimensions"""
    operand = x.operands[0]
    return operand if operand.shape.compatible(x.shape) else None


@rule(
    "slice",
    example="""
  x = f32[20] parameter(0)
  y = f32[8] slice(x), slice={[2:18:2]}
  ROOT r = f32[2] slice(y), slice={[1:7:3]}""",
)
def slice_of_slice(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """slice(slice(x, s), t) => slice(x, s then t)"""
    inner = x.operands[0]
    if inner.opcode != "slice":
        return None
    ranges = []
    for (start, _, stride), (begin, end, step) in zip(attr(inner, "slice"), attr(x, "slice")):
        count = max(0, -(-(end - begin) // step))
        first, jump = start + begin * stride, stride * step
        ranges.append((first, first + (count - 1) * jump + 1 if count else first, jump))
    return b.slice(inner.operands[0], *ranges)


@rule(
    "slice",
    example="""
  x = f32[4] parameter(0)
  y = f32[6] parameter(1)
  c = f32[10] concatenate(x, y), dimensions={0}
  ROOT r = f32[3] slice(c), slice={[5:8]}""",
)
def slice_of_concatenate(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """slice(concatenate(..., x, ...)) => slice(x) where the slice lies within x"""
    inner = x.operands[0]
    if inner.opcode != "concatenate":
        return None
    dim = attr(inner, "dimensions")
    ranges = list(attr(x, "slice"))
    begin, end, step = ranges[dim]
    offset = 0
    for part in inner.operands:
        size = part.shape.dims[dim]
        if offset <= begin and end <= offset + size:
            ranges[dim] = (begin - offset, end - offset, step)
            return b.slice(part, *ranges)
        offset += size
    return None


@rule(
    "pad",
    example="""
  x = f32[6] parameter(0)
  c = f32[] parameter(1)
  ROOT r = f32[3] pad(x, c), padding=-1_-2""",
)
def pad_that_only_cuts(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """pad(x, c) => slice(x) where no padding is positive"""
    padding = attr(x, "padding")
    if any(low > 0 or high > 0 or inner > 0 for low, high, inner in padding):
        return None
    operand = x.operands[0]
    sizes = operand.shape.dims
    if any(s + low + high < 0 or -low > s for s, (low, high, _) in zip(sizes, padding)):
        return None
    ranges = [(-low, s + high, 1) for s, (low, high, _) in zip(sizes, padding)]
    return operand if operand.shape.compatible(x.shape) else b.slice(operand, *ranges)


@rule(
    "concatenate",
    example="""
  x = f32[4] parameter(0)
  e = f32[0] parameter(1)
  ROOT r = f32[4] concatenate(e, x), dimensions={0}""",
)
def concatenate_of_one(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """concatenate(x, empty) => concatenate(x);  concatenate(x) => x"""
    dim = attr(x, "dimensions")
    kept = [o for o in x.operands if o.shape.dims[dim] != 0]
    if len(kept) == 1:
        return kept[0] if kept[0].shape.compatible(x.shape) else None
    return b.concatenate(kept, dim) if 0 < len(kept) < len(x.operands) else None


@rule(
    "concatenate",
    example="""
  x = f32[4] parameter(0)
  y = f32[3] parameter(1)
  c = f32[7] concatenate(x, y), dimensions={0}
  ROOT r = f32[11] concatenate(c, x), dimensions={0}""",
)
def concatenate_of_concatenate(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """concatenate(concatenate(x, y), z) => concatenate(x, y, z) for one that is used once"""
    dim = attr(x, "dimensions")
    parts: list[HloInstruction] = []
    for o in x.operands:
        same = o.opcode == "concatenate" and attr(o, "dimensions") == dim
        parts += o.operands if same and len(o.users) == 1 else (o,)
    return b.concatenate(parts, dim) if len(parts) != len(x.operands) else None


@rule(
    "concatenate",
    example="""
  x = f32[10] parameter(0)
  p = f32[4] slice(x), slice={[0:4]}
  q = f32[3] slice(x), slice={[4:7]}
  ROOT r = f32[7] concatenate(p, q), dimensions={0}""",
)
def concatenate_of_adjacent_slices(x: HloInstruction, b: Beside) -> HloInstruction | None:
    """concatenate(x[a:b], x[b:c]) => x[a:c]"""
    dim = attr(x, "dimensions")
    parts: list[HloInstruction] = []
    for operand in x.operands:
        joined = _joined(b, parts[-1], operand, dim) if parts else None
        if joined is None:
            parts.append(operand)
        else:
            parts[-1] = joined
    if len(parts) == len(x.operands):
        return None
    return parts[0] if len(parts) == 1 else b.concatenate(parts, dim)


def _joined(b: Beside, x: HloInstruction, y: HloInstruction, dim: int) -> HloInstruction | None:
    if x.opcode != "slice" or y.opcode != "slice" or x.operands != y.operands:
        return None
    left, right = list(attr(x, "slice")), list(attr(y, "slice"))
    (start, middle, s), (begin, end, t) = left[dim], right[dim]
    if s != 1 or t != 1 or middle != begin:
        return None
    left[dim] = right[dim] = (start, end, 1)
    return b.slice(x.operands[0], *left) if left == right else None
