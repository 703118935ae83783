"""Rows of scalar regions run on whole arrays, and cost counts what XLA's cost analysis counts."""

from __future__ import annotations

import numpy as np
import pytest

from haloc.ir.dtype import dtype_from_name
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape
from haloc.ops.basic import random_array
from haloc.ops.table import OPS, Elementwise
from tests.ops.run_op import instruction_of
from tests.ops.walk import OPCODES, example

ELEMENTWISE = [o for o in OPCODES if isinstance(OPS[o].lower, Elementwise)]


def as_scalar(instruction: HloInstruction) -> HloInstruction:
    """The same op as it stands in a region: on scalars."""
    parameters = [HloInstruction("parameter", Shape(o.shape.dtype)) for o in instruction.operands]
    return HloInstruction(
        instruction.opcode, Shape(instruction.shape.dtype), parameters, dict(instruction.attrs)
    )


@pytest.mark.parametrize("opcode", ELEMENTWISE)
def test_a_scalar_instruction_runs_on_arrays(opcode):
    graph = example(opcode, 3)
    root = as_scalar(graph.computation.root)
    arrays = [random_array(graph, o.shape.dtype, (2, 3)) for o in root.operands]
    whole = OPS[opcode].evaluate(root, list(arrays), None)
    assert (whole.dtype, whole.shape) == (root.shape.dtype.numpy, (2, 3))
    for at in np.ndindex(2, 3):
        one = OPS[opcode].evaluate(root, [np.asarray(x[at]) for x in arrays], None)
        assert isinstance(one, np.ndarray) and one.shape == ()
        assert one.tobytes() == np.asarray(whole[at]).tobytes()


@pytest.mark.parametrize("opcode", [o for o in ELEMENTWISE if len(OPS[o].operands) > 1])
def test_a_scalar_operand_broadcasts(opcode):
    graph = example(opcode, 4)
    root = as_scalar(graph.computation.root)
    first, *rest = [random_array(graph, o.shape.dtype, (4,)) for o in root.operands]
    scalar = np.asarray(first[0])
    got = OPS[opcode].evaluate(root, [scalar, *rest], None)
    wanted = OPS[opcode].evaluate(root, [np.full(4, scalar, first.dtype), *rest], None)
    assert got.shape == (4,) and got.tobytes() == wanted.tobytes()


NO_WORK = (0, 0)
COSTS = [
    # From jaxlib 0.10.2's hlo_module_cost_analysis, for results of 12 elements.
    ("add", "f32 f32", (12, 0)),
    ("compare", "f32 f32", (12, 0)),
    ("divide", "s32 s32", (12, 0)),
    ("complex", "f32 f32", (12, 0)),
    ("real", "c64", NO_WORK),
    ("convert", "f32", (12, 0)),
    ("bitcast-convert", "f32", (12, 0)),
    ("copy", "f32", NO_WORK),
    ("tanh", "f32", (0, 12)),
    ("sqrt", "f32", (0, 12)),
    ("power", "f32 f32", (0, 12)),
    ("atan2", "f32 f32", (0, 12)),
    ("floor", "f32", (12, 0)),
    ("reverse", "f32", NO_WORK),
]


@pytest.mark.parametrize(("opcode", "types", "wanted"), COSTS)
def test_cost(opcode, types, wanted):
    shapes = [Shape(dtype_from_name(t), (3, 4)) for t in types.split()]
    attrs = {"direction": "LT"} if opcode == "compare" else {}
    instruction = instruction_of(opcode, shapes, **attrs)
    cost = OPS[opcode].cost(instruction)
    assert (cost.flops, cost.transcendentals) == wanted
