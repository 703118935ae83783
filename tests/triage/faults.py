"""Faults put in on purpose: a rule that is wrong, a program big enough to hide it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from haloc.ir.literal import Value
from haloc.ir.module import HloInstruction, HloModule
from haloc.ops.expand import Beside
from haloc.passes.algebraic_simplifier import ALGEBRA
from haloc.passes.simplify import Rule
from haloc.triage.engine import Engine
from haloc.triage.failures import Mismatch

PROGRAM = """
HloModule big
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
step { p = (s32[], f32[6]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[6] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  c = f32[6] cosine(v)
  ROOT t = (s32[], f32[6]) tuple(next, c) }
more { q = (s32[], f32[6]) parameter(0)
  k = s32[] get-tuple-element(q), index=0
  three = s32[] constant(3)
  ROOT less = pred[] compare(k, three), direction=LT }
ENTRY e {
  x = f32[4,6] parameter(0), metadata={op_name="x"}
  y = f32[4,6] parameter(1)
  zero = f32[] constant(0)
  izero = s32[] constant(0)
  product = f32[4,6] multiply(x, y)
  wave = f32[4,6] sine(product)
  sum = f32[6] reduce(wave, zero), dimensions={0}, to_apply=add
  start = (s32[], f32[6]) tuple(izero, sum)
  loop = (s32[], f32[6]) while(start), condition=more, body=step
  looped = f32[6] get-tuple-element(loop), index=1
  spread = f32[4,6] broadcast(looped), dimensions={1}
  angle = f32[4,6] atan2(spread, wave), metadata={op_name="jit(f)/atan2"}
  shifted = f32[4,6] add(angle, product)
  last = f32[6,4] transpose(shifted), dimensions={1,0}
  ROOT result = (f32[6,4], f32[6]) tuple(last, sum)
}
"""


@contextmanager
def broken_rule(opcode: str = "atan2", becomes: str = "subtract") -> Iterator[None]:
    """A rule `atan2(a, b) => a - b` among the others of the algebraic simplifier."""

    def rewrite(i: HloInstruction, beside: Beside) -> HloInstruction:
        return beside.add(becomes, i.shape, i.operands)

    rule = Rule("broken", (opcode,), rewrite, "atan2(a, b) => a - b", "")
    rules = ALGEBRA.by_opcode.setdefault(opcode, [])
    rules.insert(0, rule)
    try:
        yield
    finally:
        rules.remove(rule)


@dataclass(frozen=True)
class Deadly:
    """The process dies of a signal (or hangs, or leaves) when a program has an opcode."""

    opcode: str
    how: str = "dies"

    def __call__(self, module: HloModule, arguments: Sequence[Value]) -> str:
        if any(i.opcode == self.opcode for i in module.instructions()):
            if self.how == "dies":
                os.kill(os.getpid(), signal.SIGSEGV)
            if self.how == "hangs":
                time.sleep(30)
            os._exit(7)
        return "another fault" if len(module.entry) > 100 else ""


@dataclass(frozen=True)
class BrokenRule:
    """Other results after the passes, where the broken rule is one of them."""

    opcode: str = "atan2"
    becomes: str = "subtract"

    def __call__(self, module: HloModule, arguments: Sequence[Value]) -> str:
        with broken_rule(self.opcode, self.becomes):
            return Mismatch(Engine("passes"))(module, arguments)
