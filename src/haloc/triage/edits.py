"""What can be taken out of a program: edits, each of which gives smaller candidates.

A candidate is a copy of the module with the arguments it takes. It may be wrong (shapes that no
longer fit): the reducer verifies it. Edits start with large steps and end with single ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from haloc import interpreter
from haloc.ir.literal import Literal, Value
from haloc.ir.module import HloComputation, HloInstruction, HloModule
from haloc.ir.shape import Shape, tuple_shape
from haloc.ops.table import OPS, REQUIRED
from haloc.passes.dce import dce
from haloc.passes.driver import PASSES
from haloc.triage.engine import random_values


@dataclass(frozen=True, slots=True)
class Program:
    """A module and arguments of its entry's parameters' shapes."""

    module: HloModule
    arguments: list[Value]

    @property
    def size(self) -> tuple[int, int, int]:
        """What reducing makes smaller: operations, then elements, then what is written about them.

        Parameters, constants and constants spread out are no operations.
        """
        instructions = [i for c in self.module.computations.values() for i in c.instructions]
        operations = sum(not _is_source(i) and not _is_spread(i) for i in instructions)
        elements = sum(s.element_count for i in instructions for s in _arrays(i.shape))
        written = sum(_annotations(i) for i in instructions) + len(self.module.header)
        return operations, elements, written + sum(map(_is_source, instructions))


Edit = Callable[[Program], Iterator[Program]]


def copied(program: Program) -> Program:
    """To be changed."""
    return Program(program.module.clone(), list(program.arguments))


def cleaned(program: Program) -> Program:
    """Without dead code and the parameters that nothing uses; changes the program given."""
    module = program.module
    _forget_interface(module)
    module.sort()
    dce(module)
    entry = module.entry
    kept = [p for p in entry.parameters if p.users or p.is_root]
    given = [program.arguments[p.attrs["parameter_number"]] for p in kept]
    for parameter in entry.parameters:
        if parameter not in kept:
            entry.remove(parameter)
    for number, parameter in enumerate(kept):
        parameter.attrs["parameter_number"] = number
    return Program(module, given)


def _forget_interface(module: HloModule) -> None:
    """Drop what the header says of parameters and results, where these have changed."""
    layout = module.header.get("entry_computation_layout")
    shapes = tuple(p.shape for p in module.entry.parameters), module.entry.root.shape
    if layout is not None and (tuple(layout[0]), layout[1]) != shapes:
        for key in ("entry_computation_layout", "input_output_alias", "buffer_donor"):
            module.header.pop(key, None)
    module.header.pop("is_scheduled", None)


# --- Roots -------------------------------------------------------------------------------------


def earlier_roots(program: Program) -> Iterator[Program]:
    """The program cut off after some of its instructions; what is unused there is its result."""
    for length in _cuts(len(program.module.entry)):
        yield from _cut(program, length)


def with_open_ends(program: Program) -> Program:
    """With dead code for a result, too: nothing else is lost when dead code is."""
    return next(_cut(program, len(program.module.entry)), program)


def _cut(program: Program, length: int) -> Iterator[Program]:
    smaller = copied(program)
    first = smaller.module.entry.instructions[:length]
    inside = set(first)
    open_ends = [i for i in first if not (inside & i.users.keys()) and i.shape.leaves()]
    if open_ends:
        _set_result(smaller.module, open_ends)
        yield cleaned(smaller)


def fewer_results(program: Program) -> Iterator[Program]:
    """Some of the root's operands for a result: halves, quarters, ..., single ones."""
    operands = program.module.entry.root.operands
    for chosen in _chunks(len(operands)):
        smaller = copied(program)
        ends = smaller.module.entry.root.operands[chosen]
        if ends:
            _set_result(smaller.module, list(dict.fromkeys(ends)))
            yield cleaned(smaller)


def _set_result(module: HloModule, ends: Sequence[HloInstruction]) -> None:
    entry = module.entry
    if len(ends) == 1:
        entry.root = ends[0]
        return
    shapes = [i.shape for i in ends]
    entry.root = entry.add(HloInstruction("tuple", tuple_shape(*shapes), ends))


# --- Instructions ------------------------------------------------------------------------------


VALUES_S = 10.0


def to_parameters(program: Program) -> Iterator[Program]:
    """Runs of the entry's instructions given from outside, with the values they have."""
    values = _values(program)
    entry = program.module.entry
    places = [n for n, i in enumerate(entry.instructions) if _can_be_given(i)]
    for chosen in _chunks(len(places)):
        smaller = copied(program)
        instructions = smaller.module.entry.instructions
        for place in places[chosen]:
            old = instructions[place]
            number = len(smaller.arguments)
            old.replace("parameter", (), attrs={"parameter_number": number})
            smaller.arguments.append(values[old.name])
        yield cleaned(smaller)


def _values(program: Program) -> dict[str, Value]:
    """What each instruction of the entry gives; random values where the interpreter fails, or is
    not done in VALUES_S: an edit may have made a loop that never ends."""
    found: dict[str, Value] = {}
    deadline = time.monotonic() + VALUES_S

    def keep(instruction: HloInstruction, value: Value) -> None:
        found[instruction.name] = value
        if time.monotonic() > deadline:
            raise TimeoutError

    try:
        with np.errstate(all="ignore"):
            interpreter.run(program.module, program.arguments, on_value=keep)
    except Exception:  # whatever it is: the program under test is broken
        found = {}
    missing = [i for i in program.module.entry.instructions if i.name not in found]
    return found | dict(
        zip((i.name for i in missing), random_values([i.shape for i in missing], 0), strict=True)
    )


def bypassed(program: Program) -> Iterator[Program]:
    """One instruction, of any computation, replaced by an operand of its shape."""
    for c, n, instruction in _numbered(program.module):
        operands = dict.fromkeys(instruction.operands)
        for operand in operands:
            if operand.shape.compatible(instruction.shape):
                smaller = copied(program)
                new = _at(smaller.module, c, n)
                new.replace_uses_with(new.operands[instruction.operands.index(operand)])
                yield cleaned(smaller)


def to_zeros(program: Program) -> Iterator[Program]:
    """One operation, of any computation, replaced by a constant: zeros."""
    for c, n, instruction in _numbered(program.module):
        shape = instruction.shape
        if not shape.is_array or _is_source(instruction) or _is_spread(instruction):
            continue
        smaller = copied(program)
        old = _at(smaller.module, c, n)
        scalar = Shape(shape.dtype)
        zero = Literal(scalar, np.zeros((), shape.dtype.numpy))
        if not shape.dims:
            old.replace("constant", (), attrs={"literal": zero})
        else:
            constant = old.computation.add(
                HloInstruction("constant", scalar, (), {"literal": zero}), before=old
            )
            old.replace("broadcast", (constant,), attrs={"dimensions": ()})
        yield cleaned(smaller)


def inlined(program: Program) -> Iterator[Program]:
    """Calls and fusions replaced by what they run."""
    for name in ("call-inliner", "defuser"):
        smaller = copied(program)
        if PASSES[name].run(smaller.module):
            yield cleaned(smaller)


# --- Shapes ------------------------------------------------------------------------------------

_SIZES = ("slice", "slice_sizes", "dynamic_slice_sizes")
"""Attributes that hold sizes of dimensions."""


def shrunk(program: Program) -> Iterator[Program]:
    """Every dimension of one size made smaller, wherever it stands: 1, half, one less."""
    shapes = [s for i in program.module.instructions() for s in _arrays(i.shape)]
    sizes = sorted({d for s in shapes for d in s.dims if d > 1}, reverse=True)
    for old in sizes:
        for new in dict.fromkeys((1, old // 2, old - 1)):
            if 0 < new < old:
                yield _resized(program, old, new)


def _resized(program: Program, old: int, new: int) -> Program:
    smaller = copied(program)
    for instruction in [i for c in smaller.module.computations.values() for i in c.instructions]:
        instruction.shape = _resized_shape(instruction.shape, old, new)
        for key in _SIZES:
            if key in instruction.attrs:
                instruction.attrs[key] = _resized_numbers(instruction.attrs[key], old, new)
        literal = instruction.attrs.get("literal")
        if literal is not None:
            value = _resized_value(literal.value, old, new)
            instruction.attrs["literal"] = Literal(instruction.shape, value)
    arguments = [_resized_value(a, old, new) for a in smaller.arguments]
    return cleaned(Program(smaller.module, arguments))


def _resized_shape(shape: Shape, old: int, new: int) -> Shape:
    if shape.is_tuple:
        return tuple_shape(*(_resized_shape(e, old, new) for e in shape.elements))
    if not shape.is_array or old not in shape.dims:
        return shape
    return Shape(shape.dtype, tuple(new if d == old else d for d in shape.dims))


def _resized_numbers(value: Any, old: int, new: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_resized_numbers(v, old, new) for v in value)
    return new if value == old else value


def _resized_value(value: Value, old: int, new: int) -> Value:
    if isinstance(value, tuple):
        return tuple(_resized_value(v, old, new) for v in value)
    if value is None:
        return None
    return value[tuple(slice(new if d == old else d) for d in value.shape)].copy()


# --- What is written about instructions --------------------------------------------------------


def plainer(program: Program) -> Iterator[Program]:
    """Without annotations, header entries and attributes that may be left out."""
    smaller = copied(program)
    for instruction in smaller.module.instructions():
        _strip(instruction)
    smaller.module.header.clear()
    smaller.module.tables.clear()
    yield cleaned(smaller)
    for c, n, instruction in _numbered(program.module):
        if _annotations(instruction):
            smaller = copied(program)
            _strip(_at(smaller.module, c, n))
            yield cleaned(smaller)
    for key in program.module.header:
        smaller = copied(program)
        del smaller.module.header[key]
        yield cleaned(smaller)


def _strip(instruction: HloInstruction) -> None:
    instruction.metadata = {}
    instruction.sharding = None
    instruction.frontend_attributes = {}
    instruction.backend_config = ""
    instruction.control_predecessors = ()
    instruction.origin = ""
    instruction.proto_extra = b""
    for key in _optional(instruction):
        del instruction.attrs[key]


def _optional(instruction: HloInstruction) -> list[str]:
    """Attributes that are written although they have a default."""
    defaults = OPS[instruction.opcode].attr_defaults
    return [
        key
        for key, value in instruction.attrs.items()
        if defaults.get(key, REQUIRED) is not REQUIRED and not isinstance(value, HloComputation)
    ]


def _annotations(instruction: HloInstruction) -> int:
    kinds = (
        instruction.metadata,
        instruction.sharding,
        instruction.frontend_attributes,
        instruction.backend_config,
        instruction.control_predecessors,
        instruction.origin,
        instruction.proto_extra,
    )
    return sum(map(bool, kinds)) + len(_optional(instruction))


CONSTANT_ELEMENTS = 16
"""Parameters of more elements stay parameters."""


def to_constants(program: Program) -> Iterator[Program]:
    """Small parameters of the entry as constants with their values: all, then one at a time."""
    small = [
        p.attrs["parameter_number"]
        for p in program.module.entry.parameters
        if p.shape.is_array and p.shape.element_count <= CONSTANT_ELEMENTS
    ]
    for chosen in _chunks(len(small)):
        smaller = copied(program)
        parameters = smaller.module.entry.parameters
        for number in small[chosen]:
            old = parameters[number]
            literal = Literal(old.shape, np.asarray(smaller.arguments[number]))
            old.replace("constant", (), attrs={"literal": literal})
        yield cleaned(smaller)


EDITS: tuple[Edit, ...] = (
    earlier_roots,
    fewer_results,
    inlined,
    to_parameters,
    bypassed,
    to_zeros,
    shrunk,
    plainer,
)
"""In the order in which they are tried. `to_constants` is for the end: it makes nothing smaller."""


def _cuts(count: int) -> Iterator[int]:
    """Lengths to try, shortest first: 1/16, 1/8, 1/4, 1/2, 3/4, ... and the last few in full."""
    fractions = (count * k // 16 for k in range(1, 16))
    yield from dict.fromkeys(n for n in (*fractions, count - 2, count - 1) if 0 < n < count)


def _chunks(count: int) -> Iterator[slice]:
    """All, halves, quarters, ..., single ones; from the end, where less depends on them."""
    size = count
    while size:
        for end in range(count, 0, -size):
            yield slice(max(0, end - size), end)
        size //= 2


def _numbered(module: HloModule) -> list[tuple[str, int, HloInstruction]]:
    """(computation, place, instruction) of all, last first."""
    found = [
        (c.name, n, i) for c in module.computations.values() for n, i in enumerate(c.instructions)
    ]
    return found[::-1]


def _at(module: HloModule, computation: str, place: int) -> HloInstruction:
    return module.computations[computation].instructions[place]


def _is_source(instruction: HloInstruction) -> bool:
    return instruction.opcode in ("parameter", "constant")


def _is_spread(instruction: HloInstruction) -> bool:
    return instruction.opcode == "broadcast" and instruction.operands[0].opcode == "constant"


def _can_be_given(instruction: HloInstruction) -> bool:
    return instruction.shape.is_array and not _is_source(instruction) and not instruction.is_root


def _arrays(shape: Shape) -> Iterator[Shape]:
    return (s for s in shape.leaves() if s.is_array)
