"""Random modules compute the same before and after the pipelines."""

import numpy as np
import pytest

from haloc.analysis.equality import module_fingerprint
from haloc.interpreter import run
from haloc.ir.module import HloModule
from haloc.ir.shape import tuple_shape
from haloc.ops.example import ExampleGraph
from haloc.ops.table import OPS, Effect
from haloc.passes.driver import PassOptions
from haloc.passes.pipelines import PIPELINES, run_pipeline
from tests.ops.walk import random_value

# Ops whose value the interpreter may not repeat exactly, or that say something about devices.
RANDOM_OPS = sorted(o for o, r in OPS.items() if r.effect is Effect.PURE and o != "custom-call")


def random_graph(seed: int, size: int = 25) -> ExampleGraph:
    graph = ExampleGraph(np.random.default_rng(seed), reuse=0.8)
    values = [OPS[graph.pick(RANDOM_OPS)].example(graph) for _ in range(size)]
    results = [v for v in values if not v.shape.is_token and graph.rng.random() < 0.5] or values[
        -1:
    ]
    graph.computation.root = graph.add("tuple", tuple_shape(*(r.shape for r in results)), results)
    return graph


def assert_close(x, y, where=""):
    """Equal, but for the order in which floats are summed."""
    if isinstance(x, tuple):
        assert len(x) == len(y)
        for n, (a, b) in enumerate(zip(x, y)):
            assert_close(a, b, f"{where}[{n}]")
    elif x is not None:
        assert x.dtype == y.dtype and x.shape == y.shape, where
        if x.dtype.kind in "biu" or x.dtype.name.startswith(("int", "uint")):
            np.testing.assert_array_equal(x, y, where)
            return
        wide = np.complex128 if x.dtype.kind == "c" else np.float64
        bits = {2: 0.05, 1: 0.5}.get(x.dtype.itemsize, 1e-4)
        x, y = x.astype(wide), y.astype(wide)
        np.testing.assert_allclose(x, y, rtol=bits, atol=bits, err_msg=where)


def copy_of(module: HloModule) -> HloModule:
    copy = module.clone()
    assert module_fingerprint(copy) == module_fingerprint(module)
    return copy


@pytest.mark.parametrize("seed", range(30))
def test_random_modules_compute_the_same(seed):
    graph = random_graph(seed)
    arguments = [random_value(graph, p.shape) for p in graph.module.entry.parameters]
    with np.errstate(all="ignore"):
        before = run(graph.module, arguments)
        for name in PIPELINES:
            module = copy_of(graph.module)
            run_pipeline(module, name, PassOptions(check=True, seed=seed))
            assert_close(before, run(module, arguments), f"seed {seed}, pipeline {name}: ")
