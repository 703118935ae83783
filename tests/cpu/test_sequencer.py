"""Where values live: in place, over dying operands, in loops, under aliasing."""

import numpy as np
import pytest

from haloc import interpreter, xla_client
from haloc.cpu.compiler import CpuOptions, compile_module
from haloc.formats.hlo_text import parse_module

CLIENT = xla_client.make_cpu_client()


def run(text, *arguments):
    executable = CLIENT.compile_and_load(text, executable_devices=CLIENT.local_devices())
    return [
        np.asarray(r) for r in executable.execute([CLIENT.buffer_from_pyval(a) for a in arguments])
    ]


def agrees(text, *arguments):
    wanted = interpreter.run(parse_module(text), list(arguments))
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    got = run(text, *arguments)
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted):
        np.testing.assert_array_equal(g, w)


X = np.arange(6, dtype=np.float32)


def test_a_chain_needs_little_arena():
    """Elementwise results go over dying operands, the last one to the result."""
    program = compile_module(
        parse_module("""
        HloModule m
        less {
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT l = pred[] compare(a, b), direction=LT
        }
        ENTRY e {
          x = f32[100000] parameter(0)
          a = f32[100000] sine(x)
          b = f32[100000] sort(a), dimensions={0}, to_apply=less
          ROOT c = f32[100000] negate(b)
        }""")
    )
    # One buffer for what lives between kernels, and the sort's scratch.
    assert program.arena_bytes < 6 * 400_000


@pytest.mark.parametrize(
    "root",
    [
        "(f32[6], f32[6]) tuple(x, y)",
        "(f32[6], f32[6]) tuple(y, x)",
        "(f32[6], f32[6]) tuple(x, x)",
        "(f32[6], f32[6]) tuple(s, s)",
    ],
)
def test_parameters_and_repeats_as_results(root):
    text = f"""
    HloModule m
    ENTRY e {{
      x = f32[6] parameter(0)
      y = f32[6] parameter(1)
      s = f32[6] add(x, y)
      ROOT t = {root}
    }}"""
    agrees(text, X, X[::-1].copy())


LOOP = """
HloModule m
body {{
  p = (s32[], f32[6], f32[6]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  a = f32[6] get-tuple-element(p), index=1
  b = f32[6] get-tuple-element(p), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  s = f32[6] add(a, b)
  d = f32[6] multiply(a, b)
  ROOT r = (s32[], f32[6], f32[6]) tuple(n, {results})
}}
condition {{
  p = (s32[], f32[6], f32[6]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant({trips})
  ROOT less = pred[] compare(i, n), direction=LT
}}
ENTRY e {{
  x = f32[6] parameter(0)
  y = f32[6] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[6], f32[6]) tuple(zero, {initial})
  w = (s32[], f32[6], f32[6]) while(t), condition=condition, body=body
  a = f32[6] get-tuple-element(w), index=1
  b = f32[6] get-tuple-element(w), index=2
  last = f32[6] subtract(a, x)
  ROOT r = (f32[6], f32[6], f32[6]) tuple(a, b, last)
}}
"""


@pytest.mark.parametrize(
    "results", ["a, b", "b, a", "s, a", "b, s", "s, d", "s, s", "a, s", "d, b"]
)
@pytest.mark.parametrize("initial", ["x, y", "x, x", "y, x"])
@pytest.mark.parametrize("trips", [0, 1, 4])
def test_loop_carried_values(results, initial, trips):
    text = LOOP.format(results=results, initial=initial, trips=trips)
    agrees(text, X, (X * 0.5 - 1).astype(np.float32))


def test_donated_arguments_that_change_places():
    text = """
    HloModule m, input_output_alias={ {0}: (1, {}, may-alias), {1}: (0, {}, may-alias) }
    ENTRY e {
      x = f32[6] parameter(0)
      y = f32[6] parameter(1)
      a = f32[6] add(x, x)
      ROOT t = (f32[6], f32[6]) tuple(a, y)
    }
    """
    got = run(text, X.copy(), (X + 100).copy())
    np.testing.assert_array_equal(got[0], X + X)
    np.testing.assert_array_equal(got[1], X + 100)


def test_results_are_the_same_without_passes_and_at_every_level():
    text = LOOP.format(results="s, d", initial="x, y", trips=3)
    y = (X * 0.5 - 1).astype(np.float32)
    wanted = run(text, X, y)
    for options in (CpuOptions(passes=False), CpuOptions(level=0), CpuOptions(level=3)):
        program = compile_module(parse_module(text), options)
        results = [np.empty(s.dims, s.dtype.numpy) for s in program.results]
        arena = np.empty(program.arena_bytes + 64, np.uint8)
        start = arena.ctypes.data + -arena.ctypes.data % 64
        program.run([X.ctypes.data, y.ctypes.data], [r.ctypes.data for r in results], start)
        for g, w in zip(results, wanted):
            np.testing.assert_array_equal(g, w)
