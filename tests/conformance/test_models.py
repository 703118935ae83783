"""Whole models: jaxlib, haloc and haloc's interpreter agree in f32 and bf16."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from haloc import interpreter
from haloc.formats.hlo_text import parse_module, to_text
from tests.conformance.compare import flat, hlo_of, run_native
from tests.conformance.models import MODELS


def relative_error(got: np.ndarray, wanted: np.ndarray) -> float:
    """||got - wanted|| / ||wanted||, of tiny results against 1e-3."""
    got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    scale = max(float(np.linalg.norm(wanted)), 1e-3 * np.sqrt(max(wanted.size, 1)))
    return float(np.linalg.norm(got - wanted)) / scale


def inherent_errors(make, arguments, wanted) -> list[float]:
    """How far jaxlib's own bf16 results are from those of the same model in f32: what a result
    loses by its conditioning, whoever computes it."""
    function, _ = make(jnp.dtype("float32"))
    is_bf16 = lambda x: x.dtype == jnp.bfloat16  # noqa: E731
    wide = jax.tree.map(lambda x: x.astype(jnp.float32) if is_bf16(x) else x, arguments)
    exact = flat(jax.jit(function)(*wide))
    return [relative_error(w, e) for w, e in zip(wanted, exact)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", MODELS)
def test_model(name, dtype):
    make, f32_error, bf16_error = MODELS[name]
    with jax.enable_x64(False):
        function, arguments = make(jnp.dtype(dtype))
        text = hlo_of(function, arguments)
        wanted = flat(jax.jit(function)(*arguments))
        lost = (
            inherent_errors(make, arguments, wanted) if dtype == "bfloat16" else [0.0] * len(wanted)
        )
    leaves = flat(arguments)
    module = parse_module(text)
    printed = to_text(module)
    assert to_text(parse_module(printed)) == printed
    allowed = f32_error if dtype == "float32" else bf16_error
    results = {
        "native": run_native(text, leaves),
        "interpreter": flat(interpreter.run(module, leaves)),
    }
    for who, got in results.items():
        assert len(got) == len(wanted)
        for number, (g, w) in enumerate(zip(got, wanted)):
            assert (g.shape, g.dtype) == (w.shape, w.dtype)
            error = relative_error(g, w)
            limit = max(allowed, 2 * lost[number])
            assert error <= limit, f"{who} result {number}: relative error {error:.2e}"
