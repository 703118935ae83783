"""Random instances of every row: inference, evaluation and cost agree with what is declared."""

from __future__ import annotations

import math

import pytest

from haloc.ops.table import OPS
from tests.ops.walk import OPCODES, arguments, example, leaves, run_example

SEEDS = range(6)


@pytest.mark.parametrize("opcode", OPCODES)
def test_inference_gives_the_declared_shape(opcode):
    for seed in SEEDS:
        for instruction in example(opcode, seed).computation.instructions:
            inferred = OPS[instruction.opcode].infer(instruction)
            assert inferred.compatible(instruction.shape), (inferred, instruction)


@pytest.mark.parametrize("opcode", OPCODES)
def test_values_have_exactly_the_declared_type_and_dimensions(opcode):
    for seed in SEEDS:
        graph = example(opcode, seed)
        result = leaves(run_example(graph, arguments(graph)))
        shapes = [s for s in graph.computation.root.shape.leaves() if s.is_array]
        assert [(v.dtype, v.shape) for v in result] == [(s.dtype.numpy, s.dims) for s in shapes]


@pytest.mark.parametrize("opcode", OPCODES)
def test_cost_is_a_finite_count(opcode):
    for seed in SEEDS:
        for instruction in example(opcode, seed).computation.instructions:
            cost = OPS[instruction.opcode].cost(instruction)
            for count in (cost.flops, cost.transcendentals):
                assert math.isfinite(count) and count >= 0
