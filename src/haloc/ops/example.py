"""What an op row's `example` builds on: a graph that hands out operands and takes instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from haloc.ir.dtype import DType
from haloc.ir.literal import Literal
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape


class ExampleGraph:
    """A computation under construction, with a random generator.

    `operand` gives an instruction of the wanted shape: one already there when `reuse` allows and
    one fits (so that random graphs grow deep), else a new parameter.
    """

    def __init__(self, rng: np.random.Generator, reuse: float = 0.5, name: str = "example"):
        self.rng = rng
        self.reuse = reuse
        self.module = HloModule(name)
        self.computation = self.module.add_computation("main", entry=True)

    def dims(self, low: int = 0, high: int = 4, size: int = 5) -> tuple[int, ...]:
        """Random dimensions: rank in [low, high), each size in [1, size], now and then 0."""
        rank = int(self.rng.integers(low, high))
        dims = self.rng.integers(1, size + 1, rank)
        if rank and self.rng.random() < 0.03:
            dims[self.rng.integers(rank)] = 0
        return tuple(int(d) for d in dims)

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def operand(self, dtype: DType, dims: tuple[int, ...] = ()) -> HloInstruction:
        shape = Shape(dtype, tuple(dims))
        fitting = [i for i in self.computation.instructions if i.shape == shape]
        if fitting and self.rng.random() < self.reuse:
            return self.pick(fitting)
        return self.parameter(shape)

    def parameter(self, shape: Shape) -> HloInstruction:
        number = len(self.computation.parameters)
        return self.add("parameter", shape, (), parameter_number=number)

    def constant(self, value: Any, dtype: DType) -> HloInstruction:
        literal = Literal.of(np.asarray(value, dtype.numpy))
        return self.add("constant", literal.shape, (), literal=literal)

    def add(
        self, opcode: str, shape: Shape, operands: Sequence[HloInstruction] = (), **attrs: Any
    ) -> HloInstruction:
        """Append an instruction to the computation and make it the root."""
        instruction = self.computation.add(HloInstruction(opcode, shape, operands, attrs))
        self.computation.root = instruction
        return instruction

    def region(
        self,
        name: str,
        parameters: Sequence[Shape],
        build: Callable[[ExampleGraph, list[HloInstruction]], HloInstruction],
    ) -> HloComputation:
        """A computation for to_apply, body, branches, ...; `build` gives its root."""
        outer, self.computation = self.computation, self.module.add_computation(name)
        region = self.computation
        arguments = [self.parameter(shape) for shape in parameters]
        region.root = build(self, arguments)
        self.computation = outer
        return region

    def binary_region(self, opcode: str, dtype: DType) -> HloComputation:
        """(a, b) -> opcode(a, b) on scalars of `dtype`."""
        shape = Shape(dtype)
        return self.region(opcode, [shape, shape], lambda g, args: g.add(opcode, shape, args))
