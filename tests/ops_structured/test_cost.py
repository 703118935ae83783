"""Costs are XLA's: flops and transcendentals of every structured row's examples."""

import numpy as np
import pytest

from haloc.formats.hlo_text import to_text
from haloc.ir.module import HloModule
from haloc.ops.table import OPS
from tests.ops_structured.test_examples import STRUCTURED, example

jax = pytest.importorskip("jax")


COUNTED_OTHERWISE = {
    "custom-call": "each target has a cost of its own",
    "ragged-dot": "XLA leaves out batch dimensions when the ragged one is free",
    "rng-get-and-update-state": "XLA refuses to count the hidden state",
    "scan": "XLA counts the carry's elements for the steps",
}


def assert_cost_is_xlas(module: HloModule) -> None:
    """The work of the entry's instructions is what XLA's HloCostAnalysis counts."""
    from jaxlib import _hlo, _jax  # noqa: PLC0415  (after jax, which sets them up)

    client = jax.devices("cpu")[0].client
    costs = [OPS[i.opcode].cost(i) for i in module.entry.instructions]
    wanted = _jax.hlo_module_cost_analysis(client, _hlo.hlo_module_from_text(to_text(module)))
    for key in ("flops", "transcendentals"):
        given = sum(getattr(c, key) for c in costs)
        np.testing.assert_allclose(given, max(0.0, wanted.get(key, 0.0)), rtol=1e-6)


@pytest.mark.parametrize("opcode", [o for o in STRUCTURED if o not in COUNTED_OTHERWISE])
def test_cost_is_that_of_hlo_cost_analysis(opcode):
    for seed in range(15):
        assert_cost_is_xlas(example(opcode, seed).module)
