"""Executables of every backend give their intermediate values."""

from __future__ import annotations

import re

import numpy as np
import pytest

from haloc.errors import InvalidArgumentError, NonFiniteError
from haloc.interpreter import NanGuard

SOFTMAX = """
HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e {
  p = (f32[3], f32[]) parameter(0)
  x = f32[3] get-tuple-element(p), index=0
  scale = f32[] get-tuple-element(p), index=1
  spread = f32[3] broadcast(scale), dimensions={}
  y = f32[3] multiply(x, spread)
  l = f32[3] log(y)
  zero = f32[] constant(0)
  ROOT total = f32[] reduce(l, zero), dimensions={0}, to_apply=add
}
"""
X, SCALE = np.array([1, 2, 4], np.float32), np.float32(2)


def test_by_name(load, put):
    executable = load(SOFTMAX)
    values = executable.trace(put(X), SCALE)
    assert values["y"].tolist() == [2, 4, 8]
    assert values["total"] == np.asarray(executable.execute([put(X), put(SCALE)])[0])
    assert executable.trace(X, SCALE, every=True)["y"][0].tolist() == [2, 4, 8]


def test_of_the_optimised_module(load):
    executable = load(SOFTMAX)
    values = executable.trace(X, SCALE, optimized=True)
    root = executable.hlo_modules()[0].ir.entry.root.name
    assert values[root] == executable.trace(X, SCALE)["total"]
    fused = [name for name in values if "/" in name]
    assert bool(fused) == (executable.client.platform == "cpu")


def test_with_a_guard(load):
    with pytest.raises(NonFiniteError, match="log made a NaN"), np.errstate(all="ignore"):
        load(SOFTMAX).trace(X, np.float32(-1), guard=NanGuard())


def test_wrong_arguments(load):
    executable = load(SOFTMAX)
    with pytest.raises(InvalidArgumentError, match=re.escape("m takes 2 array(s), given 1")):
        executable.trace(X)
    with pytest.raises(InvalidArgumentError, match=re.escape("argument 0[0] is an array of int")):
        executable.trace(np.arange(3), SCALE)
