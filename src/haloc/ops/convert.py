"""Changing element types: convert, bitcast-convert, reduce-precision, stochastic-convert."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from haloc.ir.dtype import DType
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import Int
from haloc.ops.example import ExampleGraph
from haloc.ops.families import (
    evaluate_with_instruction,
    pick_dtype,
)
from haloc.ops.reference import Array, store, wide
from haloc.ops.rules import (
    ANY,
    FLOAT,
    array_operands,
    check_dtype,
    label,
)
from haloc.ops.table import (
    Attr,
    Elementwise,
    OpDef,
    attr,
    flop_per_element,
    invalid,
    register,
)

# --- convert -----------------------------------------------------------------------------------


def convert_array(x: Array, source: DType, target: DType) -> Array:
    """HLO's convert.

    Floats to integers: towards zero, saturating, NaN gives 0. Integers to narrower integers: wrap.
    To pred: whether it is not 0 (NaN is not). Complex to real: the real part. Else: rounds once to
    nearest even, and overflows as the target type does (inf, NaN or its largest number).
    """
    if source is target:
        return x
    if source.is_complex and not target.is_complex:
        if target.is_pred:
            return x != 0
        return convert_array(np.asarray(x.real), source.real, target)
    if target.is_pred:
        return wide(x) != 0
    if target.is_integer:
        return _to_integer(wide(x), target)
    if target.is_float and target.bits < 32:
        return _to_narrow_float(wide(x), target)
    return wide(x).astype(target.numpy)


def _to_integer(x: Array, target: DType) -> Array:
    if x.dtype.kind != "f":
        bits = x.astype(np.uint64 if x.dtype.kind == "u" else np.int64)
        if target.bits >= 8:
            return bits.astype(target.numpy)
        return bits.view(np.uint64).astype(np.uint8)  # `store` wraps the rest.
    low, high = integer_range(target)
    x = x.astype(np.float64)
    inside = (
        (x > float(low) - 1) & (x < float(high))
        if target.bits < 64
        else ((x >= float(low)) & (x < float(high)))
    )
    middle = np.where(inside, np.trunc(x), 0).astype(np.uint64 if low == 0 else np.int64)
    whole = middle.dtype.type
    edge = np.where(x >= float(high), whole(high), np.where(np.isnan(x), whole(0), whole(low)))
    return np.where(inside, middle, edge).astype(target.numpy)


def integer_range(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    if dtype.is_unsigned:
        return 0, 2**dtype.bits - 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1


def _to_narrow_float(x: Array, target: DType) -> Array:
    """Rounds f64 and integers once: through f32 rounded to odd, whose last bit is sticky."""
    if x.dtype.kind == "f" and x.dtype.itemsize <= 4:
        return store(x, target)
    exact = x.astype(np.float64)
    if x.dtype.kind in "iu" and x.dtype.itemsize == 8:
        exact = _to_odd_f64(x, exact)
    single = exact.astype(np.float32)
    towards_zero = np.where(
        np.abs(single.astype(np.float64)) > np.abs(exact),
        np.nextafter(single, np.float32(0)),
        single,
    )
    inexact = (towards_zero.astype(np.float64) != exact) & np.isfinite(exact)
    bits = np.asarray(towards_zero, np.float32).view(np.uint32)
    odd = np.where(inexact, bits | 1, bits).astype(np.uint32).view(np.float32)
    return store(odd, target)


def _to_odd_f64(x: Array, rounded: Array) -> Array:
    """64-bit integers as f64 with the last bit set where that is not exact."""
    magnitude = np.where(x < 0, -x, x).astype(np.uint64) if x.dtype.kind == "i" else x
    keep = np.uint64(2**64 - 2**12)
    sticky = np.where(magnitude & ~keep, np.uint64(2**12), np.uint64(0))
    large = magnitude >= np.uint64(2**53)
    odd = ((magnitude & keep) | sticky).astype(np.float64)
    return np.where(large, np.copysign(odd, rounded), rounded)


def _infer_convert(instruction: HloInstruction) -> Shape:
    (operand,) = array_operands(instruction)
    if not instruction.shape.is_array:
        invalid(instruction, f"the result must be an array, got {instruction.shape}")
    return operand.with_dtype(instruction.shape.dtype)


def _convert(instruction: HloInstruction, x: Array) -> Array:
    return convert_array(x, instruction.operands[0].shape.dtype, instruction.shape.dtype)


def _example_convert(graph: ExampleGraph) -> HloInstruction:
    source, target = pick_dtype(graph, ANY), pick_dtype(graph, ANY)
    dims = graph.dims()
    return graph.add("convert", Shape(target, dims), [graph.operand(source, dims)])


register(
    OpDef(
        opcode="convert",
        operands=("operand",),
        infer=_infer_convert,
        evaluate=evaluate_with_instruction(_convert),
        lower=Elementwise(lambda b, i, x: b.convert(x, i.shape.dtype)),
        cost=flop_per_element,
        example=_example_convert,
        spec="convert",
    )
)


# --- reduce-precision --------------------------------------------------------------------------


def _infer_reduce_precision(instruction: HloInstruction) -> Shape:
    (operand,) = array_operands(instruction)
    check_dtype(instruction, 0, FLOAT)
    exponent, mantissa = attr(instruction, "exponent_bits"), attr(instruction, "mantissa_bits")
    if exponent < 1:
        fault = f"exponent_bits={exponent}, wanted at least 1"
        invalid(instruction, fault, label(instruction, "c2"))
    if mantissa < 0:
        fault = f"mantissa_bits={mantissa}, wanted at least 0"
        invalid(instruction, fault, label(instruction, "c3"))
    return operand


def reduce_precision(x: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """x rounded to the nearest even number with these field widths.

    Too large becomes infinite, below the smallest normal number of that format becomes a zero of
    the same sign; NaN stays. A width at least as large as the type's own changes nothing.
    """
    info = ml_dtypes.finfo(x.dtype)
    if info.bits < 16:  # As in XLA, reduced as a wider type: some of these have no infinity.
        wider = np.float32 if x.dtype == ml_dtypes.float8_e8m0fnu else np.float16
        return reduce_precision(x.astype(wider), exponent_bits, mantissa_bits)
    own_mantissa, own_exponent = info.nmant, info.bits - 1 - info.nmant
    unsigned = np.dtype(f"u{x.dtype.itemsize}").type
    bits = x.view(unsigned)
    sign = bits & unsigned(1 << (info.bits - 1))
    magnitude = bits ^ sign
    infinity = unsigned(((1 << own_exponent) - 1) << own_mantissa)
    result = magnitude
    drop = own_mantissa - mantissa_bits
    if drop > 0:
        last = (magnitude >> unsigned(drop)) & unsigned(1)
        rounded = magnitude + last + unsigned((1 << (drop - 1)) - 1)
        result = rounded & ~unsigned((1 << drop) - 1)
    if exponent_bits < own_exponent:
        bias, reach = (1 << (own_exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent = result >> unsigned(own_mantissa)
        result = np.where(exponent > unsigned(bias + reach), infinity, result)
        result = np.where(exponent <= unsigned(bias - reach), unsigned(0), result)
    result = np.where(magnitude > infinity, magnitude, result)
    return (result | sign).astype(unsigned).view(x.dtype)


def _reduce_precision(instruction: HloInstruction, x: Array) -> Array:
    widths = attr(instruction, "exponent_bits"), attr(instruction, "mantissa_bits")
    return reduce_precision(np.asarray(x), *widths)


def _example_reduce_precision(graph: ExampleGraph) -> HloInstruction:
    dtype, dims = pick_dtype(graph, FLOAT), graph.dims()
    return graph.add(
        "reduce-precision",
        Shape(dtype, dims),
        [graph.operand(dtype, dims)],
        exponent_bits=int(graph.rng.integers(1, 12)),
        mantissa_bits=int(graph.rng.integers(0, 24)),
    )


register(
    OpDef(
        opcode="reduce-precision",
        operands=("operand",),
        attrs=(Attr("exponent_bits", Int()), Attr("mantissa_bits", Int())),
        infer=_infer_reduce_precision,
        evaluate=evaluate_with_instruction(_reduce_precision),
        lower=Elementwise(
            lambda b, i, x: b.reduce_precision(
                x, attr(i, "exponent_bits"), attr(i, "mantissa_bits")
            )
        ),
        cost=flop_per_element,
        example=_example_reduce_precision,
        spec="reduce_precision",
    )
)
