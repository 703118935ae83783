"""Random instances of every row give what jaxlib gives."""

from __future__ import annotations

import pytest

from haloc import interpreter
from haloc.formats.hlo_text import to_text
from haloc.ir.dtype import F6E2M3FN, F6E3M2FN
from haloc.ops.example import ExampleGraph
from tests.ops.compare import COMPLEX_ULPS, ULPS, mismatches, subnormal
from tests.ops.walk import OPCODES, arguments, example, leaves
from tests.oracle import OracleError, run_in_jaxlib

SEEDS = range(3)

NOT_ON_XLA_CPU = "XLA:CPU does not execute it"
DIES = "jaxlib's route by StableHLO dies of it"
ROUTE = "jaxlib's StableHLO does not hold it, or gives it another shape"
WAITS = "waits for a host or a partner that run_in_jaxlib does not have"

NOT_COMPARED = {
    "after-all": "a token has no value to compare",
    "all-gather-done": ROUTE,
    "all-gather-start": ROUTE,
    "all-to-all": f"{DIES} with operands for each participant; the other form: several devices",
    "bitcast": "XLA takes it after layout assignment only",
    "async-done": ROUTE,
    "async-start": ROUTE,
    "async-update": ROUTE,
    "collective-broadcast": NOT_ON_XLA_CPU,
    "copy-done": NOT_ON_XLA_CPU,
    "copy-start": NOT_ON_XLA_CPU,
    "infeed": WAITS,
    "mulhi": "has no StableHLO counterpart, by which jaxlib takes programs",
    "outfeed": WAITS,
    "ragged-all-to-all": DIES,
    "recv": WAITS,
    "recv-done": WAITS,
    "send": WAITS,
    "send-done": WAITS,
    "partition-id": "covered by tests of several devices",
    "replica-id": "covered by tests of several devices",
    "rng": "another random stream",
    "rng-get-and-update-state": "another hidden state",
}

HAS_ITS_OWN_TESTS = {
    "batch-norm-grad": "sums in another order",
    "batch-norm-inference": "sums in another order",
    "batch-norm-training": "sums in another order",
    "cholesky": "results are compared after the family's own tolerance",
    "convolution": "sums in another order",
    "custom-call": "jaxlib knows its own targets",
    "dot": "sums in another order",
    "fft": "sums in another order",
    "ragged-dot": "XLA:CPU does not run it",
    "reduce-window": "sums in another order",
    "reduce": "sums in another order",
    "rng-bit-generator": "the default algorithm differs between platforms",
    "scaled-dot": "has no StableHLO counterpart, by which jaxlib takes programs",
    "scatter": "sums in another order",
    "select-and-scatter": "sums in another order",
    "triangular-solve": "sums in another order",
}

REFUSED_BY_XLA = frozenset({"asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh"})
"""XLA:CPU answers UNIMPLEMENTED for f32, f64 and complex numbers; JAX expands them before."""


def uses_f6(graph: ExampleGraph) -> bool:
    """jaxlib 0.10.2 aborts on six-bit floats."""
    shapes = [leaf for i in graph.computation.instructions for leaf in i.shape.leaves()]
    return any(s.dtype in (F6E2M3FN, F6E3M2FN) for s in shapes)


@pytest.mark.parametrize(
    "opcode", [o for o in OPCODES if o not in NOT_COMPARED and o not in HAS_ITS_OWN_TESTS]
)
def test_example_agrees_with_jaxlib(opcode):
    compared = 0
    for seed in SEEDS:
        graph = example(opcode, seed)
        if uses_f6(graph):
            continue
        text, given = to_text(graph.module), arguments(graph)
        try:
            theirs = run_in_jaxlib(text, leaves(tuple(given)))
        except OracleError as error:
            if opcode in REFUSED_BY_XLA and "UNIMPLEMENTED" in str(error):
                continue
            raise AssertionError(f"{error}\n{text}") from error
        ours = leaves(interpreter.run(graph.module, given))
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            ulps = COMPLEX_ULPS if a.dtype.kind == "c" else ULPS.get(opcode, 0)
            wrong = mismatches(a, b, ulps) & ~subnormal(a)
            assert not wrong.any(), f"{text}\nours {a[wrong]}\njaxlib {b[wrong]}"
        compared += 1
    assert compared or opcode in REFUSED_BY_XLA
