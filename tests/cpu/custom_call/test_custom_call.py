"""custom-call dispatch and the markers that copy."""

from __future__ import annotations

import numpy as np
import pytest

import haloc.ops  # noqa: F401  (fills the table)
from haloc.codegen.kernel import KERNELS
from haloc.codegen.target import host_target
from haloc.cpu.custom_call import kernel as _kernel  # noqa: F401
from haloc.errors import NotFoundError, UnimplementedError
from haloc.ir.dtype import F32, S32
from haloc.ir.module import HloInstruction
from haloc.ir.shape import Shape, tuple_shape
from tests.cpu.kernel_runner import run_kernel


def call(target, operand, result):
    instruction = HloInstruction(
        "custom-call",
        result,
        [HloInstruction("parameter", operand)],
        {"custom_call_target": target},
    )
    return KERNELS["custom-call"](instruction, host_target())


@pytest.mark.parametrize("size", [0, 1, 300_000])
def test_markers_copy(size):
    shape = Shape(F32, (size,))
    x = np.arange(size, dtype=np.float32)
    (result,) = run_kernel(call("Sharding", shape, shape), [x], [shape], pieces=3)
    np.testing.assert_array_equal(result, x)


def test_markers_copy_tuples():
    shape = tuple_shape(Shape(F32, (3,)), Shape(S32, (2, 2)))
    arrays = [np.arange(3, dtype=np.float32), np.arange(4, dtype=np.int32).reshape(2, 2)]
    results = run_kernel(call("Pin", shape, shape), arrays, shape.leaves())
    for result, array in zip(results, arrays, strict=True):
        np.testing.assert_array_equal(result, array)


def test_unknown_target():
    shape = Shape(F32, (4,))
    with pytest.raises(
        NotFoundError,
        match="No registered implementation for untyped custom call to nope for Host",
    ):
        call("nope", shape, shape)


def test_markers_between_shapes_are_refused():
    with pytest.raises(UnimplementedError, match=r"SPMDFullToShardShape from .* not the identity"):
        call("SPMDFullToShardShape", Shape(F32, (8,)), Shape(F32, (4,)))
