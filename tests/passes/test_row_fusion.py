"""row-fusion: normalisations become one kernel; what does not fit stays; values stay."""

import numpy as np
import pytest

from haloc import interpreter
from haloc.cpu.compiler import CpuOptions, compile_module
from haloc.formats.hlo_text import parse_module
from haloc.passes.driver import PassOptions
from haloc.passes.pipelines import run_pipeline
from haloc.verifier import verify

REGIONS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }
"""

SOFTMAX = """
  x = f32[{dims}] parameter(0)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[{rows}] reduce(x, low), dimensions={{{reduced}}}, to_apply=max
  mb = f32[{dims}] broadcast(m), dimensions={{{kept}}}
  d = f32[{dims}] subtract(x, mb)
  e = f32[{dims}] exponential(d)
  s = f32[{rows}] reduce(e, zero), dimensions={{{reduced}}}, to_apply=add
  sb = f32[{dims}] broadcast(s), dimensions={{{kept}}}
"""


def module(lines, dims, reduced):
    rows = [n for d, n in enumerate(dims) if d not in reduced]
    kept = [d for d in range(len(dims)) if d not in reduced]
    text = lambda numbers: ",".join(map(str, numbers))  # noqa: E731
    body = lines.format(dims=text(dims), rows=text(rows), reduced=text(reduced), kept=text(kept))
    return parse_module(f"HloModule m\n{REGIONS}\nENTRY e {{{body}}}")


def kernels(m, **options):
    return compile_module(m, CpuOptions(pass_options=PassOptions(**options))).kernel_count


def run(program, *arguments):
    results = [np.empty(s.dims, s.dtype.numpy) for s in program.results]
    arena = np.empty(program.arena_bytes + 64, np.uint8)
    start = arena.ctypes.data + -arena.ctypes.data % 64
    program.run([a.ctypes.data for a in arguments], [r.ctypes.data for r in results], start)
    return results


@pytest.mark.parametrize(
    ("dims", "reduced", "count"),
    [
        ((40, 37), [1], 2),  # in cache: the exponentials are kept
        ((40, 64), [1], 2),
        ((5, 8, 33), [2], 2),
        ((20, 3, 7), [1, 2], 2),
        ((9000, 1000), [1], 1),  # beyond any cache: they are computed twice
    ],
)
def test_softmax(dims, reduced, count):
    lines = SOFTMAX + "ROOT r = f32[{dims}] divide(e, sb)"
    m = module(lines, dims, reduced)
    assert kernels(m, disable="row-fusion") == 4
    program = compile_module(m)
    assert program.kernel_count == count
    x = (np.random.default_rng(0).normal(size=dims) * 5).astype(np.float32)
    wanted = interpreter.run(m, [x])
    optimised = m.clone()
    run_pipeline(optimised, "cpu")
    verify(optimised)
    np.testing.assert_allclose(interpreter.run(optimised, [x]), wanted, rtol=1e-5)
    np.testing.assert_allclose(run(program, x)[0], wanted, rtol=1e-5)


NORM = """
  x = f32[{dims}] parameter(0)
  g = f32[33] parameter(1)
  zero = f32[] constant(0)
  share = f32[] constant(0.030303031)
  tiny = f32[] constant(1e-05)
  s = f32[{rows}] reduce(x, zero), dimensions={{{reduced}}}, to_apply=add
  sh = f32[{rows}] broadcast(share), dimensions={{}}
  mean = f32[{rows}] multiply(s, sh)
  mb = f32[{dims}] broadcast(mean), dimensions={{{kept}}}
  d = f32[{dims}] subtract(x, mb)
  q = f32[{dims}] multiply(d, d)
  v = f32[{rows}] reduce(q, zero), dimensions={{{reduced}}}, to_apply=add
  var = f32[{rows}] multiply(v, sh)
  ti = f32[{rows}] broadcast(tiny), dimensions={{}}
  safe = f32[{rows}] add(var, ti)
  scale = f32[{rows}] rsqrt(safe)
  sc = f32[{dims}] broadcast(scale), dimensions={{{kept}}}
  n = f32[{dims}] multiply(d, sc)
  gb = f32[{dims}] broadcast(g), dimensions={{1}}
  ROOT r = f32[{dims}] multiply(n, gb)
"""


def test_layer_norm_is_one_kernel():
    m = module(NORM, (50, 33), [1])
    program = compile_module(m)
    assert program.kernel_count == 1
    rng = np.random.default_rng(1)
    x, g = rng.normal(size=(50, 33)).astype(np.float32), rng.normal(size=33).astype(np.float32)
    np.testing.assert_allclose(
        run(program, x, g)[0], interpreter.run(m, [x, g]), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("dims", "reduced"),
    [
        ((37, 40), [0]),  # columns are not in cache together
        ((4, 37), [1]),  # few rows: threads would have nothing to share
        ((20, 100_000), [1]),  # rows beyond the cache
    ],
)
def test_what_is_left_alone(dims, reduced):
    m = module(SOFTMAX + "ROOT r = f32[{dims}] divide(e, sb)", dims, reduced)
    assert kernels(m) == kernels(m, disable="row-fusion")


def test_a_reduction_needed_elsewhere_stays():
    lines = SOFTMAX + (
        "r = f32[{dims}] divide(e, sb) "
        "ROOT t = (f32[{dims}], f32[{rows}], f32[{rows}]) tuple(r, s, m)"
    )
    m = module(lines, (40, 37), [1])
    assert kernels(m) == kernels(m, disable="row-fusion")
