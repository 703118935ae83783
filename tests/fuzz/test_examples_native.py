"""Random instances of every pure row run natively as the interpreter runs them."""

from __future__ import annotations

import numpy as np
import pytest

from haloc.ops.table import OPS
from tests.fuzz.generate import OPCODES, FuzzGraph, random_arguments
from tests.fuzz.judge import judge

SEEDS = range(8)


@pytest.mark.parametrize("opcode", OPCODES)
def test_example_agrees(opcode):
    for seed in SEEDS:
        graph = FuzzGraph(np.random.default_rng([seed, 7]))
        graph.computation.root = OPS[opcode].example(graph)
        judge(graph.module, random_arguments(graph.module, seed), seed)
