"""Sorts of which only the first elements are read."""

from __future__ import annotations

import numpy as np
import pytest

from haloc import xla_client
from haloc.cpu.sort.first import count_read
from haloc.formats.hlo_text import parse_module

PROGRAM = """HloModule m
gt (a: f32[], b: f32[], i: s32[], j: s32[]) -> pred[] {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT c = pred[] compare(a, b), direction=GT, type=TOTALORDER
}}
ENTRY e (x: f32[{dims}]) -> {result} {{
  x = f32[{dims}] parameter(0)
  i = s32[{dims}] iota(), iota_dimension={dimension}
  s = (f32[{dims}], s32[{dims}]) sort(x, i), dimensions={{{dimension}}}, is_stable=true,to_apply=gt
  v = f32[{dims}] get-tuple-element(s), index=0
  p = s32[{dims}] get-tuple-element(s), index=1
  w = f32[{first}] slice(v), slice={{{ranges}}}
  q = s32[{first}] slice(p), slice={{{ranges}}}
  ROOT t = {result} tuple(w, q{more})
}}
"""


def program(rows: int, columns: int, dimension: int, count: int, more: str = "") -> str:
    dims, first = [rows, columns], [rows, columns]
    first[dimension] = count
    text = ",".join(map(str, dims))
    small = ",".join(map(str, first))
    return PROGRAM.format(
        dims=text,
        first=small,
        dimension=dimension,
        ranges=", ".join(f"[0:{n}]" for n in first),
        result=f"(f32[{small}], s32[{small}]{f', f32[{text}]' if more else ''})",
        more=more,
    )


def sort_of(text: str):
    return next(i for i in parse_module(text).entry.instructions if i.opcode == "sort")


@pytest.mark.parametrize(
    ("dimension", "count", "more", "wanted"),
    [
        (1, 7, "", 7),
        (0, 2, "", 2),
        (1, 26, "", None),  # more than an eighth of 200
        (1, 7, ", v", None),  # all of it is a result
    ],
)
def test_how_many_are_read(dimension, count, more, wanted):
    assert count_read(sort_of(program(20, 200, dimension, count, more)), dimension) == wanted


@pytest.mark.parametrize(
    ("rows", "columns", "dimension", "count"),
    [(3, 200, 1, 7), (200, 37, 0, 5), (64, 512, 1, 64), (1, 8, 1, 1), (5, 4096, 1, 16)],
)
def test_the_first_are_those_of_the_whole_sort(rows, columns, dimension, count):
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=(rows, columns)) * 20).astype(np.float32)  # many ties
    x.flat[::19] = np.nan
    x.flat[::23] = -np.inf
    x.flat[::29] = -0.0
    client = xla_client.make_cpu_client()
    text = program(rows, columns, dimension, count)
    assert count_read(sort_of(text), dimension) == count
    executable = client.compile_and_load(text, client.devices()[:1])
    values, places = map(np.asarray, executable.execute([client.buffer_from_pyval(x)]))
    bits = x.view(np.int32).astype(np.int64)
    order = np.argsort(-np.where(bits < 0, bits ^ 0x7FFFFFFF, bits), dimension, kind="stable")
    order = np.take(order, range(count), dimension)
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(
        values.view(np.int32), np.take_along_axis(x, order, dimension).view(np.int32)
    )
