"""dot: products of arrays summed over contracting dimensions."""

from __future__ import annotations

from math import prod

import numpy as np

from haloc.ir.dtype import BF16, C64, F32, F64, S8, S32, U8, DType
from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.attrs import Dims, Name, Words
from haloc.ops.convert import convert_array
from haloc.ops.example import ExampleGraph
from haloc.ops.reference import store
from haloc.ops.regions import braces, check_dims, text
from haloc.ops.rules import dynamic_flags
from haloc.ops.table import (
    Attr,
    Cost,
    Evaluator,
    OpDef,
    Structure,
    attr,
    invalid,
    register,
)

ALGORITHMS = (
    "",
    "dot_any_f8_any_f8_f32",
    "dot_any_f8_any_f8_f32_fast_accum",
    "dot_f16_f16_f16",
    "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16",
    "dot_bf16_bf16_f32",
    "dot_bf16_bf16_f32_x3",
    "dot_bf16_bf16_f32_x6",
    "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3",
    "dot_f32_f32_f32",
    "dot_f64_f64_f64",
    "dot_bf16_bf16_f32_x9",
)
"""Names of `algorithm=`, by XLA's number."""

KINDS = ("pred", "integer", "float", "complex")
"""The kinds of element types that are multiplied and added."""

PRECISION = Attr(
    "operand_precision", Words(("default", "high", "highest")), (), "precision_config."
)
ALGORITHM = Attr("algorithm", Name(enum=ALGORITHMS), "", "precision_config.")


def wide_type(dtype: DType) -> np.dtype:
    """The NumPy type sums of products are made in: exact for products, rounded once at the end.

    float64 or complex128 for floats and complex; 64-bit integers, whose wrap-around agrees with
    that of any narrower type; bool (or of ands) for pred.
    """
    if dtype.is_pred:
        return np.dtype(np.bool_)
    if dtype.is_complex:
        return np.dtype(np.complex128)
    if dtype.is_integer:
        return np.dtype(np.int64 if dtype.is_signed else np.uint64)
    return np.dtype(np.float64)


def widen(x: np.ndarray, wide: np.dtype) -> np.ndarray:
    """x in a type of `wide_type`. ml_dtypes arrays go through a type NumPy knows."""
    if x.dtype.isbuiltin != 1:
        x = x.astype(np.int32 if wide.kind in "iu" else np.float32)
    return x.astype(wide)


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """np.matmul of arrays of a `wide_type`. Complex products are (ac - bd) + (ad + bc)i throughout:
    BLAS also multiplies by 1 + 0i, which turns infinities into NaN."""
    with np.errstate(all="ignore"):
        if a.dtype.kind != "c":
            return np.matmul(a, b)
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        product = np.empty((*batch, a.shape[-2], b.shape[-1]), a.dtype)
        product.real = np.matmul(a.real, b.real) - np.matmul(a.imag, b.imag)
        product.imag = np.matmul(a.real, b.imag) + np.matmul(a.imag, b.real)
        return product


def narrow(x: np.ndarray, dtype: DType) -> np.ndarray:
    """x, of a type of `wide_type`, rounded (floats) or wrapped (integers) to dtype."""
    with np.errstate(all="ignore"):
        return store(x, dtype)


def accumulation_wide_type(shapes: list[Shape], result: Shape) -> np.dtype:
    """`wide_type` of operands and result together; signed when any integer is."""
    types = {wide_type(s.dtype) for s in [*shapes, result]}
    if all(t.kind in "iu" for t in types):
        return np.dtype(np.int64 if np.dtype(np.int64) in types else np.uint64)
    return np.result_type(*types)


def _kind(dtype: DType) -> int:
    """Number in KINDS; of none of them, -1."""
    name = "integer" if dtype.is_integer else dtype.kind.value
    return KINDS.index(name) if name in KINDS else -1


def check_contraction_types(
    instruction: HloInstruction, lhs: Shape, rhs: Shape, label: str
) -> DType:
    """The result's element type: the instruction chooses it, of the operands' kind or a later one.

    Kinds, in order: pred, integer, float, complex. Operands of an earlier kind than the result's
    are converted to the result's type first, which may then not be narrower than theirs.
    """
    result = instruction.shape.dtype
    operands = (lhs.dtype, rhs.dtype)
    kinds = [_kind(d) for d in (*operands, result)]
    if not kinds[0] == kinds[1] <= kinds[2]:
        invalid(
            instruction,
            f"element types {lhs.dtype}, {rhs.dtype} -> {result} are not of one kind "
            f"({', '.join(KINDS[:-1])} or {KINDS[-1]}), nor the result of a later one",
            label,
        )
    if kinds[1] < kinds[2] and result.bits < max(d.bits for d in operands):
        invalid(
            instruction,
            f"element types {lhs.dtype}, {rhs.dtype} -> {result}: a result of another kind "
            "must not be narrower than the operands",
            label,
        )
    return result


def must_convert(operand: DType, result: DType) -> bool:
    """Whether a contraction's operand is converted to the result's type before it is multiplied."""
    return _kind(operand) != _kind(result)


def wide_operands(instruction: HloInstruction, operands: list[Value]) -> list[np.ndarray]:
    """lhs and rhs in the type a contraction's sums are made in, converted as `must_convert`."""
    result = instruction.shape.dtype
    shapes = [o.shape for o in instruction.operands[:2]]
    arrays = [np.asarray(x) for x in operands[:2]]
    if must_convert(shapes[0].dtype, result):
        arrays = [store(convert_array(x, s.dtype, result), result) for x, s in zip(arrays, shapes)]
        return [widen(x, wide_type(result)) for x in arrays]
    wide = accumulation_wide_type(shapes, instruction.shape)
    return [widen(x, wide) for x in arrays]


def free_dims(rank: int, *taken: tuple[int, ...]) -> tuple[int, ...]:
    """Dimensions in none of the lists, ascending."""
    used = {d for dims in taken for d in dims}
    return tuple(d for d in range(rank) if d not in used)


DOT_PROTO = "dot_dimension_numbers."
DOT_DIMS = ("lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims")


def dot_attrs(proto: str) -> tuple[Attr, ...]:
    """The attributes DOT_DIMS, in the DotDimensionNumbers at `proto`."""
    return tuple(Attr(n, Dims(), (), proto + n.replace("_dims", "_dimensions")) for n in DOT_DIMS)


DotDims = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""(lhs batch, lhs contracting, rhs batch, rhs contracting) dimensions."""


def dot_dims(instruction: HloInstruction) -> DotDims:
    lb, lc, rb, rc = (tuple(attr(instruction, name)) for name in DOT_DIMS)
    return lb, lc, rb, rc


def infer_dot(instruction: HloInstruction) -> Shape:
    """The shape of the product of operands 0 and 1: batch dimensions, lhs's free ones, rhs's."""
    lhs, rhs = (o.shape for o in instruction.operands[:2])
    lb, lc, rb, rc = dot_dims(instruction)
    for name, dims, shape, labels in (
        ("lhs_batch_dims", lb, lhs, ("c5", "c3")),
        ("lhs_contracting_dims", lc, lhs, ("c6", "c3")),
        ("rhs_batch_dims", rb, rhs, ("c7", "c4")),
        ("rhs_contracting_dims", rc, rhs, ("c8", "c4")),
    ):
        range_label, unique_label = (f"dot_general_{label}" for label in labels)
        check_dims(instruction, name, dims, shape.rank, range_label, unique_label)
    for side, batch, contracting, label in (("lhs", lb, lc, "c3"), ("rhs", rb, rc, "c4")):
        if set(batch) & set(contracting):
            invalid(
                instruction,
                f"{side}_batch_dims={braces(batch)} and {side}_contracting_dims="
                f"{braces(contracting)} share a dimension",
                f"dot_general_{label}",
            )
    for name, left, right, count_label, size_label in (
        ("batch", lb, rb, "c1", "c9"),
        ("contracting", lc, rc, "c2", "c10"),
    ):
        given = f"lhs_{name}_dims={braces(left)}, rhs_{name}_dims={braces(right)}"
        if len(left) != len(right):
            invalid(instruction, f"{given} differ in number", f"dot_general_{count_label}")
        for x, y in zip(left, right):
            if lhs.dims[x] != rhs.dims[y]:
                invalid(
                    instruction,
                    f"{given}: dimension {x} of {text(lhs)} and dimension {y} of {text(rhs)} "
                    "differ in size",
                    f"dot_general_{size_label}",
                )
    dtype = check_contraction_types(instruction, lhs, rhs, "dot_general_c13")
    rows = lhs.keep(lb + free_dims(lhs.rank, lb, lc))
    columns = rhs.keep(free_dims(rhs.rank, rb, rc))
    flags = dynamic_flags(rows) + dynamic_flags(columns)
    return Shape(dtype, rows.dims + columns.dims, None, flags)


def dot_general(lhs: np.ndarray, rhs: np.ndarray, dims: DotDims) -> np.ndarray:
    """The product of arrays of a `wide_type`: [batch, m, k] x [batch, k, n]."""
    lb, lc, rb, rc = dims
    lf, rf = free_dims(lhs.ndim, lb, lc), free_dims(rhs.ndim, rb, rc)

    def sizes(x: np.ndarray, dims: tuple[int, ...]) -> list[int]:
        return [x.shape[d] for d in dims]

    batch, rows, columns = sizes(lhs, lb), sizes(lhs, lf), sizes(rhs, rf)
    product = matmul(
        lhs.transpose(lb + lf + lc).reshape(prod(batch), prod(rows), prod(sizes(lhs, lc))),
        rhs.transpose(rb + rc + rf).reshape(prod(batch), prod(sizes(rhs, rc)), prod(columns)),
    )
    return product.reshape(batch + rows + columns)


def _evaluate_dot(instruction: HloInstruction, operands: list[Value], context: Evaluator) -> Value:
    """Summed wide and rounded once."""
    lhs, rhs = wide_operands(instruction, operands)
    return narrow(dot_general(lhs, rhs, dot_dims(instruction)), instruction.shape.dtype)


def _dot_cost(instruction: HloInstruction) -> Cost:
    """2 flops for each product, complex ones too."""
    lhs = instruction.operands[0].shape
    contracted = prod(lhs.dims[d] for d in attr(instruction, "lhs_contracting_dims"))
    return Cost(flops=2.0 * instruction.shape.element_count * contracted)


def _dot_example(graph: ExampleGraph) -> HloInstruction:
    sizes = graph.rng.integers(1, 5, 5)
    roles = "b" * int(graph.rng.integers(0, 2)) + graph.pick(["", "m", "mo"])
    rhs_roles = roles[: roles.count("b")] + graph.pick(["", "n"])
    contracted = graph.pick(["k", "k", ""])
    size = dict(zip("bmokn", (int(s) for s in sizes)))
    left = "".join(graph.rng.permutation(list(roles + contracted)))
    right = "".join(graph.rng.permutation(list(rhs_roles + contracted)))
    dtype, result = graph.pick(
        [
            (F32, F32),
            (F32, F32),
            (F64, F64),
            (S32, S32),
            (BF16, F32),
            (S8, S32),
            (U8, U8),
            (C64, C64),
        ]
    )
    free = [r for r in left if r in "mo"] + [r for r in right if r == "n"]
    dims = [size[r] for r in ("b" if "b" in left else "")] + [size[r] for r in free]
    return graph.add(
        "dot",
        Shape(result, tuple(dims)),
        (
            graph.operand(dtype, tuple(size[r] for r in left)),
            graph.operand(dtype, tuple(size[r] for r in right)),
        ),
        lhs_batch_dims=tuple(left.index(r) for r in "b" if r in left),
        lhs_contracting_dims=tuple(left.index(r) for r in contracted),
        rhs_batch_dims=tuple(right.index(r) for r in "b" if r in right),
        rhs_contracting_dims=tuple(right.index(r) for r in contracted),
    )


register(
    OpDef(
        opcode="dot",
        operands=("lhs", "rhs"),
        attrs=(
            *dot_attrs(DOT_PROTO),
            PRECISION,
            ALGORITHM,
        ),
        infer=infer_dot,
        evaluate=_evaluate_dot,
        lower=Structure.CONTRACTION,
        cost=_dot_cost,
        example=_dot_example,
        spec="dot_general",
    )
)
