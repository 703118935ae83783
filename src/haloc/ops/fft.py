"""fft: discrete Fourier transforms over the trailing dimensions."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from haloc.ir.dtype import C64, C128, F32, F64, DType
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import Dims, Name
from haloc.ops.example import ExampleGraph
from haloc.ops.regions import braces, text
from haloc.ops.rules import dynamic_flags
from haloc.ops.table import Attr, Cost, Evaluator, OpDef, Structure, attr, invalid, register

TYPES = ("FFT", "IFFT", "RFFT", "IRFFT")
_COMPLEX_OF = {F32: C64, F64: C128}


def _infer_fft(instruction: HloInstruction) -> Shape:
    x = instruction.operands[0].shape
    kind, length = attr(instruction, "fft_type"), tuple(attr(instruction, "fft_length"))
    if not 1 <= len(length) <= 3:
        invalid(instruction, f"fft_length={braces(length)}, wanted 1 to 3 lengths", "fft_c3")
    if len(length) > x.rank:
        invalid(
            instruction, f"fft_length={braces(length)} is longer than {text(x)} has rank", "fft_c1"
        )
    allowed = (F32, F64) if kind == "RFFT" else (C64, C128)
    if x.dtype not in allowed:
        names = " or ".join(d.name for d in allowed)
        invalid(instruction, f"{kind} of {text(x)}, wanted element type {names}", "fft_c2")
    wanted = list(length)
    if kind == "IRFFT":
        wanted[-1] = wanted[-1] // 2 + 1 if wanted[-1] else 0
    given = x.dims[x.rank - len(length) :]
    if list(given) != wanted:
        invalid(
            instruction,
            f"{kind} with fft_length={braces(length)} of {text(x)}, wanted trailing dimensions "
            f"{braces(wanted)}",
            "fft_c5" if kind == "IRFFT" else "fft_c4",
        )
    dtype: DType = x.dtype
    dims = (*x.dims[: x.rank - len(length)], *length)
    if kind == "RFFT":
        dtype, dims = _COMPLEX_OF[x.dtype], (*dims[:-1], dims[-1] // 2 + 1 if dims[-1] else 0)
    if kind == "IRFFT":
        dtype = x.dtype.real
    static = (False,) * len(length)
    return Shape(dtype, dims, None, dynamic_flags(x)[: x.rank - len(length)] + static)


def _evaluate_fft(instruction: HloInstruction, operands: list[Value], context: Evaluator) -> Value:
    """In double precision, rounded once."""
    x = np.asarray(operands[0])
    length = tuple(attr(instruction, "fft_length"))
    shape = instruction.shape
    if not x.size or not shape.element_count:
        return np.zeros(shape.dims, shape.dtype.numpy)
    axes = tuple(range(x.ndim - len(length), x.ndim))
    kind = attr(instruction, "fft_type")
    wide = x.astype(np.float64 if kind == "RFFT" else np.complex128)
    transforms: dict[str, Callable[..., np.ndarray]] = {
        "FFT": np.fft.fftn,
        "IFFT": np.fft.ifftn,
        "RFFT": np.fft.rfftn,
        "IRFFT": np.fft.irfftn,
    }
    with np.errstate(all="ignore"):
        return transforms[kind](wide, length, axes).astype(shape.dtype.numpy)


def _fft_cost(instruction: HloInstruction) -> Cost:
    """8 flops for each operand element and product of the lengths' logarithms, rounded down."""
    logs = prod(max(0, n.bit_length() - 1) for n in attr(instruction, "fft_length"))
    return Cost(flops=8.0 * instruction.operands[0].shape.element_count * logs)


def _fft_example(graph: ExampleGraph) -> HloInstruction:
    kind, real = graph.pick(TYPES), graph.pick([F32, F64])
    batch = tuple(int(n) for n in graph.rng.integers(1, 4, int(graph.rng.integers(0, 3))))
    length = tuple(int(n) for n in graph.rng.integers(1, 9, int(graph.rng.integers(1, 4))))
    half = (*length[:-1], length[-1] // 2 + 1)
    given = half if kind == "IRFFT" else length
    result = half if kind == "RFFT" else length
    operand = graph.operand(real if kind == "RFFT" else _COMPLEX_OF[real], batch + given)
    shape = Shape(real if kind == "IRFFT" else _COMPLEX_OF[real], batch + result)
    return graph.add("fft", shape, (operand,), fft_type=kind, fft_length=length)


register(
    OpDef(
        opcode="fft",
        operands=("operand",),
        attrs=(Attr("fft_type", Name(TYPES, TYPES)), Attr("fft_length", Dims())),
        infer=_infer_fft,
        evaluate=_evaluate_fft,
        lower=Structure.LIBRARY,
        cost=_fft_cost,
        example=_fft_example,
        spec="fft",
    )
)
