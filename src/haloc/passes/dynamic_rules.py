"""What each op is on padded arrays: the rules of dynamic-padder for ops that move elements."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from haloc.errors import InternalError
from haloc.ir.dtype import S32
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.rules import dynamic_flags
from haloc.ops.shaping import dynamic_in_group, reshape_groups
from haloc.ops.table import attr
from haloc.passes.dynamic_sizes import Padding, Rule, Sizes, renumbered, static

RULES: dict[str, Rule] = {}


def rule(*opcodes: str) -> Callable[[Rule], Rule]:
    def enter(fn: Rule) -> Rule:
        for opcode in opcodes:
            if opcode in RULES:
                raise InternalError(f"two rules for {opcode}")
            RULES[opcode] = fn
        return fn

    return enter


Result = tuple[HloInstruction, Sizes]


@rule("copy", "map")
def elementwise(p: Padding) -> Result:
    """The operands agree on sizes; a scalar stands for any."""
    rank = p.shape.rank
    merged: Sizes = {}
    for shape, sizes in zip(p.given, p.sizes):
        if shape.rank == rank:
            merged = sizes | merged
    return p.same(), merged


@rule("broadcast")
def broadcast(p: Padding) -> Result:
    places = dict(enumerate(attr(p.x, "dimensions")))
    return p.same(), renumbered(p.sizes[0], places)


@rule("transpose")
def transpose(p: Padding) -> Result:
    places = {d: n for n, d in enumerate(attr(p.x, "dimensions"))}
    return p.same(), renumbered(p.sizes[0], places)


@rule("bitcast-convert")
def bitcast_convert(p: Padding) -> Result:
    if p.shape.dims != p.given[0].dims:
        p.refuse("a change of rank")
    return p.same(), p.sizes[0]


@rule("slice")
def slice_(p: Padding) -> Result:
    """A dimension that is not taken whole is static: its limit is within the size."""
    kept = {d: d for d, dynamic in enumerate(dynamic_flags(p.shape)) if dynamic}
    return p.same(), renumbered(p.sizes[0], kept)


@rule("reverse")
def reverse(p: Padding) -> Result:
    """The padding comes to stand in front, and is shifted out."""
    result = p.same()
    for dim in attr(p.x, "dimensions"):
        size = p.sizes[0].get(dim)
        if size is not None:
            bound = p.number(p.shape.dims[dim])
            result = _from(p, result, dim, p.b.binary("subtract", bound, size))
    return result, p.sizes[0]


def _from(p: Padding, x: HloInstruction, dim: int, start: HloInstruction) -> HloInstruction:
    """x with its elements from `start` on moved to the front of `dim`."""
    dims = x.shape.dims
    twice = x.shape.with_dims((*dims[:dim], 2 * dims[dim], *dims[dim + 1 :]))
    padding = tuple((0, n if d == dim else 0, 0) for d, n in enumerate(dims))
    zero = p.b.constant(0, x.shape.dtype)
    padded = p.b.add("pad", twice, (x, zero), padding=padding)
    starts = [start if d == dim else p.number(0) for d in range(len(dims))]
    return p.b.add("dynamic-slice", x.shape, (padded, *starts), dynamic_slice_sizes=dims)


@rule("concatenate")
def concatenate(p: Padding) -> Result:
    """Each operand is written over the padding of those before it."""
    dim = attr(p.x, "dimensions")
    others: Sizes = {}
    for sizes in p.sizes:
        others = {d: s for d, s in sizes.items() if d != dim} | others
    if not any(dim in sizes for sizes in p.sizes):
        return p.same(), others
    result = p.b.full(0, static(p.shape).with_default_layout())
    end = p.number(0)
    for n, x in enumerate(p.x.operands):
        starts = [end if d == dim else p.number(0) for d in range(p.shape.rank)]
        result = p.b.add("dynamic-update-slice", result.shape, (result, x, *starts))
        end = p.b.binary("add", end, p.size(n, dim))
    return result, others | {dim: end}


@rule("pad")
def pad(p: Padding) -> Result:
    """pad's value stands behind the sizes, too."""
    masked = p.masked(0, p.x.operands[1])
    sizes: Sizes = {}
    for d, size in p.sizes[0].items():
        low, high, interior = attr(p.x, "padding")[d]
        last = p.scalar("maximum", p.scalar("subtract", size, 1), 0)
        holes = p.scalar("multiply", last, interior)
        whole = p.scalar("add", p.scalar("add", size, holes), low + high)
        sizes[d] = p.scalar("maximum", whole, 0)
    return p.rebuilt((masked, p.x.operands[1])), sizes


# --- Reshapes ----------------------------------------------------------------------------------


@rule("reshape")
def reshape(p: Padding) -> Result:
    """In each group of dimensions that keeps its element count, one size follows from the rest."""
    source, target = p.given[0].dims, p.shape.dims
    sizes: Sizes = {}
    in_place = True
    for before, after in reshape_groups(source, target):
        dynamic = [d for d in before if d in p.sizes[0]]
        dim = dynamic_in_group(p.x, after)
        if not dynamic:
            continue
        if dim < 0:
            p.refuse("a static result")
        count = p.number(1)
        for d in before:
            count = p.b.binary("multiply", count, p.size(0, d))
        others = prod(target[d] for d in after if d != dim)
        sizes[dim] = count if others <= 1 else p.scalar("divide", count, others)
        # Without dynamic dimensions behind the first of the group, elements keep their places.
        in_place &= all(source[d] == 1 for d in range(before.start, dynamic[0]))
        in_place &= len(dynamic) == 1 and all(target[d] == 1 for d in range(after.start, dim))
    return p.same() if in_place else _moved(p, sizes), sizes


@rule("dynamic-reshape")
def dynamic_reshape(p: Padding) -> Result:
    wanted = p.x.operands[1:]
    sizes = {d: wanted[d] for d, dynamic in enumerate(dynamic_flags(p.shape)) if dynamic}
    if not sizes and not p.sizes[0]:
        return p.b.reshape(p.x.operands[0], p.shape.dims), {}
    return _moved(p, sizes), sizes


def _moved(p: Padding, sizes: Sizes) -> HloInstruction:
    """Each element of the result read where it stands in the padded operand: its row-major number
    by the result's sizes, unravelled by the operand's."""
    x, target = p.x.operands[0], p.shape.dims
    if 0 in (*target, *p.given[0].dims):
        return p.b.full(0, static(p.shape))
    number = p.b.full(0, Shape(S32, target))
    for d, bound in enumerate(target):
        size = sizes.get(d) or p.number(bound)
        index = p.b.iota(S32, target, d)
        number = p.b.binary("multiply", number, p.b.broadcast(size, target, ()))
        number = p.b.binary("add", number, index)
    place = p.b.full(0, Shape(S32, target))
    stride = 1
    for d in reversed(range(p.given[0].rank)):
        size = p.b.broadcast(p.scalar("maximum", p.size(0, d), 1), target, ())
        index = p.b.binary("remainder", number, size)
        number = p.b.binary("divide", number, size)
        place = p.b.binary("add", place, p.b.binary("multiply", index, p.b.like(index, stride)))
        stride *= p.given[0].dims[d]
    flat = p.b.reshape(x, (stride,))
    return p.b.add(
        "gather",
        static(p.shape).with_default_layout(),
        (flat, place),
        offset_dims=(),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=len(target),
        slice_sizes=(1,),
    )


# --- Sizes -------------------------------------------------------------------------------------


@rule("get-dimension-size")
def get_dimension_size(p: Padding) -> Result:
    return p.size(0, attr(p.x, "dimensions")), {}


@rule("set-dimension-size")
def set_dimension_size(p: Padding) -> Result:
    """Sizes out of range are made fit; behind an earlier size stand zeros."""
    dim = attr(p.x, "dimensions")
    # A copy: the operand itself may be used with the sizes it had.
    x = p.b.unary("copy", p.masked(0, p.zero(0), (dim,)))
    sizes = {d: s for d, s in p.sizes[0].items() if d != dim}
    if dynamic_flags(p.shape)[dim]:
        bound = p.number(p.shape.dims[dim])
        sizes[dim] = p.b.add("clamp", bound.shape, (p.number(0), p.x.operands[1], bound))
    return x, sizes
