"""sort against NumPy: every type, several keys, any dimension, stability, any comparator."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import haloc.ops  # noqa: F401  (fills the table)
from haloc.codegen.target import host_target
from haloc.cpu.sort.comparator import keys_of
from haloc.cpu.sort.kernel import PARALLEL_LENGTH, emit_sort
from haloc.cpu.sort.region import region_less
from haloc.ir.dtype import dtype_from_numpy
from haloc.ir.literal import Literal
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape, scalar_shape, tuple_shape
from tests.cpu.kernel_runner import run_kernel

PRED = scalar_shape(dtype_from_numpy(np.bool_))


class Region:
    """Builds a comparator with parameters of the operands' types, in pairs."""

    def __init__(self, dtypes):
        self.computation = HloModule("m").add_computation("comparator")
        self.pairs = []
        for i, dtype in enumerate(dtypes):
            shape = scalar_shape(dtype_from_numpy(dtype))
            self.pairs.append(
                [
                    self.add("parameter", shape, attrs={"parameter_number": 2 * i + j})
                    for j in (0, 1)
                ]
            )

    def add(self, opcode, shape, *operands, attrs=None):
        return self.computation.add(HloInstruction(opcode, shape, operands, attrs))

    def compare(self, x, y, direction, **kind):
        return self.add("compare", PRED, x, y, attrs={"direction": direction, **kind})

    def canonical(self, x):
        """JAX's: all NaNs equal, all zeros equal."""
        zero = self.add("constant", x.shape, attrs={"literal": _literal(x, 0)})
        nan = self.add("constant", x.shape, attrs={"literal": _literal(x, np.nan)})
        x1 = self.add("select", x.shape, self.compare(x, zero, "EQ"), zero, x)
        return self.add("select", x.shape, self.compare(x, x, "NE"), nan, x1)

    def finish(self, root) -> HloComputation:
        self.computation.root = root
        return self.computation


def _literal(x, value):
    return Literal.of(np.array(value, x.shape.dtype.numpy))


def sort(arrays, dimension, comparator, pieces=3):
    """Run the sort kernel."""
    shapes = [Shape(dtype_from_numpy(a.dtype), a.shape) for a in arrays]
    operands = [HloInstruction("parameter", s) for s in shapes]
    shape = shapes[0] if len(shapes) == 1 else tuple_shape(*shapes)
    attrs = {"dimensions": dimension, "to_apply": comparator, "is_stable": True}
    instruction = HloInstruction("sort", shape, operands, attrs)
    kernel = emit_sort(instruction, host_target(), region_less)
    return run_kernel(kernel, arrays, shapes, pieces=pieces)


def simple(dtypes, direction="LT", **kind):
    """Compare operand 0's elements."""
    region = Region(dtypes)
    return region.finish(region.compare(*region.pairs[0], direction, **kind))


def jax_like(dtypes, num_keys):
    """lt(k0) or (eq(k0) and (lt(k1) or ...)), floats canonical and in total order."""
    region = Region(dtypes)
    less = None
    for pair in reversed(region.pairs[:num_keys]):
        kind = {}
        if pair[0].shape.dtype.is_float:
            pair, kind = [region.canonical(x) for x in pair], {"type": "TOTALORDER"}
        tail, less = less, region.compare(*pair, "LT", **kind)
        if tail is not None:
            equal = region.compare(*pair, "EQ", **kind)
            less = region.add("or", PRED, less, region.add("and", PRED, equal, tail))
    return region.finish(less)


def values(rng, dtype, shape):
    """Random elements with many ties, and every special value."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.name in ("int4", "uint4", "int2", "uint2"):
        low, high = (-2, 2) if dtype.name == "int2" else (0, 4)
        return rng.integers(low, high, shape).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        wide = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        return np.where(rng.random(shape) < 0.3, wide % dtype.type(5), wide).astype(dtype)
    if dtype.kind == "c":
        x = np.empty(shape, dtype)
        x.real, x.imag = (values(rng, x.real.dtype, shape) for _ in range(2))
        return x
    x = rng.standard_normal(shape).astype(dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-40, 1.0], dtype)
    return np.where(rng.random(shape) < 0.4, rng.choice(special, shape), x).astype(dtype)


def assert_same_bits(actual, expected):
    assert actual.dtype == expected.dtype
    assert actual.tobytes() == np.ascontiguousarray(expected).tobytes()


ALL = [
    *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(np.float16, ml_dtypes.bfloat16, np.float32, np.float64),
]


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("length", [1, 2, 31, 200])
def test_one_operand_as_jax_sorts_it(dtype, length):
    x = values(np.random.default_rng(length), dtype, (3, length))
    (result,) = sort([x], 1, jax_like([dtype], 1))
    # NumPy's stable sort also counts zeros as equal and NaNs last, keeping their order.
    order = np.argsort(x.astype(np.float64) if x.dtype.kind == "V" else x, axis=1, kind="stable")
    assert_same_bits(result, np.take_along_axis(x, order, 1))


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: np.dtype(d).name)
def test_descending_with_payload(dtype):
    rng = np.random.default_rng(1)
    x = values(rng, dtype, (500,))
    x = np.where(x == x, x, np.ones_like(x))  # noqa: PLR0124
    y = np.arange(500, dtype=np.int32)
    sorted_x, order = sort([x, y], 0, simple([dtype, np.int32], "GT"))
    wide = x.astype(np.float64) if x.dtype.kind in "fV" else x.astype(object)
    expected = np.array(sorted(range(500), key=lambda i: wide[i], reverse=True), np.int32)
    # `sorted` with reverse keeps equal elements in order.
    np.testing.assert_array_equal(order, expected)
    assert_same_bits(sorted_x, x[expected])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=lambda d: d.__name__)
def test_total_order_tells_zeros_and_nans_apart(dtype):
    bits = np.uint32 if dtype == np.float32 else np.uint64 if dtype == np.float64 else np.uint16
    x = values(np.random.default_rng(2), dtype, (300,))
    signed = x.view(bits).astype(object)
    top = 1 << (8 * x.itemsize - 1)
    keys = [int(b) ^ (2 * top - 1) if b & top else int(b) ^ top for b in signed]
    (result,) = sort([x], 0, simple([dtype], type="TOTALORDER"))
    assert_same_bits(result, x[sorted(range(300), key=keys.__getitem__)])


@pytest.mark.parametrize("dimension", [0, 1, 2])
def test_every_dimension(dimension):
    x = values(np.random.default_rng(3), np.float32, (7, 40, 5))
    y = np.arange(x.size, dtype=np.float64).reshape(x.shape)
    results = sort([x, y], dimension, jax_like([np.float32, np.float64], 1), pieces=5)
    order = np.argsort(x, axis=dimension, kind="stable")
    for operand, result in zip([x, y], results, strict=True):
        assert_same_bits(result, np.take_along_axis(operand, order, dimension))


def test_several_keys_in_one_word_and_in_many():
    rng = np.random.default_rng(4)
    a = rng.integers(0, 3, 400).astype(np.int8)
    b = rng.choice(np.array([0.0, -0.0, np.nan, 2.0], np.float32), 400)
    c = rng.integers(0, 3, 400).astype(np.int64)
    d = rng.integers(0, 4, 400).astype(np.uint64)
    e = np.arange(400, dtype=np.int16)
    arrays = [a, b, c, d, e]
    for num_keys in (1, 2, 3, 4):
        results = sort(arrays, 0, jax_like([x.dtype for x in arrays], num_keys))
        order = np.lexsort(arrays[:num_keys][::-1])
        for operand, result in zip(arrays, results, strict=True):
            assert_same_bits(result, operand[order])


def test_complex_by_parts():
    x = values(np.random.default_rng(5), np.complex64, (100,))
    region = Region([np.complex64])
    f32 = scalar_shape(dtype_from_numpy(np.float32))
    order = {"type": "TOTALORDER"}
    reals = [region.canonical(region.add("real", f32, p)) for p in region.pairs[0]]
    imags = [region.canonical(region.add("imag", f32, p)) for p in region.pairs[0]]
    tail = region.compare(*imags, "LT", **order)
    equal = region.add("and", PRED, region.compare(*reals, "EQ", **order), tail)
    root = region.add("or", PRED, region.compare(*reals, "LT", **order), equal)
    (result,) = sort([x], 0, region.finish(root))
    assert_same_bits(result, x[np.lexsort([x.imag, x.real])])


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2]
)
def test_types_below_a_byte(dtype):
    x = values(np.random.default_rng(6), dtype, (90,))
    (result,) = sort([x], 0, simple([dtype]))
    np.testing.assert_array_equal(result.astype(int), np.sort(x.astype(int)))


@pytest.mark.parametrize("pieces", [1, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8], ids=lambda d: d.__name__)
def test_one_long_line_in_parts(dtype, pieces):
    length = PARALLEL_LENGTH + 77
    rng = np.random.default_rng(7)
    x = values(rng, dtype, (length,))
    y = rng.integers(0, 100, length).astype(np.int16)
    (alone,) = sort([x], 0, jax_like([dtype], 1), pieces=pieces)
    assert_same_bits(alone, x[np.argsort(x, kind="stable")])
    results = sort([x, y], 0, jax_like([dtype, np.int16], 2), pieces=pieces)
    order = np.lexsort([y, x])
    assert_same_bits(results[0], x[order])
    assert_same_bits(results[1], y[order])


@pytest.mark.parametrize("shape,dimension", [((0,), 0), ((3, 0), 1), ((0, 3), 1), ((1,), 0)])
def test_empty_and_single(shape, dimension):
    x = np.ones(shape, np.float32)
    (result,) = sort([x], dimension, simple([np.float32]))
    assert_same_bits(result, x)


@pytest.mark.parametrize("length", [1, 2, 3, 64, 1000])
def test_any_comparator_sorts_stably(length):
    region = Region([np.int32, np.int32])
    s32 = region.pairs[0][0].shape
    ten = region.add("constant", s32, attrs={"literal": Literal.of(np.int32(10))})
    digits = [region.add("remainder", s32, p, ten) for p in region.pairs[0]]
    comparator = region.finish(region.compare(*digits, "LT"))
    assert keys_of(comparator) is None
    x = np.random.default_rng(8).integers(0, 1000, (length, 3)).astype(np.int32)
    y = np.arange(x.size, dtype=np.int32).reshape(x.shape)
    results = sort([x, y], 0, comparator)
    order = np.argsort(x % 10, axis=0, kind="stable")
    assert_same_bits(results[0], np.take_along_axis(x, order, 0))
    assert_same_bits(results[1], np.take_along_axis(y, order, 0))


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e8m0fnu]
)
def test_floats_of_other_layouts_go_by_the_comparator(dtype):
    x = np.random.default_rng(9).integers(1, 100, (50,)).astype(np.float32).astype(dtype)
    (result,) = sort([x], 0, simple([dtype], "GT"))
    np.testing.assert_array_equal(result.astype(float), np.sort(x.astype(float))[::-1])


def test_complex_operands_reach_the_comparator():
    x = values(np.random.default_rng(10), np.complex128, (40,))
    x = np.where(np.isfinite(x), x, 0)
    region = Region([np.complex128])
    f64 = scalar_shape(dtype_from_numpy(np.float64))
    sizes = [region.add("abs", f64, p) for p in region.pairs[0]]
    (result,) = sort([x], 0, region.finish(region.compare(*sizes, "LT")))
    assert_same_bits(result, x[np.argsort(np.abs(x), kind="stable")])


@pytest.mark.parametrize("direction,is_known", [("LE", True), ("GE", True), ("LE", False)])
def test_ties_by_le_and_ge_keep_their_order(direction, is_known):
    region = Region([np.int32, np.int32])
    s32 = region.pairs[0][0].shape
    keys = region.pairs[0]
    if not is_known:
        keys = [region.add("negate", s32, region.add("negate", s32, p)) for p in keys]
    comparator = region.finish(region.compare(*keys, direction))
    assert (keys_of(comparator) is not None) == is_known
    x = np.random.default_rng(12).integers(0, 5, 80).astype(np.int32)
    _, order = sort([x, np.arange(80, dtype=np.int32)], 0, comparator)
    np.testing.assert_array_equal(order, np.argsort(x if direction == "LE" else -x, kind="stable"))


def test_a_comparator_that_is_no_order_is_safe():
    region = Region([np.int32])
    always = region.add("constant", PRED, attrs={"literal": Literal.of(np.bool_(True))})
    x = np.arange(100, dtype=np.int32)
    (result,) = sort([x], 0, region.finish(always))
    np.testing.assert_array_equal(np.sort(result), x)


def test_comparators_may_call_library_functions():
    x = np.random.default_rng(11).standard_normal(60).astype(np.float32)
    region = Region([np.float32])
    f32 = region.pairs[0][0].shape
    sines = [region.add("sine", f32, p) for p in region.pairs[0]]
    (result,) = sort([x], 0, region.finish(region.compare(*sines, "LT")))
    np.testing.assert_array_equal(result, x[np.argsort(np.sin(x.astype(np.float64)))])
