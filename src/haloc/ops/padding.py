"""pad: low, high and interior padding; negative low and high padding cut elements off."""

from __future__ import annotations

import numpy as np

from haloc.ir.module import HloInstruction
from haloc.ir.shape import UNBOUNDED, Shape
from haloc.ops.attrs import Padding
from haloc.ops.example import ExampleGraph
from haloc.ops.families import evaluate_with_instruction, pick_dtype
from haloc.ops.reference import Array
from haloc.ops.rules import (
    ANY,
    array_operands,
    check_length,
    check_same_dtype,
    check_scalar,
    dynamic_flags,
    label,
)
from haloc.ops.scalar import Indices, Read, Scalar, Value
from haloc.ops.table import Attr, Indexed, OpDef, attr, invalid, register

PadDims = tuple[tuple[int, int, int], ...]


def padded_size(size: int, low: int, high: int, interior: int) -> int:
    """Size of a padded dimension; may be negative for too much cutting."""
    return low + size + max(size - 1, 0) * interior + high


def _infer_pad(instruction: HloInstruction) -> Shape:
    operand, _ = array_operands(instruction)
    padding: PadDims = attr(instruction, "padding")
    check_same_dtype(instruction, (0, 1), "c1")
    check_scalar(instruction, 1, "i2")
    check_length(instruction, "padding", padding, operand.rank, "c2")
    dims = []
    for d, (size, (low, high, interior)) in enumerate(zip(operand.dims, padding)):
        if interior < 0:
            fault = f"the interior padding of dimension {d} is {interior}, wanted at least 0"
            invalid(instruction, fault, label(instruction, "c3"))
        wanted = UNBOUNDED if size == UNBOUNDED else padded_size(size, low, high, interior)
        if wanted < 0 and size != UNBOUNDED:
            fault = (
                f"padding {low}_{high}_{interior} of dimension {d} (size {size}) leaves {wanted}"
            )
            invalid(instruction, fault, label(instruction, "c4"))
        dims.append(wanted)
    return Shape(operand.dtype, tuple(dims), operand.layout, dynamic_flags(operand))


def pad_array(x: Array, value: Array, padding: PadDims) -> Array:
    dims = [padded_size(size, *p) for size, p in zip(x.shape, padding)]
    result = np.full(dims, value, x.dtype)
    source, target = [], []
    for size, wanted, (low, _, interior) in zip(x.shape, dims, padding):
        places = low + np.arange(size) * (interior + 1)
        kept = (places >= 0) & (places < wanted)
        source.append(np.flatnonzero(kept))
        target.append(places[kept])
    if padding:
        result[np.ix_(*target)] = x[np.ix_(*source)]
        return result
    return x.copy()


def _pad(instruction: HloInstruction, x: Array, value: Array) -> Array:
    return pad_array(x, value, attr(instruction, "padding"))


def _emit_pad(b: Scalar, instruction: HloInstruction, index: Indices, read: Read) -> Value:
    """An element comes from the operand where, in every dimension, its distance from the low edge
    is a multiple of interior + 1 within the operand."""
    inside: Value | None = None
    at = []
    padding, sizes = attr(instruction, "padding"), instruction.operands[0].shape.dims
    for i, size, (low, high, interior) in zip(index, sizes, padding):
        step, place = interior + 1, i - low if low else i
        tests = []
        if low > 0 or high > 0 or size == 0:
            tests.append(b.index_in_range(place, 0, max(0, (size - 1) * step + 1)))
        if step > 1:
            tests.append(b.index_in_range(place % step, 0, 1))
            place = place // step
        at.append(place)
        for test in tests:
            inside = test if inside is None else b.and_(inside, test)
    if inside is None:
        return read(0, tuple(at))
    return b.select(inside, read(0, tuple(at), inside), read(1, ()))


def _example_pad(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = pick_dtype(graph, ANY), graph.dims(low=1)  # HLO text cannot pad a scalar.
    padding = []
    for size in dims:
        interior = int(graph.rng.integers(0, 3)) if graph.rng.random() < 0.5 else 0
        low, high = (int(v) for v in graph.rng.integers(-1, 3, 2))
        if padded_size(size, low, high, interior) < 0:
            low = high = 0
        padding.append((low, high, interior))
    shape = Shape(dtype, tuple(padded_size(s, *p) for s, p in zip(dims, padding)))
    operands = [graph.operand(dtype, dims), graph.operand(dtype)]
    return graph.add("pad", shape, operands, padding=tuple(padding))


register(
    OpDef(
        opcode="pad",
        operands=("operand", "padding_value"),
        attrs=(Attr("padding", Padding(), proto="padding_config.dimensions"),),
        infer=_infer_pad,
        evaluate=evaluate_with_instruction(_pad),
        lower=Indexed(_emit_pad),
        example=_example_pad,
        spec="pad",
    )
)
