"""reduce-window: each result element combines the window positions that fall on elements."""

from __future__ import annotations

from itertools import product
from math import prod

from haloc.codegen.elemental import LOOPED, Elements
from haloc.codegen.index import Affine
from haloc.codegen.reduction import carry_value, combiner, from_registers, registers
from haloc.codegen.scalar import LlvmValue
from haloc.ir.module import HloInstruction
from haloc.ops.attrs import WindowDim
from haloc.ops.table import attr

UNROLL = 16
"""Windows of at most this many positions are written out without loops."""


def emit_reduce_window(
    elements: Elements,
    instruction: HloInstruction,
    index: tuple[Affine, ...],
    mask: LlvmValue | None,
) -> list[LlvmValue]:
    """All results at one result index."""
    scalar, space = elements.scalar, elements.space
    count = len(instruction.operands) // 2
    inputs, init_operands = instruction.operands[:count], instruction.operands[count:]
    window = attr(instruction, "window")
    combine, wide = combiner(elements, instruction.attrs["to_apply"])
    width = space.width if any(i.varies_by_lane for i in index) else 1
    inits = [scalar.splat(elements.element(i, ()), width) for i in init_operands]
    if wide is not None:
        inits = [scalar.convert(i, wide) for i in inits]

    def step(at: tuple[Affine, ...], carried: list[LlvmValue]) -> list[LlvmValue]:
        inside, place = window_element(elements, window, inputs[0].shape.dims, index, at)
        read = elements.both(mask, inside)
        values = [elements.element(x, place, read) for x in inputs]
        if wide is not None:
            values = [scalar.convert(v, wide) for v in values]
        values = [scalar.splat(v, width) for v in values]
        combined = combine(carried, values)
        chosen = [scalar.select(inside, c, old) for c, old in zip(combined, carried, strict=True)]
        return [scalar.splat(v, width) for v in chosen]

    values = over_window(elements, [w.size for w in window], inits, step)
    if wide is not None:
        values = [
            scalar.convert(v, i.shape.dtype) for v, i in zip(values, init_operands, strict=True)
        ]
    return values


LOOPED["reduce-window"] = emit_reduce_window


def window_element(
    elements: Elements,
    window: tuple[WindowDim, ...],
    dims: tuple[int, ...],
    index: tuple[Affine, ...],
    at: tuple[Affine, ...],
) -> tuple[LlvmValue, tuple[Affine, ...]]:
    """(whether position `at` of window `index` is an element, which element)."""
    scalar = elements.scalar
    inside = scalar.true()
    place: list[Affine] = []
    for w, size, i, k in zip(window, dims, index, at, strict=True):
        if w.reversal:
            k = k * -1 + (w.size - 1)
        p = i * w.stride + k * w.window_dilation - w.padding_low
        if w.base_dilation > 1:
            whole = scalar.index_in_range(p % w.base_dilation, 0, 1)
            inside = scalar.and_(inside, whole)
            p = p // w.base_dilation
        if w.size > 1 or w.padding_low or w.padding_high or w.base_dilation > 1:
            inside = scalar.and_(inside, scalar.index_in_range(p, 0, size))
        place.append(p)
    return inside, tuple(place)


def over_window(elements: Elements, sizes: list[int], carried: list[LlvmValue], step) -> list:
    """Fold `step(position, carried)` over all window positions, in row-major order."""
    space = elements.space
    if prod(sizes) <= UNROLL:
        for position in product(*(range(n) for n in sizes)):
            carried = step(tuple(space.constant(k) for k in position), carried)
        return carried

    def nest(d: int, at: tuple[Affine, ...], carried: list[LlvmValue]) -> list[LlvmValue]:
        if d == len(sizes):
            return step(at, carried)
        if sizes[d] == 1:
            return nest(d + 1, (*at, space.zero), carried)
        with elements.builder.loop(0, sizes[d]) as loop:
            inside = [carry_value(loop.carry, v) for v in carried]
            k = space.atom(0, sizes[d] - 1, loop.index)
            after = nest(d + 1, (*at, k), inside)
            loop.next(*(r for v in after for r in registers(v)))
        return from_registers(after, loop.results())

    return nest(0, (), carried)
