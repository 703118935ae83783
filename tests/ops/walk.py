"""What the op tests share: random examples of rows, and random arguments for them."""

from __future__ import annotations

import numpy as np

from haloc import interpreter
from haloc.interpreter import HostTransfers
from haloc.ir.literal import Value
from haloc.ir.shape import Shape
from haloc.ops.basic import random_array
from haloc.ops.example import ExampleGraph
from haloc.ops.table import OPS

OPCODES = sorted(OPS)


def example(opcode: str, seed: int) -> ExampleGraph:
    """A graph whose root is a random instance of the op."""
    graph = ExampleGraph(np.random.default_rng([seed, len(opcode), ord(opcode[0])]))
    root = OPS[opcode].example(graph)
    graph.computation.root = root
    return graph


def arguments(graph: ExampleGraph) -> list[Value]:
    """Random values for the graph's parameters."""
    return [random_value(graph, p.shape) for p in graph.computation.parameters]


def run_example(graph: ExampleGraph, given: list[Value]) -> Value:
    """The root's value in the interpreter, with a host that feeds infeed random numbers."""
    host = HostTransfers(timeout_s=1)
    for instruction in graph.computation.instructions:
        if instruction.opcode == "infeed":
            host.transfer_to_infeed(random_value(graph, instruction.shape.elements[0]))
    return interpreter.run(graph.module, given, host=host)


def random_value(graph: ExampleGraph, shape: Shape) -> Value:
    if shape.is_tuple:
        return tuple(random_value(graph, e) for e in shape.elements)
    return random_array(graph, shape.dtype, shape.dims) if shape.is_array else None


def leaves(value: Value) -> list[np.ndarray]:
    """The arrays in a value, tokens left out."""
    if isinstance(value, tuple):
        return [leaf for v in value for leaf in leaves(v)]
    return [] if value is None else [value]
