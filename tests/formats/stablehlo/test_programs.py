"""JAX's programs give through StableHLO text what they give through HLO text."""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from haloc import interpreter
from haloc.formats.hlo_text import parse_module
from haloc.formats.stablehlo import parse_stablehlo
from haloc.verifier import verify
from tests.conformance.arguments import argument
from tests.conformance.compare import assert_close, flat, run_native
from tests.conformance.models import MODELS
from tests.conformance.small import PROGRAMS

IN_CI = 12
"""Every so many programs one runs in CI; the others at night."""

EXPANDED = frozenset(
    [
        *["acos", "acosh", "asin", "asinh", "atanh", "bessel_i1e", "cosh", "erf_inv", "erfc"],
        *["exp", "log", "log1p", "sinh", "sqrt", "threefry_normal"],
    ]
)
"""XLA has formulas where haloc has an op or another formula: equal to rounding only."""


def texts(lowered) -> list[str]:
    """Pretty, with locations, generic."""
    generic = lowered.compiler_ir("stablehlo").operation.get_asm(print_generic_op_form=True)
    return [lowered.as_text(), lowered.as_text(debug_info=True), generic]


def marked(number: int) -> list:
    return [] if number % IN_CI == 0 else [pytest.mark.nightly]


@pytest.mark.parametrize(
    ("name", "function", "specs"),
    [pytest.param(*p, id=p[0], marks=marked(i)) for i, p in enumerate(PROGRAMS)],
)
def test_program(name, function, specs):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    arguments = [argument(s, rng) for s in specs]
    lowered = jax.jit(function, keep_unused=True).lower(*arguments)
    modules = [parse_stablehlo(text) for text in texts(lowered)]
    for module in modules:
        verify(module)
    hlo = lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True)
    wanted = flat(interpreter.run(parse_module(hlo), list(arguments)))
    results = [flat(interpreter.run(module, list(arguments))) for module in modules]
    for got in results[1:]:
        assert [g.tobytes() for g in got] == [g.tobytes() for g in results[0]]
    if name in EXPANDED or name.rpartition("_")[0] in EXPANDED:
        assert_close("StableHLO", results[0], wanted, 1.0)
        return
    assert len(results[0]) == len(wanted)
    for g, w in zip(results[0], wanted):
        assert g.dtype == w.dtype
        # NumPy takes NaNs of its own types for equal only.
        wide = {"V": np.float64}.get(w.dtype.kind, w.dtype)
        np.testing.assert_array_equal(g.astype(wide), w.astype(wide))


@pytest.mark.parametrize("name", [pytest.param(n, marks=marked(i)) for i, n in enumerate(MODELS)])
def test_model_natively(name):
    make, error, _ = MODELS[name]
    with jax.enable_x64(False):
        function, arguments = make(jnp.dtype("float32"))
        lowered = jax.jit(function, keep_unused=True).lower(*arguments)
        wanted = flat(jax.jit(function)(*arguments))
    for got, w in zip(run_native(lowered.as_text(), flat(arguments)), wanted, strict=True):
        scale = max(float(np.linalg.norm(w.astype(np.float64))), 1e-3 * np.sqrt(max(w.size, 1)))
        assert float(np.linalg.norm(got.astype(np.float64) - w)) / scale <= error
