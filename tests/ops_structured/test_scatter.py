"""scatter against jaxlib, and the order in which equal targets are updated."""

import numpy as np
import pytest

from haloc import interpreter
from haloc.formats.hlo_text import parse_module
from haloc.ops.scatter import rounds
from tests.ops_structured.against_jaxlib import check, module, region


def scatter(
    shapes: tuple[str, str, str], attrs: str, opcode: str = "add", dtype: str = "f32"
) -> str:
    operand, indices, updates = shapes
    return module(
        f"""  o = {dtype}[{operand}] parameter(0)
  i = {indices} parameter(1)
  u = {dtype}[{updates}] parameter(2)
  ROOT s = {dtype}[{operand}] scatter(o, i, u), {attrs}, to_apply=combine""",
        region(opcode, dtype),
    )


ELEMENTS = (
    "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1"
)
ROWS = (
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1"
)


@pytest.mark.parametrize("opcode", ["add", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("dtype", ["f32", "s32", "bf16"])
def test_repeated_and_out_of_range_indices(opcode, dtype):
    text = scatter(("6", "s32[8,1]", "8"), ELEMENTS, opcode, dtype)
    rng = np.random.default_rng(0)
    operand, updates = (
        rng.integers(-3, 4, n).astype(np.int32 if dtype == "s32" else np.float32) for n in (6, 8)
    )
    arrays = [a.astype(parse_module(text).entry.root.shape.dtype.numpy) for a in (operand, updates)]
    indices = np.array([0, 5, 5, 6, -1, 2, 2, 2], np.int32).reshape(8, 1)
    check(text, [arrays[0], indices, arrays[1]])


@pytest.mark.parametrize("index_type", ["s8", "u8", "s64", "u32", "u64"])
def test_index_types(index_type):
    dtype = {"s": np.int64, "u": np.uint64}[index_type[0]]
    text = scatter(("6,3", f"{index_type}[3,1]", "3,3"), ROWS)
    parsed = parse_module(text)
    top = np.iinfo(parsed.entry.parameters[1].shape.dtype.numpy).max
    indices = np.array([[1], [5], [top]], dtype).astype(
        parsed.entry.parameters[1].shape.dtype.numpy
    )
    rng = np.random.default_rng(0)
    operand, updates = (rng.standard_normal(d).astype(np.float32) for d in ((6, 3), (3, 3)))
    check(text, [operand, indices, updates], rtol=1e-6)


def test_windows_partly_out_of_bounds_are_skipped():
    attrs = (
        "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, "
        "index_vector_dim=1"
    )
    rng = np.random.default_rng(0)
    operand, updates = (rng.standard_normal(d).astype(np.float32) for d in ((5, 4), (4, 2, 4)))
    indices = np.array([[0], [4], [-1], [3]], np.int32)
    check(scatter(("5,4", "s32[4,1]", "4,2,4"), attrs), [operand, indices, updates], rtol=1e-6)


def test_batching_dimensions():
    attrs = (
        "update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, "
        "input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=2"
    )
    rng = np.random.default_rng(0)
    operand, updates = (rng.standard_normal(d).astype(np.float32) for d in ((3, 5), (3, 2)))
    indices = np.array([0, 9, 3, 3, 4, 1], np.int32).reshape(3, 2, 1)
    check(scatter(("3,5", "s32[3,2,1]", "3,2"), attrs), [operand, indices, updates], rtol=1e-6)


def test_transposed_dimensions_and_implicit_index_vector():
    attrs = (
        "update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, "
        "index_vector_dim=1, unique_indices=true"
    )
    rng = np.random.default_rng(0)
    operand, updates = (rng.standard_normal(d).astype(np.float32) for d in ((4, 6), (4, 3)))
    check(
        scatter(("4,6", "s32[3]", "4,3"), attrs),
        [operand, np.array([5, 0, 2], np.int32), updates],
        rtol=1e-6,
    )


def test_the_last_update_wins_when_the_region_returns_it():
    text = scatter(("4", "s32[5,1]", "5"), ELEMENTS, dtype="s32").replace(
        "ROOT r = s32[] add(x, y)", "ROOT r = s32[] copy(y)"
    )
    indices = np.array([[1], [1], [3], [1], [3]], np.int32)
    arguments = [np.zeros(4, np.int32), indices, np.arange(1, 6, dtype=np.int32)]
    given = interpreter.run(parse_module(text), arguments)
    assert given.tolist() == [0, 4, 0, 5]


def test_variadic():
    both = """
both {
  a = f32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = s32[] parameter(3)
  s = f32[] add(a, c)
  m = s32[] maximum(b, d)
  ROOT t = (f32[], s32[]) tuple(s, m)
}"""
    text = module(
        f"""  o = f32[4] parameter(0)
  n = s32[4] parameter(1)
  i = s32[5,1] parameter(2)
  u = f32[5] parameter(3)
  v = s32[5] parameter(4)
  ROOT r = (f32[4], s32[4]) scatter(o, n, i, u, v), {ELEMENTS}, to_apply=both""",
        both,
    )
    rng = np.random.default_rng(0)
    floats, integers = rng.standard_normal(9).astype(np.float32), rng.integers(0, 9, 9)
    integers = integers.astype(np.int32)
    indices = np.array([[1], [1], [3], [0], [3]], np.int32)
    check(text, [floats[:4], integers[:4], indices, floats[4:], integers[4:]], rtol=1e-6)


def test_rounds_keep_the_order_of_equal_targets():
    groups = [g.tolist() for g in rounds(np.array([7, 3, 7, 7, 3, 1]))]
    assert [sorted(g) for g in groups] == [[0, 1, 5], [2, 4], [3]]
    assert list(rounds(np.array([], np.int64))) == []
