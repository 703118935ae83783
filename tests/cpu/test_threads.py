"""Results are bitwise equal for any number of threads."""

import numpy as np
import pytest

from haloc.cpu import pool
from haloc.cpu.compiler import compile_module
from haloc.formats.hlo_text import parse_module

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }"
LESS = """less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = pred[] compare(a, b), direction=LT
}"""

PROGRAMS = {
    "elementwise, with a tail": (
        "x = f32[1000003] parameter(0) ROOT r = f32[1000003] tanh(x)",
        (1000003,),
    ),
    "full sum": (
        "x = f32[1000,1000] parameter(0) z = f32[] constant(0) "
        "ROOT r = f32[] reduce(x, z), dimensions={0,1}, to_apply=add",
        (1000, 1000),
    ),
    "column sums": (
        "x = f32[1000,1000] parameter(0) z = f32[] constant(0) "
        "ROOT r = f32[1000] reduce(x, z), dimensions={0}, to_apply=add",
        (1000, 1000),
    ),
    "transpose": (
        "x = f32[700,900] parameter(0) ROOT r = f32[900,700] transpose(x), dimensions={1,0}",
        (700, 900),
    ),
    "product": (
        "x = f32[300,300] parameter(0) "
        "ROOT r = f32[300,300] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        (300, 300),
    ),
    "convolution": (
        "x = f32[8,30,30,16] parameter(0) "
        "w = f32[1,12,12,16] slice(x), slice={[0:1], [0:12], [0:12], [0:16]} "
        "k = f32[3,3,16,16] reshape(w) "
        "ROOT r = f32[8,28,28,16] convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->b01f",
        (8, 30, 30, 16),
    ),
    "sort": (
        "x = f32[200000] parameter(0) ROOT r = f32[200000] sort(x), dimensions={0}, to_apply=less",
        (200000,),
    ),
    "fft": (
        "x = f32[64,4096] parameter(0) f = c64[64,2049] fft(x), fft_type=RFFT, fft_length={4096} "
        "ROOT r = f32[64,2049] real(f)",
        (64, 4096),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_any_number_of_threads(name):
    body, dims = PROGRAMS[name]
    program = compile_module(parse_module(f"HloModule m\n{ADD}\n{LESS}\nENTRY e {{ {body} }}"))
    x = np.random.default_rng(0).normal(size=dims).astype(np.float32)
    (shape,) = program.results
    arena = np.empty(program.arena_bytes + 64, np.uint8)
    start = arena.ctypes.data + -arena.ctypes.data % 64
    seen = set()
    for count in (1, 2, 3, 8):
        with pool.limit_threads(count):
            result = np.full(shape.dims, np.nan, shape.dtype.numpy)
            program.run([x.ctypes.data], [result.ctypes.data], start)
            assert not np.isnan(result).any()
            seen.add(result.tobytes())
    assert len(seen) == 1
