"""cholesky and triangular-solve."""

from __future__ import annotations

import numpy as np

from haloc.ir.dtype import C64, C128, F32, F64
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import Bool, Name
from haloc.ops.contraction import narrow, wide_type, widen
from haloc.ops.example import ExampleGraph
from haloc.ops.regions import text
from haloc.ops.table import Attr, Cost, Evaluator, OpDef, Structure, attr, invalid, register

LINALG = ("cholesky", "triangular-solve")
"""The opcodes of this family."""

TRANSPOSES = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


def _check_square(
    instruction: HloInstruction, name: str, x: Shape, labels: tuple[str, str]
) -> None:
    if not (x.dtype.is_float or x.dtype.is_complex):
        invalid(instruction, f"{name} is {text(x)}, wanted floats or complex numbers", labels[0])
    if x.rank < 2 or x.dims[-1] != x.dims[-2]:
        invalid(instruction, f"{name} is {text(x)}, wanted square matrices", labels[1])


def _infer_cholesky(instruction: HloInstruction) -> Shape:
    x = instruction.operands[0].shape
    _check_square(instruction, "a", x, ("cholesky_c1", "cholesky_c3"))
    return x.with_default_layout()


def _evaluate_cholesky(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    """L with L L^H = a (or U with U^H U = a), reading one triangle; zeros in the other.

    A matrix that is not positive definite gives NaN everywhere, as in XLA:CPU.
    """
    dtype = instruction.shape.dtype
    a = widen(np.asarray(operands[0]), wide_type(dtype))
    lower = attr(instruction, "lower")
    if not lower:
        a = a.swapaxes(-1, -2).conj()
    result = np.zeros_like(a)
    for index in np.ndindex(*a.shape[:-2]):
        result[index] = _cholesky_of_one(a[index])
    return narrow(result if lower else result.swapaxes(-1, -2).conj(), dtype)


def _cholesky_of_one(a: np.ndarray) -> np.ndarray:
    triangle = np.tril(a, -1)
    full = triangle + triangle.conj().T + np.diag(np.diag(a).real)
    try:
        factor = np.linalg.cholesky(full)
    except np.linalg.LinAlgError:
        return np.full_like(a, np.nan)
    return factor if np.isfinite(factor).all() else np.full_like(a, np.nan)


def _cholesky_cost(instruction: HloInstruction) -> Cost:
    """n^3 / 3 a matrix, rounded down over all."""
    dims = instruction.shape.dims
    return Cost(flops=float(instruction.shape.element_count * dims[-1] // 3))


def _cholesky_example(graph: ExampleGraph) -> HloInstruction:
    dtype = graph.pick([F32, F64, C64, C128])
    n = int(graph.rng.integers(1, 5))
    dims = (*(int(d) for d in graph.rng.integers(1, 3, int(graph.rng.integers(0, 2)))), n, n)
    x = graph.rng.standard_normal(dims)
    a = x @ x.swapaxes(-1, -2) + np.eye(n)
    operand = graph.constant(a, dtype)
    lower = bool(graph.rng.integers(2))
    return graph.add("cholesky", Shape(dtype, dims), (operand,), lower=lower)


register(
    OpDef(
        opcode="cholesky",
        operands=("a",),
        attrs=(Attr("lower", Bool(), False, "cholesky_options."),),
        infer=_infer_cholesky,
        evaluate=_evaluate_cholesky,
        lower=Structure.LIBRARY,
        cost=_cholesky_cost,
        example=_cholesky_example,
        spec="cholesky",
    )
)


def _infer_triangular_solve(instruction: HloInstruction) -> Shape:
    a, b = (o.shape for o in instruction.operands)
    _check_square(instruction, "a", a, ("triangular_solve_c1", "triangular_solve_c4"))
    if a.dtype is not b.dtype:
        invalid(
            instruction,
            f"a is {text(a)}, but b is {text(b)}: element types must be the same",
            "triangular_solve_c1",
        )
    if a.rank != b.rank:
        invalid(
            instruction,
            f"a is {text(a)}, but b is {text(b)}: ranks must be the same",
            "triangular_solve_c2",
        )
    side = -2 if attr(instruction, "left_side") else -1
    if a.dims[:-2] != b.dims[:-2] or b.dims[side] != a.dims[-1]:
        wanted = f"[{','.join(map(str, a.dims[:-2]))}] and dimension {side} {a.dims[-1]}"
        invalid(
            instruction,
            f"b is {text(b)}, wanted batch dimensions {wanted}, from a {text(a)}",
            "triangular_solve_c3",
        )
    return b.with_default_layout()


def _evaluate_triangular_solve(
    instruction: HloInstruction, operands: list[Value], context: Evaluator
) -> Value:
    """x with op(a) x = b, or x op(a) = b; only one triangle of a is read. By substitution."""
    dtype = instruction.shape.dtype
    a, b = (widen(np.asarray(o), wide_type(dtype)) for o in operands)
    lower, kind = attr(instruction, "lower"), attr(instruction, "transpose_a")
    a = np.tril(a) if lower else np.triu(a)
    if kind != "NO_TRANSPOSE":
        a, lower = a.swapaxes(-1, -2), not lower
    if kind == "ADJOINT":
        a = a.conj()
    if not attr(instruction, "left_side"):
        # x op(a) = b is op(a)^T x^T = b^T.
        a, b, lower = a.swapaxes(-1, -2), b.swapaxes(-1, -2), not lower
    x = np.array(b)
    n = a.shape[-1]
    with np.errstate(all="ignore"):
        for row in range(n) if lower else reversed(range(n)):
            done = slice(0, row) if lower else slice(row + 1, n)
            known = np.matmul(a[..., row : row + 1, done], x[..., done, :])[..., 0, :]
            x[..., row, :] = x[..., row, :] - known
            if not attr(instruction, "unit_diagonal"):
                x[..., row, :] = x[..., row, :] / a[..., row, row, None]
    return narrow(x if attr(instruction, "left_side") else x.swapaxes(-1, -2), dtype)


def _triangular_solve_cost(instruction: HloInstruction) -> Cost:
    """A multiply-add, 2 flops, for each element of b and each row of a."""
    n = instruction.operands[0].shape.dims[-1]
    return Cost(flops=2.0 * instruction.shape.element_count * n)


def _triangular_solve_example(graph: ExampleGraph) -> HloInstruction:
    dtype = graph.pick([F32, F64, C64, C128])
    n, m = int(graph.rng.integers(1, 5)), int(graph.rng.integers(1, 4))
    batch = tuple(int(d) for d in graph.rng.integers(1, 3, int(graph.rng.integers(0, 2))))
    left = bool(graph.rng.integers(2))
    a = graph.rng.standard_normal((*batch, n, n)) * 0.3 + 2 * np.eye(n)
    operand = graph.operand(dtype, (*batch, n, m) if left else (*batch, m, n))
    return graph.add(
        "triangular-solve",
        operand.shape,
        (graph.constant(a, dtype), operand),
        left_side=left,
        lower=bool(graph.rng.integers(2)),
        unit_diagonal=bool(graph.rng.integers(2)),
        transpose_a=graph.pick(TRANSPOSES),
    )


register(
    OpDef(
        opcode="triangular-solve",
        operands=("a", "b"),
        attrs=(
            Attr("left_side", Bool(), False, "triangular_solve_options."),
            Attr("lower", Bool(), False, "triangular_solve_options."),
            Attr("unit_diagonal", Bool(), False, "triangular_solve_options."),
            Attr(
                "transpose_a",
                Name(TRANSPOSES, ("", *TRANSPOSES)),
                proto="triangular_solve_options.",
            ),
        ),
        infer=_infer_triangular_solve,
        evaluate=_evaluate_triangular_solve,
        lower=Structure.LIBRARY,
        cost=_triangular_solve_cost,
        example=_triangular_solve_example,
        spec="triangular_solve",
    )
)
