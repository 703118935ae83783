"""What memory a run of a program takes, block by block, also as XLA's BufferAssignmentProto."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from haloc.formats.hlo_proto.writer import module_to_proto
from haloc.formats.proto import Message, decode, encode
from haloc.ir.shape import Shape
from haloc.runtime.backend import Program

Index = tuple[int, ...]
"""Of a leaf in a tuple shape."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """A block of memory. parameter: (number, index) of the parameter's leaf that it holds. result:
    the index of the result's leaf. Both: of a donated argument that becomes a result. Neither: all
    constants, or, unless is_constant, all values in between, the arena. shape: of the leaf."""

    size_bytes: int
    parameter: tuple[int, Index] | None = None
    result: Index | None = None
    is_constant: bool = False
    shape: Shape | None = None

    def __str__(self) -> str:
        """As XLA's dumps describe it."""
        if self.shape is None:
            what = "constant" if self.is_constant else "preallocated-temp"
        elif self.parameter is None:
            what = f"output{_place(self.result)} shape is |{self.shape}|"
        else:
            number, index = self.parameter
            what = f"parameter {number}{_place(index)}, shape |{self.shape}|"
        out = "" if self.result is None else ", maybe-live-out"
        return f"size {self.size_bytes}, {what}{out}"


def _place(index: Index | None) -> str:
    return f" {{{','.join(map(str, index))}}}" if index else ""


def allocations(program: Program) -> list[Allocation]:
    """The blocks of one run that are not empty: arguments, results, constants, arena."""
    module = program.optimized
    parameters = [
        (shape, (number, index))
        for number, parameter in enumerate(module.entry.parameters)
        for shape, index in _leaves(parameter.shape)
    ]
    results = list(_leaves(program.result_shape))
    result_of = {parameter: result for result, parameter in program.aliases.items()}
    found = []
    for leaf, (shape, place) in enumerate(parameters):
        result = results[result_of[leaf]][1] if leaf in result_of else None
        found.append(Allocation(shape.byte_size, place, result, shape=shape))
    for leaf, (shape, index) in enumerate(results):
        if leaf not in program.aliases:
            found.append(Allocation(shape.byte_size, result=index, shape=shape))
    found.append(Allocation(program.constant_bytes, is_constant=True))
    found.append(Allocation(program.arena_bytes))
    return [a for a in found if a.size_bytes]


def _leaves(shape: Shape, index: Index = ()) -> Iterator[tuple[Shape, Index]]:
    if not shape.is_tuple:
        yield shape, index
        return
    for number, element in enumerate(shape.elements):
        yield from _leaves(element, (*index, number))


def serialized_buffer_assignment(program: Program) -> bytes:
    """A BufferAssignmentProto that refers to the instructions of the optimised module's proto.

    Its buffers are those of parameters and results. The arena is one allocation: which values it
    holds at which offsets is not said.
    """
    parameter_ids, root_id = _instruction_ids(program)
    buffers: list[Message] = []
    blocks: list[Message] = []
    for number, allocation in enumerate(allocations(program)):
        block: Message = {"index": number, "size": allocation.size_bytes, "assigned": []}
        defined: list[tuple[int, Index]] = []
        if allocation.parameter is not None:
            parameter, index = allocation.parameter
            block |= {"is_entry_computation_parameter": True, "parameter_number": parameter}
            block["parameter_shape_index"] = list(index)
            defined.append((parameter_ids[parameter], index))
        if allocation.result is not None:
            block["maybe_live_out"] = True
            defined.append((root_id, allocation.result))
        block["is_parameter_aliased_with_output"] = len(defined) == 2
        block["is_constant"] = allocation.is_constant
        for instruction, index in defined:
            size, buffer = allocation.size_bytes, len(buffers)
            location = {"instruction_id": instruction, "shape_index": list(index)}
            buffers.append({"id": buffer, "size": size, "defined_at": location})
            block["assigned"].append({"logical_buffer_id": buffer, "size": size})
        blocks.append(block)
    return encode(
        "BufferAssignmentProto", {"logical_buffers": buffers, "buffer_allocations": blocks}
    )


def _instruction_ids(program: Program) -> tuple[dict[int, int], int]:
    """({parameter number: id}, the root's id) in the entry of the module's proto."""
    entry = decode("HloComputationProto", module_to_proto(program.optimized)["computations"][-1])
    parameters = {
        i.get("parameter_number", 0): i["id"]
        for i in entry["instructions"]
        if i["opcode"] == "parameter"
    }
    return parameters, entry["root_id"]
