"""Random modules, grown from the op rows' examples.

`random_module(seed)` appends 5 to 40 random instances of ops to one graph. They take one another's
results where these fit, so that graphs grow deep: a module keeps to a few element types and to
dimensions it has already. Now and then the ops of a stretch are put in a computation of their own,
and run by a call, a conditional or a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from haloc.ir.dtype import PRED, S32, DType
from haloc.ir.literal import Value
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.basic import random_array
from haloc.ops.example import ExampleGraph
from haloc.ops.table import OPS, Effect


def _is_pure(opcode: str) -> bool:
    """Whether the op, and all that its examples hold beside it, goes by its operands alone."""
    graph = ExampleGraph(np.random.default_rng(0))
    OPS[opcode].example(graph)
    return all(OPS[i.opcode].effect is Effect.PURE for i in graph.computation.instructions)


OPCODES = sorted(o for o in OPS if _is_pure(o))
"""What modules are made of: pure ops. Others have no one right value (rng) or no value (tokens)."""

INNER = sorted(
    o for o in OPCODES if OPS[o].is_elementwise or o in ("reduce", "dot", "broadcast", "slice")
)
"""What computations that are called are made of."""

LONG = (1, 2, 7, 8, 15, 16, 17, 33, 64, 100, 130)
"""Sizes around the widths of vectors and blocks."""


class FuzzGraph(ExampleGraph):
    """An `ExampleGraph` that likes its own element types and dimensions best."""

    def __init__(self, rng: np.random.Generator):
        super().__init__(rng, reuse=float(rng.uniform(0.5, 0.95)), name="fuzz")
        self.palette: set[DType] = set()
        self.affinity = float(rng.uniform(0.3, 0.9))
        self.longs = float(rng.choice([0.0, 0.2, 0.6]))

    def pick(self, choices: Sequence[Any]) -> Any:
        if self.palette and all(isinstance(c, DType) for c in choices):
            liked = [c for c in choices if c in self.palette]
            if liked and self.rng.random() < self.affinity:
                return liked[int(self.rng.integers(len(liked)))]
        choice = super().pick(choices)
        if isinstance(choice, DType) and len(self.palette) < 3:
            self.palette.add(choice)
        return choice

    def dims(self, low: int = 0, high: int = 4, size: int = 5) -> tuple[int, ...]:
        if self.rng.random() < self.affinity:
            known = {i.shape.dims for i in self.computation.instructions if i.shape.is_array}
            fitting = sorted(d for d in known if low <= len(d) < high)
            if fitting:
                return fitting[int(self.rng.integers(len(fitting)))]
        dims = super().dims(low, high, size)
        if dims and self.rng.random() < self.longs:
            at = int(self.rng.choice([len(dims) - 1, self.rng.integers(len(dims))]))
            dims = (*dims[:at], int(self.rng.choice(LONG)), *dims[at + 1 :])
        return dims


def random_module(seed: int) -> HloModule:
    """A module whose root is a tuple of some of its values; the same for the same seed."""
    rng = np.random.default_rng(seed)
    graph = FuzzGraph(rng)
    size = int(rng.integers(5, 41))
    values: list[HloInstruction] = []
    while len(values) < size:
        if rng.random() < 0.06:
            values += _CONTROL[int(rng.integers(len(_CONTROL)))](graph)
        else:
            values.append(OPS[_opcode(rng, OPCODES)].example(graph))
    arrays = [i for i in graph.computation.instructions if i.shape.is_array]
    wanted = [v for v in values if _has_arrays(v.shape)] or arrays or [graph.constant(0, S32)]
    keep = float(rng.uniform(0.1, 0.5))
    results = [v for v in wanted if rng.random() < keep] or wanted[-1:]
    graph.add("tuple", tuple_shape(*(r.shape for r in results)), results)
    return graph.module


def random_arguments(module: HloModule, seed: int) -> list[Value]:
    """Tame numbers: floats of normal size, small integers, so that a deep graph stays finite."""
    graph = ExampleGraph(np.random.default_rng([seed, 1]))

    def value(shape: Shape) -> Value:
        if shape.is_tuple:
            return tuple(map(value, shape.elements))
        return random_array(graph, shape.dtype, shape.dims) if shape.is_array else None

    return [value(p.shape) for p in module.entry.parameters]


def _opcode(rng: np.random.Generator, among: list[str]) -> str:
    return among[int(rng.integers(len(among)))]


def _has_arrays(shape: Shape) -> bool:
    return all(s.is_array for s in shape.leaves()) and bool(shape.leaves())


# --- Computations of random ops ----------------------------------------------------------------


def _random_region(graph: FuzzGraph, name: str, count: int) -> tuple[HloComputation, list[Shape]]:
    """(a computation of `count` random ops, its last array the root; its parameters' shapes)."""
    outer, graph.computation = graph.computation, graph.module.add_computation(name)
    region = graph.computation
    for _ in range(count):
        OPS[_opcode(graph.rng, INNER)].example(graph)
    region.root = [i for i in region.instructions if i.shape.is_array][-1]
    graph.computation = outer
    return region, [p.shape for p in region.parameters]


def _pack_parameters(region: HloComputation, shape: Shape, first: int = 0) -> HloInstruction:
    """Make the parameters of a region members, from number `first` on, of one tuple parameter."""
    packed = HloInstruction("parameter", shape, (), {"parameter_number": 0}, "state")
    for parameter in region.parameters:
        number = first + parameter.attrs["parameter_number"]
        parameter.replace("get-tuple-element", (), attrs={"index": number})
    inner = [i for i in region.instructions if i.opcode == "get-tuple-element" and not i.operands]
    region.add(packed)
    for member in inner:
        member.set_operands([packed])
    for old in region.instructions:
        if old.opcode == "parameter" and old is not packed:
            region.remove(old)
    region.sort()
    return packed


def _random_call(graph: FuzzGraph) -> list[HloInstruction]:
    region, shapes = _random_region(graph, "called", int(graph.rng.integers(1, 8)))
    operands = [graph.operand(s.dtype, s.dims) for s in shapes]
    opcode = graph.pick(["call", "call", "fusion"])
    attrs = {"calls": region, "kind": "kLoop"} if opcode == "fusion" else {"to_apply": region}
    return [graph.add(opcode, region.root.shape, operands, **attrs)]


def _random_conditional(graph: FuzzGraph) -> list[HloInstruction]:
    """Branches of different operands; each gives a value of the first branch's result shape."""
    branches: list[HloComputation] = []
    operands: list[HloInstruction] = []
    result: Shape | None = None
    for _ in range(int(graph.rng.integers(1, 4))):
        region, shapes = _random_region(graph, "branch", int(graph.rng.integers(1, 6)))
        result = result or region.root.shape
        if region.root.shape != result:
            outer, graph.computation = graph.computation, region
            region.root = graph.operand(result.dtype, result.dims)
            graph.computation = outer
            shapes = [p.shape for p in region.parameters]
        _pack_parameters(region, tuple_shape(*shapes))
        members = [graph.operand(s.dtype, s.dims) for s in shapes]
        operands.append(graph.add("tuple", tuple_shape(*shapes), members))
        branches.append(region)
    assert result is not None
    index = graph.operand(S32)
    attrs: dict[str, Any] = {"branch_computations": tuple(branches)}
    if len(branches) == 2 and graph.rng.random() < 0.5:
        index = graph.operand(PRED)
        attrs = {"true_computation": branches[0], "false_computation": branches[1]}
    return [graph.add("conditional", result, (index, *operands), **attrs)]


def _random_while(graph: FuzzGraph) -> list[HloInstruction]:
    """A counted loop; its body replaces each member of the state by some value of that shape."""
    body, shapes = _random_region(graph, "body", int(graph.rng.integers(1, 8)))
    counter = Shape(S32)
    state = tuple_shape(counter, *shapes)
    packed = _pack_parameters(body, state, 1)
    outer, graph.computation = graph.computation, body
    computed = [i for i in body.instructions if i is not packed]
    number = graph.add("get-tuple-element", counter, (packed,), index=0)
    members = [graph.add("add", counter, (number, graph.constant(1, S32)))]
    for k, shape in enumerate(shapes):
        fitting = [i for i in computed if i.shape == shape]
        same = graph.add("get-tuple-element", shape, (packed,), index=k + 1)
        members.append(graph.pick([same, *fitting]))
    graph.add("tuple", state, members)
    graph.computation = outer
    limit = int(graph.rng.integers(0, 4))

    def condition(g: ExampleGraph, args: list[HloInstruction]) -> HloInstruction:
        i = g.add("get-tuple-element", counter, args, index=0)
        return g.add("compare", Shape(PRED), (i, g.constant(limit, S32)), direction="LT")

    region = graph.region("condition", [state], condition)
    start = [graph.constant(0, S32), *(graph.operand(s.dtype, s.dims) for s in shapes)]
    init = graph.add("tuple", state, start)
    loop = graph.add("while", state, (init,), condition=region, body=body)
    return [
        graph.add("get-tuple-element", s, (loop,), index=k) for k, s in enumerate(state.elements)
    ]


_CONTROL = (_random_call, _random_conditional, _random_while)
