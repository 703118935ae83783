"""scaled-dot: a dot of operands that are stored as blocks of narrow numbers, each with a scale."""

from __future__ import annotations

import numpy as np

from haloc.ir.dtype import BF16, F8E4M3FN, F8E8M0FNU, F16, F32, F64, DType
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.contraction import (
    DOT_DIMS,
    DOT_PROTO,
    PRECISION,
    dot_attrs,
    dot_dims,
    dot_general,
    infer_dot,
    narrow,
    wide_type,
    widen,
)
from haloc.ops.convert import convert_array
from haloc.ops.example import ExampleGraph
from haloc.ops.expand import Beside
from haloc.ops.reference import store
from haloc.ops.regions import text
from haloc.ops.table import OPS, Cost, Evaluator, Expand, OpDef, invalid, register


def _infer(instruction: HloInstruction) -> Shape:
    """A scale has its operand's rank; each of its sizes divides the operand's. A scalar scales
    nothing."""
    shapes = [o.shape for o in instruction.operands]
    for side, operand, scale in zip(("lhs", "rhs"), shapes[:2], shapes[2:]):
        if not operand.dtype.is_float or not scale.dtype.is_float:
            given = f"{side} is {text(operand)}, {side}_scale {text(scale)}"
            invalid(instruction, f"{given}; both must be of float type")
        if not scale.rank:
            continue
        fits = operand.rank == scale.rank and all(
            n == s or (s and n % s == 0) for n, s in zip(operand.dims, scale.dims)
        )
        if not fits:
            invalid(
                instruction,
                f"{side}_scale {text(scale)} does not divide {side} {text(operand)} into blocks",
            )
    return infer_dot(instruction)


def _scaled_type(operand: DType, scale: DType) -> DType:
    """The type an operand is multiplied by its scale in: bf16, or a wider one that is given."""
    for wide in (F64, F32):
        if wide in (operand, scale):
            return wide
    return F32 if F16 in (operand, scale) else BF16


def _types(instruction: HloInstruction) -> DType:
    """The one type of both operands after scaling."""
    lhs, rhs, lhs_scale, rhs_scale = (o.shape for o in instruction.operands)
    sides = ((lhs, lhs_scale), (rhs, rhs_scale))
    return _scaled_type(*(_scaled_type(x.dtype, (s if s.rank else x).dtype) for x, s in sides))


def _evaluate(instruction: HloInstruction, operands: list[Value], context: Evaluator) -> Value:
    common = _types(instruction)
    arrays = [np.asarray(x) for x in operands]
    types = [o.shape.dtype for o in instruction.operands]
    sides = []
    for n in range(2):
        x, scale = arrays[n], arrays[n + 2]
        if scale.ndim:
            own = _scaled_type(types[n], types[n + 2])
            x, scale = (
                store(convert_array(v, t, own), own)
                for v, t in ((x, types[n]), (scale, types[n + 2]))
            )
            for d, (size, blocks) in enumerate(zip(x.shape, scale.shape)):
                scale = np.repeat(scale, size // max(1, blocks), axis=d)
            with np.errstate(all="ignore"):
                x = store(x * scale, own)
            sides.append(store(convert_array(x, own, common), common))
        else:
            sides.append(store(convert_array(x, types[n], common), common))
    lhs, rhs = (widen(x, wide_type(common)) for x in sides)
    return narrow(dot_general(lhs, rhs, dot_dims(instruction)), instruction.shape.dtype)


def _expand(instruction: HloInstruction) -> HloInstruction:
    """scaled-dot => dot(lhs * broadcast(lhs_scale), rhs * broadcast(rhs_scale))"""
    beside = Beside(instruction)
    common = _types(instruction)
    sides = []
    for x, scale in zip(instruction.operands[:2], instruction.operands[2:]):
        if scale.shape.rank:
            own = _scaled_type(x.shape.dtype, scale.shape.dtype)
            blocks = _spread(beside, beside.convert(scale, own), x.shape.dims)
            x = beside.binary("multiply", beside.convert(x, own), blocks)
        sides.append(beside.convert(x, common))
    attrs = dict(zip(DOT_DIMS, dot_dims(instruction)))
    attrs |= {k: v for k, v in instruction.attrs.items() if k == PRECISION.name}
    return beside.add("dot", instruction.shape, sides, **attrs)


def _spread(beside: Beside, scale: HloInstruction, dims: tuple[int, ...]) -> HloInstruction:
    """Each element of `scale` repeated over its block of an array of `dims`."""
    split: list[int] = []
    places = []
    for size, blocks in zip(dims, scale.shape.dims):
        places.append(len(split))
        split += [blocks] if blocks == size else [blocks, size // blocks]
    return beside.reshape(beside.broadcast(scale, split, places), dims)


def _cost(instruction: HloInstruction) -> Cost:
    """That of the dot: XLA does not count the scaling."""
    return OPS["dot"].cost(instruction)


def _example(graph: ExampleGraph) -> HloInstruction:
    m, n, blocks, size = (int(s) for s in graph.rng.integers(1, 5, 4))
    k = blocks * size
    dtype, scale = graph.pick([(BF16, BF16), (F8E4M3FN, F8E8M0FNU), (F32, F32), (BF16, F32)])
    lhs_scale = graph.pick([(m, blocks), (1, blocks), ()])
    operands = [
        graph.operand(dtype, (m, k)),
        graph.operand(dtype, (k, n)),
        graph.operand(scale, lhs_scale),
        graph.operand(scale, (blocks, n)),
    ]
    return graph.add(
        "scaled-dot",
        Shape(graph.pick([F32, BF16]), (m, n)),
        operands,
        lhs_contracting_dims=(1,),
        rhs_contracting_dims=(0,),
    )


register(
    OpDef(
        opcode="scaled-dot",
        operands=("lhs", "rhs", "lhs_scale", "rhs_scale"),
        attrs=(*dot_attrs(DOT_PROTO), PRECISION),
        infer=_infer,
        evaluate=_evaluate,
        lower=Expand(_expand),
        cost=_cost,
        example=_example,
        spec="XLA scaled-dot",
    )
)
