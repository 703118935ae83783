"""What `Expand` rows write their replacements with: instructions added beside a given one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from haloc.errors import InternalError
from haloc.ir.dtype import PRED, S32, DType
from haloc.ir.literal import Literal
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape, tuple_shape


class Beside:
    """Adds instructions to the computation of `instruction`, in front of it.

    Binary methods take operands of one shape. The caller's pass restores operand order with
    `module.sort()`.
    """

    def __init__(self, instruction: HloInstruction):
        self.instruction = instruction
        self.computation = instruction.computation

    @property
    def module(self) -> HloModule:
        if self.computation.module is None:
            raise InternalError(f"computation {self.computation.name!r} is in no module")
        return self.computation.module

    def add(
        self, opcode: str, shape: Shape, operands: Sequence[HloInstruction] = (), **attrs: Any
    ) -> HloInstruction:
        new = HloInstruction(opcode, shape, operands, attrs)
        new.metadata = self.instruction.metadata
        return self.computation.add(new, before=self.instruction)

    def constant(self, value: Any, dtype: DType) -> HloInstruction:
        literal = Literal.of(np.asarray(value).astype(dtype.numpy))
        return self.add("constant", literal.shape, (), literal=literal)

    def full(self, value: Any, shape: Shape) -> HloInstruction:
        """`value` everywhere in `shape`."""
        scalar = self.constant(value, shape.dtype)
        return scalar if not shape.dims else self.broadcast(scalar, shape.dims, ())

    def like(self, x: HloInstruction, value: Any) -> HloInstruction:
        return self.full(value, x.shape)

    def broadcast(
        self, x: HloInstruction, dims: Sequence[int], dimensions: Sequence[int]
    ) -> HloInstruction:
        """x's dimension i becomes dimension dimensions[i] of the result."""
        shape = x.shape.with_dims(tuple(dims))
        return self.add("broadcast", shape, (x,), dimensions=tuple(dimensions))

    def unary(self, opcode: str, x: HloInstruction) -> HloInstruction:
        return self.add(opcode, x.shape.with_default_layout(), (x,))

    def binary(self, opcode: str, x: HloInstruction, y: HloInstruction) -> HloInstruction:
        return self.add(opcode, x.shape.with_default_layout(), (x, y))

    def compare(self, x: HloInstruction, y: HloInstruction, direction: str) -> HloInstruction:
        return self.add("compare", Shape(PRED, x.shape.dims), (x, y), direction=direction)

    def select(
        self, pred: HloInstruction, on_true: HloInstruction, on_false: HloInstruction
    ) -> HloInstruction:
        return self.add("select", on_true.shape, (pred, on_true, on_false))

    def convert(self, x: HloInstruction, dtype: DType) -> HloInstruction:
        return x if x.shape.dtype is dtype else self.add("convert", x.shape.with_dtype(dtype), (x,))

    def bitcast_convert(self, x: HloInstruction, shape: Shape) -> HloInstruction:
        return self.add("bitcast-convert", shape, (x,))

    def reshape(self, x: HloInstruction, dims: Sequence[int]) -> HloInstruction:
        dims = tuple(dims)
        return x if x.shape.dims == dims else self.add("reshape", x.shape.with_dims(dims), (x,))

    def slice(self, x: HloInstruction, *ranges: tuple[int, int, int]) -> HloInstruction:
        """ranges: (start, limit, stride) a dimension."""
        dims = tuple(max(0, -(-(limit - start) // stride)) for start, limit, stride in ranges)
        return self.add("slice", x.shape.with_dims(dims), (x,), slice=ranges)

    def concatenate(self, parts: Sequence[HloInstruction], dimension: int) -> HloInstruction:
        dims = list(parts[0].shape.dims)
        dims[dimension] = sum(p.shape.dims[dimension] for p in parts)
        shape = parts[0].shape.with_dims(tuple(dims))
        return self.add("concatenate", shape, parts, dimensions=dimension)

    def iota(self, dtype: DType, dims: Sequence[int], dimension: int) -> HloInstruction:
        return self.add("iota", Shape(dtype, tuple(dims)), (), iota_dimension=dimension)

    def tuple(self, *members: HloInstruction) -> HloInstruction:
        return self.add("tuple", tuple_shape(*(m.shape for m in members)), members)

    def element(self, x: HloInstruction, index: int) -> HloInstruction:
        return self.add("get-tuple-element", x.shape.elements[index], (x,), index=index)

    def elements(self, x: HloInstruction) -> list[HloInstruction]:
        return [self.element(x, n) for n in range(len(x.shape.elements))]

    def reduce(
        self, opcode: str, x: HloInstruction, init: Any, dimensions: Sequence[int]
    ) -> HloInstruction:
        """Fold `dimensions` of x with a binary opcode."""
        kept = tuple(s for d, s in enumerate(x.shape.dims) if d not in dimensions)
        scalar = Shape(x.shape.dtype)
        region = self.region(opcode, [scalar, scalar], lambda add, args: add(opcode, scalar, args))
        zero = self.constant(init, x.shape.dtype)
        shape = x.shape.with_dims(kept)
        return self.add("reduce", shape, (x, zero), dimensions=tuple(dimensions), to_apply=region)

    def loop(
        self,
        count: int,
        state: Sequence[HloInstruction],
        step: Callable[[Beside, HloInstruction, list[HloInstruction]], list[HloInstruction]],
    ) -> list[HloInstruction]:
        """`state` after `count` steps. step(inside, i, state) gives the state after step i, an
        s32[], in instructions added to the loop's body by `inside`, which may take i < count."""
        if not count:
            return list(state)
        counter, pred = Shape(S32), Shape(PRED)
        start = self.tuple(self.constant(0, S32), *state)

        def condition(inside: Beside, whole: HloInstruction) -> HloInstruction:
            i = inside.element(whole, 0)
            return inside.add("compare", pred, (i, inside.constant(count, S32)), direction="LT")

        def body(inside: Beside, whole: HloInstruction) -> HloInstruction:
            i, *members = inside.elements(whole)
            after = step(inside, i, members)
            return inside.tuple(inside.add("add", counter, (i, inside.constant(1, S32))), *after)

        regions = {}
        for name, build in (("condition", condition), ("body", body)):
            inside = _Inside(self.module.add_computation(name))
            whole = inside.add("parameter", start.shape, (), parameter_number=0)
            inside.computation.root = build(inside, whole)
            regions[name] = inside.computation
        return self.elements(self.add("while", start.shape, (start,), **regions))[1:]

    def region(
        self,
        name: str,
        parameters: Sequence[Shape],
        build: Callable[[Callable[..., HloInstruction], list[HloInstruction]], HloInstruction],
    ) -> HloComputation:
        """A new computation; `build(add, parameters)` adds its instructions and gives its root."""
        region = self.module.add_computation(name)

        def add(
            opcode: str, shape: Shape, operands: Sequence[HloInstruction] = (), **attrs: Any
        ) -> HloInstruction:
            return region.add(HloInstruction(opcode, shape, operands, attrs))

        arguments = [
            add("parameter", shape, (), parameter_number=n) for n, shape in enumerate(parameters)
        ]
        region.root = build(add, arguments)
        return region


class _Inside(Beside):
    """The same at the end of `computation`."""

    def __init__(self, computation: HloComputation):
        self.computation = computation

    def add(
        self, opcode: str, shape: Shape, operands: Sequence[HloInstruction] = (), **attrs: Any
    ) -> HloInstruction:
        return self.computation.add(HloInstruction(opcode, shape, operands, attrs))
