"""Traces hold every value by name; a guard names the instruction that made the first NaN."""

from __future__ import annotations

import numpy as np
import pytest

from haloc import interpreter
from haloc.errors import NonFiniteError
from haloc.formats.hlo_text import parse_module
from haloc.interpreter import NanGuard, trace
from haloc.ir.dtype import ARRAY_DTYPES
from tests.fuzz.generate import random_arguments, random_module

LOOP = """
HloModule loop
body { s = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[2] get-tuple-element(s), index=1
  one = s32[] constant(1)
  step = f32[2] constant({1, 1})
  j = s32[] add(i, one)
  w = f32[2] subtract(v, step), metadata={op_name="jit(f)/sub" source_file="f.py" source_line=3}
  l = f32[2] log(w), metadata={op_name="jit(f)/log" source_file="f.py" source_line=4}
  ROOT t = (s32[], f32[2]) tuple(j, w) }
cond { q = (s32[], f32[2]) parameter(0)
  k = s32[] get-tuple-element(q), index=0
  ten = s32[] constant(5)
  ROOT less = pred[] compare(k, ten), direction=LT }
ENTRY e {
  zero = s32[] constant(0)
  x = f32[2] parameter(0)
  start = (s32[], f32[2]) tuple(zero, x)
  loop = (s32[], f32[2]) while(start), condition=cond, body=body
  ROOT r = f32[2] get-tuple-element(loop), index=1
}
"""
X = np.array([10.0, 3.5], np.float32)


def raised(text: str, *arguments: np.ndarray, infinities: bool = False) -> NonFiniteError:
    with pytest.raises(NonFiniteError) as caught, np.errstate(all="ignore"):
        guard = NanGuard(infinities=infinities)
        interpreter.run(parse_module(text), arguments, guard=guard)
    return caught.value


class TestTrace:
    def test_values_by_name(self):
        values = trace(parse_module(LOOP), [np.array([10.0, 20.0], np.float32)])
        assert list(values)[:3] == ["x", "zero", "start"]
        assert values["r"].tolist() == [5, 15]
        assert values["body/w"].tolist() == [5, 15]
        assert values["cond/less"].item() is False
        assert values["loop"][0] == 5

    def test_every_execution(self):
        values = trace(parse_module(LOOP), [np.array([10.0, 20.0], np.float32)], every=True)
        assert [v[0] for v in values["body/w"]] == [9, 8, 7, 6, 5]
        assert [bool(v) for v in values["cond/less"]] == [True] * 5 + [False]
        assert len(values["r"]) == 1

    @pytest.mark.parametrize("seed", range(5))
    def test_holds_every_instruction_of_the_entry(self, seed):
        module = random_module(seed)
        with np.errstate(all="ignore"):
            values = trace(module, random_arguments(module, seed))
        assert {i.name for i in module.entry.instructions} <= set(values)


class TestGuard:
    def test_names_the_first_that_made_one(self):
        error = raised(LOOP, X)
        assert str(error) == (
            "OUT_OF_RANGE: log made a NaN: 1 of 2 elements, the first at [1], "
            "when it ran for the 4th time"
        )
        told = "\n".join(error.__notes__)
        assert "operand 0: %w = f32[2]{0} subtract(%v, %step)\n    -0.5 at [1]; at [0:2]: " in told
        assert "[6, -0.5]" in told
        assert "op_name: jit(f)/log" in told
        assert "evaluating %l = f32[2]{0} log(%w)  (f.py:4)" in told

    def test_what_was_given_or_passed_on_is_not_blamed(self):
        text = """ENTRY e { x = f32[3] parameter(0)  nan = f32[3] constant({nan, inf, 1})
          y = f32[3] add(x, nan)  ROOT z = f32[3] tanh(y) }"""
        guard = NanGuard(infinities=True)
        x = np.array([1, np.nan, np.inf], np.float32)
        result = interpreter.run(parse_module(text), [x], guard=guard)
        assert np.isnan(result).any() and guard.checked == 2

    def test_infinity_minus_infinity(self):
        text = "ENTRY e { x = f32[2,2] parameter(0)  ROOT y = f32[2,2] subtract(x, x) }"
        error = raised(text, np.array([[1, 2], [np.inf, 3]], np.float32))
        assert "the first at [1,0]" in str(error)
        assert error.__notes__[0].endswith("inf at [1,0]; at [1,0:2]: [inf, 3]")

    def test_infinities_only_when_asked(self):
        text = "ENTRY e { x = f32[2] parameter(0)  ROOT y = f32[2] exponential(x) }"
        x = np.array([1, 1000], np.float32)
        with np.errstate(all="ignore"):
            interpreter.run(parse_module(text), [x], guard=NanGuard())
        assert "exponential made an infinity: 1 of 2" in str(raised(text, x, infinities=True))

    def test_operands_of_other_shapes(self):
        text = """add { a = f32[] parameter(0)  b = f32[] parameter(1)
          ROOT s = f32[] add(a, b) }
          ENTRY e { x = f32[9] parameter(0)  zero = f32[] constant(0)
          ROOT y = f32[] reduce(x, zero), dimensions={0}, to_apply=add }"""
        x = np.arange(9, dtype=np.float32)
        x[2:4] = np.inf, -np.inf
        error = raised(text, x)
        assert "reduce made a NaN: 1 of 1 elements" in str(error)
        assert error.__notes__[0].endswith("from -inf to inf")
        assert error.__notes__[1].endswith("\n    0")

    @pytest.mark.parametrize("dtype", [d for d in ARRAY_DTYPES if d.is_float or d.is_complex])
    def test_every_float_type(self, dtype):
        text = f"ENTRY e {{ x = {dtype.name}[2] parameter(0)  ROOT y = {dtype.name}[2] copy(x) }}"
        x = np.ones(2).astype(dtype.numpy)
        guard = NanGuard(infinities=True)
        interpreter.run(parse_module(text), [x], guard=guard)
        assert guard.checked == 1
