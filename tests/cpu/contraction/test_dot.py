"""dot kernels against NumPy in wider types, over dtypes, dimension orders, sizes and targets."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from haloc.codegen.target import Target, host_target
from haloc.cpu.contraction.dot import dot_kernel
from haloc.errors import UnimplementedError
from haloc.ir import dtype as dt
from haloc.ir.dtype import DType
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from tests.cpu.kernel_runner import run_kernel

FLOATS = [d for d in dt.ARRAY_DTYPES if d.is_float]
INTEGERS = [d for d in dt.ARRAY_DTYPES if d.is_integer]

TARGETS = {
    "host": host_target(),
    "avx2": replace(
        host_target(),
        features=frozenset(f for f in host_target().features if not f.startswith("avx512")),
        vector_bytes=32,
    ),
    "sse": replace(
        host_target(),
        features=frozenset({"sse", "sse2", "cx8", "fxsr", "mmx"}),
        cpu="x86-64",
        vector_bytes=16,
    ),
}


def dot_instruction(
    lhs: Shape, rhs: Shape, result: DType, batch=((), ()), contracting=None
) -> HloInstruction:
    """dot of two parameters; contracting defaults to a matrix product's dimensions."""
    contracting = contracting or ((lhs.rank - 1,), (0,))
    operands = [HloInstruction("parameter", s) for s in (lhs, rhs)]
    free = [
        [s.dims[d] for d in range(s.rank) if d not in (*b, *c)]
        for s, b, c in zip((lhs, rhs), batch, contracting, strict=True)
    ]
    dims = (*(lhs.dims[d] for d in batch[0]), *free[0], *free[1])
    names = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")
    attrs = dict(zip(names, (*batch, *contracting), strict=True))
    return HloInstruction("dot", Shape(result, dims), operands, attrs)


def reference(instruction: HloInstruction, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The dot by einsum in whatever type the arrays have."""
    a = instruction.attrs
    lhs_letters = [chr(97 + i) for i in range(lhs.ndim)]
    rhs_letters = [chr(65 + i) for i in range(rhs.ndim)]
    for kind in ("batch", "contracting"):
        for i, j in zip(a[f"lhs_{kind}_dims"], a[f"rhs_{kind}_dims"], strict=True):
            rhs_letters[j] = lhs_letters[i]
    batch = [lhs_letters[d] for d in a["lhs_batch_dims"]]
    contracted = [lhs_letters[d] for d in a["lhs_contracting_dims"]]
    free = [c for c in lhs_letters if c not in batch + contracted]
    free += [c for c in rhs_letters if c not in batch + contracted]
    spec = f"{''.join(lhs_letters)},{''.join(rhs_letters)}->{''.join(batch + free)}"
    return np.einsum(spec, lhs, rhs)


def random_array(rng: np.random.Generator, dtype: DType, dims: tuple[int, ...]) -> np.ndarray:
    if dtype.is_pred:
        return rng.random(dims) < 0.3
    if dtype.is_integer:
        raw = rng.integers(0, 256, (*dims, max(dtype.bits // 8, 1)), np.uint8)
        if dtype.bits < 8:
            low = -(1 << dtype.bits - 1) if dtype.is_signed else 0
            return (
                (raw[..., 0].astype(np.int64) % (1 << dtype.bits) + low)
                .astype(np.int8)
                .astype(dtype.numpy)
            )
        return raw.view(dtype.numpy).reshape(dims)
    if dtype.is_complex:
        parts = rng.standard_normal((2, *dims))
        return (parts[0] + 1j * parts[1]).astype(dtype.numpy)
    if dtype is dt.F8E8M0FNU:
        return np.exp2(rng.integers(-3, 4, dims)).astype(dtype.numpy)
    return rng.standard_normal(dims).astype(dtype.numpy)


def check(
    instruction: HloInstruction,
    lhs: np.ndarray,
    rhs: np.ndarray,
    target: Target | None = None,
    pieces: int = 1,
) -> None:
    kernel = dot_kernel(instruction, target or host_target())
    shape = instruction.shape
    (got,) = run_kernel(kernel, [lhs, rhs], [shape], target=target, pieces=pieces)
    assert_close(got, instruction, lhs, rhs, reference)


def assert_close(got, instruction, lhs, rhs, product) -> None:
    """Integers, pred and complex parts as exact or as close as sums in f32 or f64 can be."""
    dtype = instruction.shape.dtype
    if dtype.is_pred:
        want = product(instruction, lhs.astype(np.int64), rhs.astype(np.int64)) > 0
        np.testing.assert_array_equal(got, want)
    elif dtype.is_integer:
        exact = product(instruction, lhs.astype(np.int64), rhs.astype(np.int64))
        if dtype.bits < 8:
            raw = (exact & ((1 << dtype.bits) - 1)).astype(np.uint8)
            np.testing.assert_array_equal(got.view(np.uint8), raw)
        else:
            np.testing.assert_array_equal(got, exact.astype(dtype.numpy))
    else:
        wide = np.complex128 if dtype.is_complex else np.float64
        lhs, rhs = lhs.astype(wide), rhs.astype(wide)
        want = product(instruction, lhs, rhs)
        # n-term sums: |error| <= n eps sum |a||b|; then the result type's own rounding.
        scale = product(instruction, np.abs(lhs), np.abs(rhs)).real
        summed_in = np.float64 if dtype.real is dt.F64 else np.float32
        bound = (
            40 * np.finfo(summed_in).eps * scale
            + float(ml_dtypes.finfo(dtype.real.numpy).eps) * np.abs(want)
            + 1e-30
        )
        if dtype.real in FLOATS and dtype.byte_size == 1:
            bound = np.maximum(bound, float(ml_dtypes.finfo(dtype.numpy).smallest_subnormal))
            largest = float(ml_dtypes.finfo(dtype.numpy).max)
            inside = np.abs(want) < largest * 0.9
            got, want, bound = got[inside], want[inside], bound[inside]
        assert (np.abs(got.astype(wide) - want) <= bound).all(), np.abs(
            got.astype(wide) - want
        ).max()


SIZES = [
    (1, 1, 1), (3, 4, 5), (16, 16, 16), (17, 33, 31), (1, 50, 70), (70, 50, 1), (5, 1, 9),
    (37, 300, 10), (100, 70, 130), (40, 700, 97),
]  # fmt: skip


@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=str)
@pytest.mark.parametrize("m,k,n", [(3, 4, 5), (37, 45, 70)])
def test_every_dtype(dtype, m, k, n):
    rng = np.random.default_rng(1)
    lhs, rhs = random_array(rng, dtype, (m, k)), random_array(rng, dtype, (k, n))
    if (dtype.bits < 8 and dtype.is_float) or dtype is dt.F8E8M0FNU:
        result = dt.F32  # their own range is left at once
    else:
        result = dtype
    instruction = dot_instruction(Shape(dtype, (m, k)), Shape(dtype, (k, n)), result)
    check(instruction, lhs, rhs)


@pytest.mark.parametrize("m,k,n", SIZES)
@pytest.mark.parametrize("dtype", [dt.F32, dt.BF16, dt.S8, dt.C64], ids=str)
def test_sizes(dtype, m, k, n):
    rng = np.random.default_rng(m * 10000 + k * 100 + n)
    lhs, rhs = random_array(rng, dtype, (m, k)), random_array(rng, dtype, (k, n))
    check(dot_instruction(Shape(dtype, (m, k)), Shape(dtype, (k, n)), dtype), lhs, rhs)


MIXED = [
    (dt.BF16, dt.BF16, dt.F32), (dt.F16, dt.F16, dt.F32), (dt.S8, dt.S8, dt.S32),
    (dt.U8, dt.S8, dt.S32), (dt.S4, dt.S8, dt.S32), (dt.F8E4M3FN, dt.F8E5M2, dt.F32),
    (dt.F8E4M3FN, dt.F8E4M3FN, dt.BF16), (dt.F32, dt.F32, dt.F64), (dt.BF16, dt.F32, dt.F32),
    (dt.F64, dt.F64, dt.F32), (dt.F64, dt.F64, dt.BF16), (dt.S8, dt.S8, dt.F32),
    (dt.S32, dt.S32, dt.S64), (dt.S64, dt.S64, dt.S32), (dt.C64, dt.C64, dt.C128),
    (dt.F8E5M2, dt.BF16, dt.F16), (dt.PRED, dt.S32, dt.S32),
]  # fmt: skip


@pytest.mark.parametrize("types", MIXED, ids=str)
@pytest.mark.parametrize("m,k,n", [(2, 9, 40), (33, 40, 65)])
def test_mixed_dtypes(types, m, k, n):
    rng = np.random.default_rng(2)
    lhs, rhs = random_array(rng, types[0], (m, k)), random_array(rng, types[1], (k, n))
    check(dot_instruction(Shape(types[0], (m, k)), Shape(types[1], (k, n)), types[2]), lhs, rhs)


ORDERS = [  # lhs dims, rhs dims, batch, contracting
    ((20, 30), (40, 30), ((), ()), ((1,), (1,))),
    ((30, 20), (30, 40), ((), ()), ((0,), (0,))),
    ((30, 20), (40, 30), ((), ()), ((0,), (1,))),
    ((3, 20, 30), (3, 30, 40), ((0,), (0,)), ((2,), (1,))),
    ((20, 3, 30), (40, 30, 3), ((1,), (2,)), ((2,), (1,))),
    ((2, 5, 3, 7), (3, 7, 2, 6), ((0, 2), (2, 0)), ((3,), (1,))),
    ((2, 5, 3, 7), (7, 4, 5, 6), ((), ()), ((1, 3), (2, 0))),
    ((2, 5, 3, 7), (7, 4, 5, 6), ((), ()), ((3, 1), (0, 2))),
    ((6, 5), (7, 4), ((), ()), ((), ())),
    ((6,), (6,), ((), ()), ((0,), (0,))),
    ((6,), (6,), ((0,), (0,)), ((), ())),
    ((), (), ((), ()), ((), ())),
    ((1, 9, 1), (9, 1, 4), ((), ()), ((1,), (0,))),
    ((40, 1), (1, 50), ((), ()), ((1,), (0,))),
    ((4, 17, 90), (4, 33, 90), ((0,), (0,)), ((2,), (2,))),
    ((90, 100, 2), (2, 90, 70), ((2,), (0,)), ((0,), (1,))),
]


@pytest.mark.parametrize("lhs_dims,rhs_dims,batch,contracting", ORDERS)
@pytest.mark.parametrize("dtype", [dt.F32, dt.S16, dt.C128], ids=str)
def test_dimension_orders(dtype, lhs_dims, rhs_dims, batch, contracting):
    rng = np.random.default_rng(3)
    lhs, rhs = random_array(rng, dtype, lhs_dims), random_array(rng, dtype, rhs_dims)
    shapes = Shape(dtype, lhs_dims), Shape(dtype, rhs_dims)
    check(dot_instruction(*shapes, dtype, batch, contracting), lhs, rhs)


AMX_SIZES = [(40, 70, 50), (32, 32, 32), (33, 100, 65), (200, 1700, 90), (130, 513, 1100)]


@pytest.mark.parametrize("m,k,n", AMX_SIZES)
@pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)], ids=str)
def test_bf16_tiles(m, k, n, turned):
    """Sizes that go through AMX where the machine has it, through f32 panels elsewhere."""
    rng = np.random.default_rng(10)
    dims = ((k, m) if turned[0] else (m, k)), ((n, k) if turned[1] else (k, n))
    lhs, rhs = (random_array(rng, dt.BF16, d) for d in dims)
    contracting = ((0,) if turned[0] else (1,)), ((1,) if turned[1] else (0,))
    for result in (dt.F32, dt.BF16):
        shapes = [Shape(dt.BF16, d) for d in dims]
        check(dot_instruction(*shapes, result, contracting=contracting), lhs, rhs, pieces=3)


@pytest.mark.parametrize("m,k,n", AMX_SIZES)
@pytest.mark.parametrize(
    "types",
    [(dt.S8, dt.S8, dt.S32), (dt.U8, dt.S8, dt.S32), (dt.S8, dt.U8, dt.S8), (dt.U4, dt.U8, dt.U32)],
    ids=str,
)
def test_byte_tiles(m, k, n, types):
    rng = np.random.default_rng(11)
    lhs, rhs = random_array(rng, types[0], (m, k)), random_array(rng, types[1], (n, k))
    shapes = Shape(types[0], lhs.shape), Shape(types[1], rhs.shape)
    check(dot_instruction(*shapes, types[2], contracting=((1,), (1,))), lhs, rhs, pieces=3)


def test_highest_precision_keeps_subnormals():
    tiny = np.full((40, 40), 1e-39).astype(dt.BF16.numpy)
    instruction = dot_instruction(Shape(dt.BF16, (40, 40)), Shape(dt.BF16, (40, 40)), dt.F32)
    instruction.attrs["operand_precision"] = ("highest", "highest")
    ones = np.ones((40, 40), dt.BF16.numpy)
    (got,) = run_kernel(dot_kernel(instruction, host_target()), [tiny, ones], [instruction.shape])
    np.testing.assert_array_equal(got, np.float32(tiny[0, 0]) * 40)


INNER = [
    (1, 100, 1),
    (1, 64, 50),
    (50, 129, 1),
    (8, 77, 41),
    (41, 31, 3),
    (5, 300, 7),
    (300, 40, 2),
]


@pytest.mark.parametrize("m,k,n", INNER)
@pytest.mark.parametrize("dtype", [dt.F32, dt.F64, dt.BF16, dt.S8, dt.PRED], ids=str)
def test_sums_along_k(m, k, n, dtype):
    """Both operands contiguous in k, one of them small."""
    rng = np.random.default_rng(7)
    lhs, rhs = random_array(rng, dtype, (m, k)), random_array(rng, dtype, (n, k))
    shapes = Shape(dtype, (m, k)), Shape(dtype, (n, k))
    check(dot_instruction(*shapes, dtype, contracting=((1,), (1,))), lhs, rhs, pieces=2)


@pytest.mark.parametrize("dtype", [dt.F32, dt.C64, dt.BF16], ids=str)
def test_transposed_matrix_times_vector(dtype):
    rng = np.random.default_rng(8)
    lhs, rhs = random_array(rng, dtype, (70, 333)), random_array(rng, dtype, (70,))
    shapes = Shape(dtype, (70, 333)), Shape(dtype, (70,))
    check(dot_instruction(*shapes, dtype, contracting=((0,), (0,))), lhs, rhs, pieces=3)


LARGER = [  # lhs dims, rhs dims, contracting: packed by rows, by transposes, several blocks of k
    ((150, 800), (800, 530), ((1,), (0,))),
    ((800, 150), (530, 800), ((0,), (1,))),
    ((150, 800), (530, 800), ((1,), (1,))),
    ((600, 50), (600, 40), ((0,), (0,))),
]


@pytest.mark.parametrize("lhs_dims,rhs_dims,contracting", LARGER)
@pytest.mark.parametrize("dtype", [dt.F32, dt.BF16, dt.C64, dt.S32], ids=str)
def test_larger_sizes(lhs_dims, rhs_dims, contracting, dtype):
    rng = np.random.default_rng(9)
    lhs, rhs = random_array(rng, dtype, lhs_dims), random_array(rng, dtype, rhs_dims)
    shapes = Shape(dtype, lhs_dims), Shape(dtype, rhs_dims)
    check(dot_instruction(*shapes, dtype, contracting=contracting), lhs, rhs, pieces=3)


@pytest.mark.parametrize("m,k,n", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
@pytest.mark.parametrize("dtype", [dt.F32, dt.C64, dt.PRED, dt.F8E4M3FN], ids=str)
def test_zero_sizes(dtype, m, k, n):
    lhs, rhs = np.ones((m, k), dtype.numpy), np.ones((k, n), dtype.numpy)
    instruction = dot_instruction(Shape(dtype, (m, k)), Shape(dtype, (k, n)), dtype)
    (got,) = run_kernel(dot_kernel(instruction, host_target()), [lhs, rhs], [instruction.shape])
    np.testing.assert_array_equal(got, np.zeros((m, n), dtype.numpy))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", [dt.F32, dt.F64, dt.S32, dt.BF16, dt.PRED], ids=str)
def test_targets(name, dtype):
    rng = np.random.default_rng(4)
    for m, k, n in [(5, 6, 7), (61, 390, 83)]:
        lhs, rhs = random_array(rng, dtype, (m, k)), random_array(rng, dtype, (k, n))
        instruction = dot_instruction(Shape(dtype, (m, k)), Shape(dtype, (k, n)), dtype)
        check(instruction, lhs, rhs, TARGETS[name])


@pytest.mark.parametrize("dims", [(200, 300, 400), (300, 40, 900), (5, 500, 2000)])
def test_results_do_not_depend_on_how_units_are_dealt(dims):
    m, k, n = dims
    rng = np.random.default_rng(5)
    lhs, rhs = random_array(rng, dt.F32, (m, k)), random_array(rng, dt.F32, (k, n))
    instruction = dot_instruction(Shape(dt.F32, (m, k)), Shape(dt.F32, (k, n)), dt.F32)
    kernel = dot_kernel(instruction, host_target())
    results = [
        run_kernel(kernel, [lhs, rhs], [instruction.shape], pieces=p)[0].tobytes()
        for p in (1, 2, 7)
    ]
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("dtype", [dt.F32, dt.BF16, dt.F16], ids=str)
def test_nan_and_infinity_stay_where_they_belong(dtype):
    """Padding must not turn infinity into NaN, nor spread NaN to other rows and columns."""
    lhs, rhs = np.ones((20, 37), dtype.numpy), np.ones((37, 40), dtype.numpy)
    lhs[3, 5], lhs[7, 0], rhs[36, 11] = np.inf, np.nan, -np.inf
    instruction = dot_instruction(Shape(dtype, lhs.shape), Shape(dtype, rhs.shape), dtype)
    (got,) = run_kernel(dot_kernel(instruction, host_target()), [lhs, rhs], [instruction.shape])
    want = np.full((20, 40), 37.0)
    want[:, 11], want[3], want[7] = -np.inf, np.inf, np.nan
    want[3, 11] = np.nan
    np.testing.assert_array_equal(got.astype(np.float64), want)


@pytest.mark.parametrize("result", [dt.BF16, dt.F16, dt.F8E5M2], ids=str)
def test_results_are_rounded_once_to_nearest_even(result):
    """An outer product with 1 rounds each f32 as a conversion does, subnormals too."""
    rng = np.random.default_rng(6)
    values = rng.integers(0, 2**32, 3000, np.uint64).astype(np.uint32).view(np.float32)
    values = np.concatenate([values, np.float32([0.0, -0.0, 1e-40, -1e-40, np.inf, 65520.0])])
    values = values[~np.isnan(values)]
    shapes = Shape(dt.F32, (1, values.size)), Shape(dt.F32, (1,))
    instruction = dot_instruction(*shapes, result, contracting=((0,), (0,)))
    (got,) = run_kernel(
        dot_kernel(instruction, host_target()),
        [values[None], np.ones(1, np.float32)],
        [instruction.shape],
    )
    with np.errstate(over="ignore"):
        want = (values + np.float32(0)).astype(result.numpy)
    np.testing.assert_array_equal(
        got.view(f"u{result.byte_size}"), want.view(got.view(f"u{result.byte_size}").dtype)
    )


def test_f64_sums_round_to_bf16_once():
    """Rounding through f32 would meet a tie that the f64 value is not."""
    value = np.float64(1 + 2**-8 + 2**-40)
    instruction = dot_instruction(Shape(dt.F64, (1,)), Shape(dt.F64, (1,)), dt.BF16)
    (got,) = run_kernel(
        dot_kernel(instruction, host_target()), [np.array([value]), np.ones(1)], [instruction.shape]
    )
    assert float(got) == 1 + 2**-7


def test_unsupported_types_are_named():
    instruction = dot_instruction(Shape(dt.F32, (2, 2)), Shape(dt.F32, (2, 2)), dt.S32)
    with pytest.raises(UnimplementedError, match="dot: no s32 result from f32 and f32 operands"):
        dot_kernel(instruction, host_target())
