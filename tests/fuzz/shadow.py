"""How far a module's results may move when its arithmetic rounds differently.

Two right executions of a module differ: sums in another order, functions one unit off, bf16 steps
kept in f32. A deep graph can make much of little: a difference that cancels, an exponential, a
comparison that falls the other way. So tolerances are not guessed but measured. A shadow run is the
interpreter with every rounded value moved by a few units of its last place; where shadow runs
spread, results may differ by as much (`SLACK` times); where they agree, results have to.

Rules. Values of ops that round (`ROUNDING`) are moved by up to `UNITS` units, relative to their
size: all up in one run, all down in the next, at random in the others. Zeros and infinities
stay; a NaN may have either sign, which total orders and
bits show. Sums (reductions, contractions, scatter, libraries) round inside, where terms may cancel:
their float operands are moved as well. Data movement, comparisons, integers are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

from haloc import interpreter
from haloc.interpreter.run import Interpreter, _Plan, _plan
from haloc.ir.literal import Value
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ops.table import OPS, Expand, Structure

SHADOWS = 4
UNITS = 4.0
SLACK = 8.0

_SUMS = (Structure.REDUCTION, Structure.CONTRACTION, Structure.LIBRARY, Structure.UPDATE)
_EXACT_NAMES = """
abs negate sign select compare maximum minimum clamp floor ceil round-nearest-even
round-nearest-afz real imag complex copy and or xor not is-finite bitcast-convert
"""
_EXACT = frozenset(_EXACT_NAMES.split())
"""Elementwise ops whose results do not depend on how one rounds."""


class _ShadowInterpreter(Interpreter):
    def __init__(self, direction: float, seed: int):
        super().__init__()
        self.direction = direction
        self.rng = np.random.default_rng(seed)

    def call(self, computation: HloComputation, arguments: list[Value]) -> Value:
        if computation not in self._plans:
            self._plans[computation] = self._moved_plan(computation)
        return super().call(computation, arguments)

    def _moved_plan(self, computation: HloComputation) -> _Plan:
        plan = _plan(computation)
        for step in plan.steps:
            opcode = step.instruction.opcode
            sums = _sums(opcode)
            if sums or (OPS[opcode].is_elementwise and opcode not in _EXACT):
                step.evaluate = self._moving(step.evaluate, sums)
        return plan

    def _moving(self, evaluate: Callable[..., Value], operands_too: bool) -> Callable[..., Value]:
        def moved(instruction: HloInstruction, values: list[Value], context: object) -> Value:
            if operands_too:
                values = [self._move(v) for v in values]
            return self._move(evaluate(instruction, values, context))

        return moved

    def _move(self, value: Value) -> Value:
        if isinstance(value, tuple):
            return tuple(map(self._move, value))
        if value is None or not is_inexact(value.dtype):
            return value
        size = self.rng.uniform(0.5, UNITS, value.shape) * eps_of(value.dtype)
        sign = self.direction or self.rng.choice([-1.0, 1.0], value.shape)
        with np.errstate(all="ignore"):
            if value.dtype.kind != "c":
                moved = value.astype(np.float64) * (1 + sign * size)
                moved = np.where(np.isnan(moved), np.copysign(np.nan, sign), moved)
                return np.asarray(moved.astype(value.dtype))
            # The parts of a complex number round relative to its magnitude.
            wide = value.astype(np.complex128)
            turn = 1.0 if self.direction else self.rng.choice([-1.0, 1.0], value.shape)
            step = np.abs(wide) * sign * size
            return np.asarray((wide + step + 1j * step * turn).astype(value.dtype))


def _sums(opcode: str) -> bool:
    lower = OPS[opcode].lower
    return lower in _SUMS if isinstance(lower, Structure) else isinstance(lower, Expand)


def is_inexact(dtype: np.dtype) -> bool:
    return dtype.kind in "fc" or dtype.name.startswith(("bfloat", "float"))


def eps_of(dtype: np.dtype) -> float:
    """The distance of neighbouring numbers, relative to their size."""
    return float(np.finfo(dtype).eps if dtype.kind == "c" else ml_dtypes.finfo(dtype).eps)


@dataclass
class Expected:
    """Nominal results of a module (leaves in order) and, for each, how far each element may be
    off: 0 exact, inf anything."""

    values: list[np.ndarray]
    tolerances: list[np.ndarray] = field(default_factory=list)


def expected(module: HloModule, arguments: Sequence[Value], seed: int = 0) -> Expected:
    """Run the interpreter once as it is and `SHADOWS` times moved."""
    with np.errstate(all="ignore"):
        nominal = array_leaves(interpreter.run(module, arguments))
        result = Expected(nominal)
        spreads = [np.zeros(v.shape) for v in nominal]
        for n in range(SHADOWS):
            shadow = _ShadowInterpreter((1.0, -1.0, 0.0)[min(n, 2)], seed + n)
            moved = array_leaves(shadow.call(module.entry, list(arguments)))
            spreads = [np.maximum(s, distance(a, b)) for s, a, b in zip(spreads, nominal, moved)]
        for value, spread in zip(nominal, spreads):
            result.tolerances.append(_tolerance(value, spread))
    return result


def _tolerance(value: np.ndarray, spread: np.ndarray) -> np.ndarray:
    if not is_inexact(value.dtype):
        return np.where(spread > 0, np.inf, 0.0)
    size = np.abs(value.astype(np.complex128 if value.dtype.kind == "c" else np.float64))
    return SLACK * (spread + eps_of(value.dtype) * np.where(np.isfinite(size), size, 0.0))


def distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """|a - b| element by element: 0 for equal ones (NaN equals NaN, -0 equals 0), inf where only
    one is NaN or infinite, or integers differ."""
    if not is_inexact(a.dtype):
        return np.where(np.asarray(a == b), 0.0, np.inf)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = np.asarray(a).astype(wide), np.asarray(b).astype(wide)
    with np.errstate(all="ignore"):
        gap = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))


def array_leaves(value: Value) -> list[np.ndarray]:
    """The arrays of a value, depth first; tokens left out."""
    if isinstance(value, tuple):
        return [leaf for v in value for leaf in array_leaves(v)]
    return [] if value is None else [np.asarray(value)]
