"""cholesky, triangular-solve and the lapack_*_ffi custom calls as kernels."""

from __future__ import annotations

from math import prod
from typing import Any

from haloc.codegen.kernel import Kernel, kernel_for
from haloc.codegen.target import Target
from haloc.cpu.custom_call import target_for
from haloc.cpu.linalg.arguments import Array, Call, Info, Int
from haloc.cpu.linalg.emit import emit_call
from haloc.cpu.linalg.lapack import PREFIXES
from haloc.cpu.linalg.request import Request
from haloc.cpu.linalg.routines import CORE_RANKS, ROUTINES, lead, other_triangle
from haloc.cpu.writer import Function
from haloc.errors import UnimplementedError
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.custom_call import config_attributes
from haloc.ops.table import attr

_COMPLEX_ONLY = {"ungqr", "heevd", "hetrd"}
_REAL_ONLY = {"orgqr", "syevd", "sytrd"}

FFI_TARGETS = {
    f"lapack_{letter}{name}_ffi": (letter, name)
    for name in ROUTINES
    for letter in PREFIXES.values()
    if name not in (_COMPLEX_ONLY if letter in "sd" else _REAL_ONLY)
}
"""Custom call target: (type letter, routine)."""


@target_for(*FFI_TARGETS)
def lapack_ffi_kernel(instruction: HloInstruction, target: Target) -> Kernel:
    """A lapack_*_ffi custom call; all arrays by rows, whatever layouts JAX asked for.

    InvalidArgumentError where shapes or attributes are not what the routine takes.
    """
    letter, name = FFI_TARGETS[attr(instruction, "custom_call_target")]
    operands = tuple(leaf for o in instruction.operands for leaf in o.shape.leaves())
    request = Request(
        letter + name,
        config_attributes(instruction),
        operands,
        tuple(instruction.shape.leaves()),
        CORE_RANKS.get(name, 2),
    )
    request.check()
    call = ROUTINES[name](request)
    return emit_call(call, operands, request.results, prod(request.batch_dims))


def _lapack_symbol(instruction: HloInstruction, name: str) -> str:
    dtype = instruction.operands[0].shape.dtype
    if dtype.name not in PREFIXES:
        raise UnimplementedError(
            f"{instruction.opcode}: element type {dtype} on cpu; supported: {', '.join(PREFIXES)}"
        )
    return PREFIXES[dtype.name] + name


@kernel_for("cholesky")
def cholesky_kernel(instruction: HloInstruction, target: Target) -> Kernel:
    """a = l l^H (lower) or u^H u, 0 in the other triangle; NaN if a is not positive definite."""
    symbol = _lapack_symbol(instruction, "potrf")
    shape = instruction.shape
    n = shape.dims[-1]
    is_lower = bool(attr(instruction, "lower"))
    uplo = other_triangle(ord("L" if is_lower else "U"))
    a = Array(shape.dtype, n, n, operand=0, result=0, by_rows=True)

    def finish(f: Function, frame: Any) -> None:
        _mask_triangle(f, frame.places[2], shape, is_lower, frame.places[4])

    call = Call(symbol, (uplo, Int(n), a, lead(n), Info()), finish)
    return emit_call(call, [instruction.operands[0].shape], [shape], prod(shape.dims[:-2]))


def _mask_triangle(f: Function, matrix: str, shape: Shape, is_lower: bool, info: str) -> None:
    """Zero outside the triangle; NaN everywhere when info is not 0."""
    n = shape.dims[-1]
    t = "float" if shape.dtype.real.byte_size == 4 else "double"
    parts = 2 if shape.dtype.is_complex else 1
    is_bad = f.op(f"icmp ne i32 {f.load('i32', info)}, 0")
    with f.loop(0, n) as i, f.loop(0, n) as j:
        is_outside = f.op(f"icmp {'sgt' if is_lower else 'slt'} i64 {j}, {i}")
        for part in range(parts):
            at = f.add(f.mul(f.add(f.mul(i, n), j), parts), part)
            place = f.element(matrix, t, at)
            x = f.load(t, place)
            x = f.op(f"select i1 {is_outside}, {t} 0.0, {t} {x}")
            bad = "0.0" if part else "0x7FF8000000000000"
            f.store(t, f.op(f"select i1 {is_bad}, {t} {bad}, {t} {x}"), place)


_TRANS = {"NO_TRANSPOSE": "N", "TRANSPOSE": "T", "ADJOINT": "C"}


@kernel_for("triangular-solve")
def triangular_solve_kernel(instruction: HloInstruction, target: Target) -> Kernel:
    """op(a) x = b (left_side) or x op(a) = b."""
    operands = tuple(o.shape for o in instruction.operands)
    letters = {
        "side": "L" if attr(instruction, "left_side") else "R",
        "uplo": "L" if attr(instruction, "lower") else "U",
        "diag": "U" if attr(instruction, "unit_diagonal") else "N",
        "trans_x": _TRANS[attr(instruction, "transpose_a")],
    }
    config = {name: ord(letter) for name, letter in letters.items()}
    symbol = _lapack_symbol(instruction, "trsm")
    call = ROUTINES["trsm"](Request(symbol, config, operands, (instruction.shape,)))
    return emit_call(call, operands, [instruction.shape], prod(operands[0].dims[:-2]))
