"""Contractions and solves whose element types the pipeline changes: interpreter and native."""

import numpy as np
import pytest

from haloc import interpreter
from haloc.errors import VerificationError
from haloc.formats.hlo_text import parse_module
from haloc.verifier import verify
from tests.conformance.compare import run_native

DOT = "dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def program(lhs: str, rhs: str, result: str) -> str:
    return (
        f"HloModule m\n\nENTRY main {{\n  a = {lhs}[1,2] parameter(0)\n"
        f"  b = {rhs}[2,1] parameter(1)\n  ROOT d = {result}[1,1] {DOT}\n}}\n"
    )


def both(text: str, arguments: list) -> list:
    return [
        interpreter.run(parse_module(text), arguments),
        run_native(text, arguments)[0],
    ]


@pytest.mark.parametrize(("operand", "result"), [("s8", "f16"), ("s32", "f32"), ("pred", "s32")])
def test_result_of_a_later_kind(operand, result):
    numpy = {"s8": np.int8, "s32": np.int32, "pred": np.bool_}[operand]
    a, b = np.array([[1, 1]], numpy), np.array([[1], [1]], numpy)
    for got in both(program(operand, operand, result), [a, b]):
        assert got == 2


def test_operands_are_rounded_to_the_result():
    """2^24 + 1 is no f32: it becomes 2^24."""
    a = np.array([[2**24 + 1, -(2**24)]], np.int32)
    for got in both(program("s32", "s32", "f32"), [a, np.ones((2, 1), np.int32)]):
        assert got.dtype == np.float32
        assert got == 0


def test_real_operands_of_a_complex_result():
    a, b = np.array([[1.5, 2]], np.float32), np.array([[2], [0.5]], np.float32)
    for got in both(program("f32", "f32", "c64"), [a, b]):
        assert got.dtype == np.complex64
        assert got == 4


@pytest.mark.parametrize(
    ("types", "message"),
    [
        (("s32", "s32", "f16"), "must not be narrower than the operands"),
        (("f32", "f32", "s32"), "are not of one kind"),
        (("c64", "c64", "f32"), "are not of one kind"),
        (("s32", "f32", "f32"), "are not of one kind"),
    ],
)
def test_other_types_are_refused(types, message):
    with pytest.raises(VerificationError, match=message):
        verify(parse_module(program(*types)))


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_narrow_solve(dtype):
    text = (
        f"HloModule m\n\nENTRY main {{\n  a = {dtype}[2,2] parameter(0)\n"
        f"  b = {dtype}[2,1] parameter(1)\n  l = {dtype}[2,2] cholesky(a), lower=true\n"
        f"  ROOT x = {dtype}[2,1] triangular-solve(l, b), left_side=true, lower=true, "
        "transpose_a=NO_TRANSPOSE\n}\n"
    )
    numpy = parse_module(text).entry.root.shape.dtype.numpy
    a, b = np.array([[4, 2], [2, 2]], numpy), np.array([[2], [3]], numpy)
    for got in both(text, [a, b]):
        assert got.dtype == numpy
        np.testing.assert_array_equal(got.astype(np.float32), [[1], [2]])
