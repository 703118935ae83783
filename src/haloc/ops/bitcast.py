"""bitcast-convert: the same bits as another element type, of the same or another width.

Between widths the ratio is one more, innermost dimension on the narrow side, its element 0 holding
the low bits: u8[4,2] <-> u16[4]. Complex numbers are the pair (real, imaginary), real part lowest.
"""

from __future__ import annotations

import numpy as np

from haloc.ir import dtype as dt
from haloc.ir.dtype import DType
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.example import ExampleGraph
from haloc.ops.families import evaluate_with_instruction, pick_dtype
from haloc.ops.reference import Array, wrap
from haloc.ops.rules import ANY, array_operands, dynamic_flags, label
from haloc.ops.scalar import Indices, Read, Scalar, Value
from haloc.ops.table import Indexed, OpDef, flop_per_element, invalid, register

UNSIGNED_OF_BITS = {2: dt.U2, 4: dt.U4, 8: dt.U8, 16: dt.U16, 32: dt.U32, 64: dt.U64}


def _family(dtype: DType) -> int:
    """Types of one family convert into each other; 6-bit floats only into each other."""
    if dtype.is_pred:
        return 0
    if dtype.is_complex:
        return 1
    return 2 if dtype.bits in UNSIGNED_OF_BITS else 3


def _infer(instruction: HloInstruction) -> Shape:
    (operand,) = array_operands(instruction)
    result = instruction.shape
    if not result.is_array:
        invalid(instruction, f"the result must be an array, got {result}")
    source, target = operand.dtype, result.dtype
    if _family(source) != _family(target):
        invalid(
            instruction, f"the bits of {source} are not those of {target}", "bitcast_convert_c2"
        )
    dims, flags = operand.dims, dynamic_flags(operand)
    if source.bits > target.bits:
        return Shape(target, (*dims, source.bits // target.bits), None, (*flags, False))
    if source.bits < target.bits:
        ratio = target.bits // source.bits
        if not dims or dims[-1] != ratio:
            invalid(
                instruction,
                f"from {source} to {target} the last dimension must be {ratio}, "
                f"got {operand.to_string(False)}",
                label(instruction, "c1"),
            )
        return Shape(target, dims[:-1], None, flags[:-1])
    return operand.with_dtype(target)


# --- meaning -----------------------------------------------------------------------------------


def bitcast_array(x: Array, source: DType, target: DType) -> Array:
    """x's bits as `target`; dims change as in `_infer`."""
    if source.bits == target.bits:
        return np.ascontiguousarray(x).view(target.numpy).reshape(x.shape)
    dims = (*x.shape, source.bits // target.bits) if source.bits > target.bits else x.shape[:-1]
    return _from_bits(_to_bits(x, source).reshape(-1, target.bits), target).reshape(dims)


def _to_bits(x: Array, dtype: DType) -> Array:
    """One row an element: its bits as 0 and 1, lowest first."""
    bytes_of = np.ascontiguousarray(x).reshape(-1, 1).view(np.uint8)
    return np.unpackbits(bytes_of, axis=1, bitorder="little")[:, : dtype.bits]


def _from_bits(bits: Array, dtype: DType) -> Array:
    whole = np.zeros((len(bits), dtype.byte_size * 8), np.uint8)
    whole[:, : dtype.bits] = bits
    flat = np.packbits(whole, axis=1, bitorder="little").reshape(-1)
    if dtype.is_integer and dtype.bits < 8:  # NumPy keeps them sign-extended in their byte.
        return wrap(flat, dtype).astype(dtype.numpy)
    return flat.view(dtype.numpy)


def _evaluate(instruction: HloInstruction, x: Array) -> Array:
    x = np.asarray(x)
    return bitcast_array(x, instruction.operands[0].shape.dtype, instruction.shape.dtype)


# --- code --------------------------------------------------------------------------------------


def _emit(b: Scalar, instruction: HloInstruction, index: Indices, read: Read) -> Value:
    source, target = instruction.operands[0].shape.dtype, instruction.shape.dtype
    if source is target:
        return read(0, index)
    if source.is_complex:
        return (
            _split_complex(b, index, read) if source is dt.C128 else _join_complex(b, index, read)
        )
    if source.bits == target.bits:
        return b.bitcast(read(0, index), target)
    if source.bits > target.bits:
        wide, narrow = UNSIGNED_OF_BITS[source.bits], UNSIGNED_OF_BITS[target.bits]
        bits = b.bitcast(read(0, index[:-1]), wide)
        shift = b.from_index(index[-1] * target.bits, wide)
        part = b.shift_right_logical(bits, shift)
        return b.bitcast(b.convert(part, narrow), target)
    parts = [
        b.bitcast(read(0, (*index, b.index_constant(k))), UNSIGNED_OF_BITS[source.bits])
        for k in range(target.bits // source.bits)
    ]
    return b.bitcast(_join_bits(b, parts, UNSIGNED_OF_BITS[target.bits]), target)


def _join_bits(b: Scalar, parts: list[Value], wide: DType) -> Value:
    """One `wide` number from unsigned parts, lowest first."""
    width = parts[0].dtype.bits
    result = b.convert(parts[0], wide)
    for k, part in enumerate(parts[1:], 1):
        shifted = b.shift_left(b.convert(part, wide), b.constant(wide, k * width))
        result = b.or_(result, shifted)
    return result


def _split_complex(b: Scalar, index: Indices, read: Read) -> Value:
    """c128 as two c64: element 0 is the halves of the real part, element 1 of the imaginary."""
    z = read(0, index[:-1])
    is_real = b.index_in_range(index[-1], 0, 1)
    bits = b.bitcast(b.select(is_real, b.real(z), b.imag(z)), dt.U64)
    high = b.shift_right_logical(bits, b.constant(dt.U64, 32))
    halves = [b.bitcast(b.convert(part, dt.U32), dt.F32) for part in (bits, high)]
    return b.complex(*halves)


def _join_complex(b: Scalar, index: Indices, read: Read) -> Value:
    parts = []
    for k in range(2):
        z = read(0, (*index, b.index_constant(k)))
        halves = [b.bitcast(part, dt.U32) for part in (b.real(z), b.imag(z))]
        parts.append(b.bitcast(_join_bits(b, halves, dt.U64), dt.F64))
    return b.complex(*parts)


# --- example -----------------------------------------------------------------------------------


def _example(graph: ExampleGraph) -> HloInstruction:
    source = pick_dtype(graph, ANY)
    like = [d for d in sorted(ANY, key=lambda d: d.number) if _family(d) == _family(source)]
    # XLA's parser takes no complex numbers of another width.
    target = source if source.is_complex else graph.pick(like)
    dims = graph.dims(high=3)
    operand_dims, result_dims = dims, dims
    if source.bits > target.bits:
        result_dims = (*dims, source.bits // target.bits)
    elif source.bits < target.bits:
        operand_dims = (*dims, target.bits // source.bits)
    operand = graph.operand(source, operand_dims)
    return graph.add("bitcast-convert", Shape(target, result_dims), [operand])


register(
    OpDef(
        opcode="bitcast-convert",
        operands=("operand",),
        infer=_infer,
        evaluate=evaluate_with_instruction(_evaluate),
        lower=Indexed(_emit),
        cost=flop_per_element,
        example=_example,
        spec="bitcast_convert",
    )
)
