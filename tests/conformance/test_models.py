"""Whole models: jaxlib, haloc and haloc's interpreter agree in f32 and bf16."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from haloc import interpreter
from haloc.formats.hlo_text import parse_module
from tests.conformance.compare import check_round_trip, flat, hlo_of, run_native
from tests.conformance.models import MODELS


def relative_error(got: np.ndarray, wanted: np.ndarray) -> float:
    """||got - wanted|| / ||wanted||, of tiny results against 1e-3."""
    got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    scale = max(float(np.linalg.norm(wanted)), 1e-3 * np.sqrt(max(wanted.size, 1)))
    return float(np.linalg.norm(got - wanted)) / scale


def whole(values) -> np.ndarray:
    """All results as one vector: what bf16 is judged by, for a small result that is a difference
    of large ones keeps no digits in bf16, whoever computes it."""
    return np.concatenate([v.astype(np.float64).reshape(-1) for v in values])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", MODELS)
def test_model(name, dtype):
    make, f32_error, bf16_error = MODELS[name]
    with jax.enable_x64(False):
        function, arguments = make(jnp.dtype(dtype))
        text = hlo_of(function, arguments)
        wanted = flat(jax.jit(function)(*arguments))
    leaves = flat(arguments)
    module = parse_module(text)
    check_round_trip(module)
    results = {
        "native": run_native(text, leaves),
        "interpreter": flat(interpreter.run(module, leaves)),
    }
    for who, got in results.items():
        assert [(g.shape, g.dtype) for g in got] == [(w.shape, w.dtype) for w in wanted]
        if dtype == "bfloat16":
            error = relative_error(whole(got), whole(wanted))
            assert error <= bf16_error, f"{who}: relative error {error:.2e}"
            continue
        for number, (g, w) in enumerate(zip(got, wanted)):
            error = relative_error(g, w)
            assert error <= f32_error, f"{who} result {number}: relative error {error:.2e}"
