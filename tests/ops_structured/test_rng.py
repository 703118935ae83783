"""rng-bit-generator is bit-exact with XLA:CPU; rng has the right distribution."""

import numpy as np
import pytest

from haloc import interpreter
from haloc.formats.hlo_text import parse_module
from haloc.ops.rng import HiddenState
from haloc.verifier import verify
from tests.ops_structured.against_jaxlib import check, module
from tests.ops_structured.test_examples import ExampleGraph, expand

STATE = np.array([0x123456789ABCDEF0, 0xFFFFFFFFFFFFFFFE, 7], np.uint64)


def generator(algorithm: str, size: int, bits: str) -> str:
    return module(
        f"""  s = u64[{size}] parameter(0)
  ROOT r = (u64[{size}], {bits}) rng-bit-generator(s), algorithm={algorithm}"""
    )


@pytest.mark.parametrize(
    ("algorithm", "size"),
    [("rng_three_fry", 2), ("rng_philox", 2), ("rng_philox", 3), ("rng_default", 2)],
)
@pytest.mark.parametrize(
    "bits",
    [
        "u32[]",
        "u32[9]",
        "u32[3,2]",
        "u32[2,3]",
        "u32[3,3]",
        "u32[1,3]",
        "u32[3,5,7]",
        "u32[5,9,2,4]",
        "u32[0]",
        "u32[3,0]",
        "u64[]",
        "u64[5]",
        "u64[3,3]",
        "u16[9]",
        "u16[3,3]",
        "u8[9]",
        "u8[3,3]",
        "u4[5]",
    ],
)
def test_bits(algorithm, size, bits):
    text = generator(algorithm, size, bits)
    given = check(text, [STATE[:size]])
    graph = ExampleGraph(np.random.default_rng(0))
    graph.module = parse_module(text)
    graph.computation = graph.module.entry
    expand(graph, "rng-bit-generator")
    for a, b in zip(interpreter.run(graph.module, [STATE[:size]]), given, strict=True):
        np.testing.assert_array_equal(a, b)


def test_signed_and_float_results_are_the_same_bits():
    (_, unsigned), (_, signed), (_, floats) = (
        interpreter.run(parse_module(generator("rng_philox", 3, f"{t}[6]")), [STATE])
        for t in ("u32", "s32", "f32")
    )
    assert unsigned.tobytes() == signed.tobytes() == floats.tobytes()


@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize(
    ("dtype", "distribution", "a", "b", "mean", "deviation"),
    [
        ("f32", "rng_uniform", 1, 3, 2.0, 2 / 12**0.5),
        ("f64", "rng_uniform", 0, 1, 0.5, 1 / 12**0.5),
        ("bf16", "rng_uniform", -1, 1, 0.0, 2 / 12**0.5),
        ("s32", "rng_uniform", -5, 5, -0.5, (99 / 12) ** 0.5),
        ("f32", "rng_normal", 1, 2, 1.0, 2.0),
        ("f64", "rng_normal", 0, 1, 0.0, 1.0),
    ],
)
def test_distributions(expanded, dtype, distribution, a, b, mean, deviation):
    text = module(
        f"""  a = {dtype}[] constant({a})
  b = {dtype}[] constant({b})
  ROOT r = {dtype}[20000] rng(a, b), distribution={distribution}"""
    )
    parsed = parse_module(text)
    verify(parsed)
    if expanded:
        graph = ExampleGraph(np.random.default_rng(0))
        graph.module, graph.computation = parsed, parsed.entry
        expand(graph, "rng")
    x = interpreter.run(parsed, []).astype(np.float64)
    assert abs(x.mean() - mean) < 0.05 * deviation
    assert abs(x.std() - deviation) < 0.03 * deviation
    if distribution == "rng_uniform":
        assert x.min() >= a and (x.max() < b or dtype == "bf16")
    assert not np.array_equal(x, interpreter.run(parsed, []))


def test_hidden_state_carries():
    state = HiddenState((1 << 64) - 1)
    assert state.take(1).tolist() == [(1 << 64) - 1, 0]
    assert state.take(5).tolist() == [0, 1]
