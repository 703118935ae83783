"""What a row says for code generation computes what the row evaluates."""

from __future__ import annotations

import numpy as np
import pytest

from haloc.ir.module import HloInstruction
from haloc.ops.shaping import reshape_groups
from haloc.ops.table import OPS, Elementwise, Indexed
from tests.ops.numpy_scalar import run_emit
from tests.ops.walk import OPCODES, arguments, example

EMITTED = [o for o in OPCODES if isinstance(OPS[o].lower, Elementwise | Indexed)]


@pytest.mark.parametrize("opcode", EMITTED)
def test_emit_computes_what_evaluate_does(opcode):
    for seed in range(25):
        graph = example(opcode, seed)
        root = graph.computation.root
        values: dict[HloInstruction, np.ndarray] = {}
        for p, value in zip(graph.computation.parameters, arguments(graph)):
            values[p] = value
        operands = [values[o] for o in root.operands]
        wanted = OPS[opcode].evaluate(root, list(operands), None)
        got = run_emit(root, operands)
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        assert got.tobytes() == wanted.tobytes(), (root, root.attrs, operands, got, wanted)


def test_is_remap_reads_operand_0_once_at_an_index_of_the_result():
    remaps = {o for o in EMITTED if isinstance(OPS[o].lower, Indexed) and OPS[o].lower.is_remap}
    assert remaps == {"broadcast", "reshape", "transpose", "slice", "reverse", "copy"}


def test_reshape_groups():
    def groups(source, target):
        return [(list(a), list(b)) for a, b in reshape_groups(source, target)]

    assert groups((2, 3, 4), (6, 4)) == [([0, 1], [0]), ([2], [1])]
    assert groups((8, 5), (2, 4, 5)) == [([0], [0, 1]), ([1], [2])]
    assert groups((), (1, 1)) == [([], [0]), ([], [1])]
    assert groups((1, 4), (4,)) == [([0, 1], [0])]
    assert groups((6, 10), (4, 15)) == [([0, 1], [0, 1])]
