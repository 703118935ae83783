"""Loads, stores, gathers and lane moves of every element type."""

import numpy as np
import pytest

from haloc.codegen.builder import Reg, const
from haloc.codegen.scalar import LlvmValue
from haloc.ir.dtype import ARRAY_DTYPES, C64, F32, F64, PRED, S4, S64, U4
from tests.codegen.scalar.elements import apply, apply_both, assert_same


def numbers(dtype, count=64):
    """Bit patterns of the type, none of them NaN with a payload to lose."""
    rng = np.random.default_rng(1)
    if dtype.is_pred:
        return rng.integers(0, 2, count).astype(bool)
    if dtype.is_complex:
        return (rng.standard_normal(count) + 1j * rng.standard_normal(count)).astype(dtype.numpy)
    if dtype.is_float:
        return rng.standard_normal(count).astype(np.float32).astype(dtype.numpy)
    low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    return rng.integers(low, low + (1 << min(dtype.bits, 62)), count).astype(dtype.numpy)


def address(array):
    """A pointer as a constant of the code: the harness itself passes elements only."""
    return const("ptr", f"inttoptr (i64 {array.ctypes.data} to ptr)")


@pytest.mark.parametrize("dtype", ARRAY_DTYPES, ids=str)
def test_what_is_loaded_is_stored(dtype):
    x = numbers(dtype)
    assert_same(apply_both(lambda s, v: v, [x]), x)


@pytest.mark.parametrize("dtype", [S4, U4])
def test_upper_bits_of_a_sub_byte_element_are_ignored_and_written_as_zero(dtype):
    raw = np.arange(256, dtype=np.uint8)
    got = apply_both(lambda s, v: v, [raw.view(dtype.numpy)])
    np.testing.assert_array_equal(got.view(np.uint8), raw & 15)


@pytest.mark.parametrize("dtype", ARRAY_DTYPES, ids=str)
@pytest.mark.parametrize("width", [1, 8])
def test_gather(dtype, width):
    x = numbers(dtype)
    order = np.random.default_rng(2).permutation(64)

    def emit(s, offsets):
        return s.gather(address(x), offsets.reg, dtype, offsets.width)

    assert_same(apply(emit, [order], width), x[order])


@pytest.mark.parametrize("dtype", ARRAY_DTYPES, ids=str)
@pytest.mark.parametrize("width", [1, 8])
def test_a_masked_load_reads_where_the_mask_holds(dtype, width):
    x = numbers(dtype)
    keep = np.arange(64) % 3 != 0

    def emit(s, keep):
        got = s.load(address(x), dtype, keep.width, mask=keep)
        return s.select(keep, got, s.constant(dtype, 1))

    got = apply(emit, [keep], width)
    first = np.resize(x[:width], 64)
    assert_same(got, np.where(keep, first, np.ones(64).astype(dtype.numpy)).astype(dtype.numpy))


@pytest.mark.parametrize("dtype", [F32, C64, PRED, S64], ids=str)
def test_split_extract_and_splat(dtype):
    x = numbers(dtype)

    def swapped_halves(s, v):
        low, high = s.split(v)
        assert low.width == high.width == 4
        pairs = [s.extract(half, lane) for half in (high, low) for lane in range(4)]
        result = s.splat(pairs[0], 8)
        for lane in range(1, 8):
            bits = ", ".join(f"i1 {'true' if i == lane else 'false'}" for i in range(8))
            mask = LlvmValue(PRED, 8, Reg(f"<{bits}>", "<8 x i1>"))
            result = s.select(mask, pairs[lane], result)
        return result

    got = apply(swapped_halves, [x], 8)
    want = x.reshape(-1, 2, 4)[:, ::-1].reshape(-1)
    assert_same(got, want)


def test_a_number_and_a_vector_meet():
    x = np.arange(8, dtype=np.float64)
    assert_same(apply(lambda s, v: s.add(v, s.constant(F64, 2)), [x], 8), x + 2)
    assert_same(apply(lambda s, v: s.subtract(s.constant(F64, 2), v), [x], 8), 2 - x)


@pytest.mark.parametrize("width", [1, 8])
def test_a_masked_store_leaves_the_rest_alone(width):
    for dtype in (F32, C64, PRED, S4):
        x, target = numbers(dtype), numbers(dtype)[::-1].copy()
        kept = target.copy()

        def emit(s, v, keep, target=target):
            s.store(v, address(target), mask=keep)
            return v

        keep = np.arange(64) % 3 == 0
        apply(emit, [x, keep], width)
        if width == 8:  # every block of eight went to the same place, the last one last
            for block, mask in zip(x.reshape(-1, 8), keep.reshape(-1, 8), strict=True):
                kept[:8][mask] = block[mask]
        else:
            kept[0] = x[keep][-1]
        assert_same(target, kept)
