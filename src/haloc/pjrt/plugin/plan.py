"""What native execution needs to know of a program."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from haloc.analysis.memory import packed_size_bytes
from haloc.ir.shape import Shape
from haloc.pjrt.abi import buffer_type_of
from haloc.pjrt.abi.memory import int64s
from haloc.pjrt.native.execute import Plan, PlanResult
from haloc.pjrt.native.handles import Handle
from haloc.pjrt.native.library import library


class NativePlan:
    """A `Plan` and the memory it points to. The program must outlive it."""

    def __init__(self, program: Any, device: Handle, memories: Sequence[Handle]):
        self._results = (PlanResult * max(1, len(program.results)))()
        self._dims = [int64s(s.dims) for s in program.results]
        for number, (result, shape) in enumerate(zip(self._results, program.results)):
            _fill(result, shape, self._dims[number], program.aliases.get(number, -1))
            result.memory = memories[number].address
        taken = set(program.aliases.values())
        count = len(program.parameters)
        self._taken = int64s([int(n in taken) for n in range(count)])
        self._sizes = int64s([s.byte_size for s in program.parameters])
        scratch = program.arena_bytes
        self.struct = Plan(
            function=program.function_pointer,
            constants=program.constants_pointer,
            arena_class=library().call("heap_class", scratch) if scratch else 0,
            num_args=count,
            num_outputs=len(program.results),
            argument_bytes=ctypes.addressof(self._sizes),
            taken=ctypes.addressof(self._taken),
            takes=len(taken),
            results=ctypes.addressof(self._results),
            device=device.address,
        )


def native_plan(
    program: Any, devices: Sequence[Handle], memories: Sequence[Sequence[Handle]]
) -> NativePlan | None:
    """The plan of a program for one device that runs by its pointers alone, else None.

    memories: where the results lie, by device.
    """
    shapes = [*program.parameters, *program.results]
    if len(devices) != 1 or program.uses_run or not all(s.is_array for s in shapes):
        return None
    return NativePlan(program, devices[0], memories[0])


def _fill(result: PlanResult, shape: Shape, dims: Any, source: int) -> None:
    result.type = buffer_type_of(shape.dtype)
    result.rank, result.dims = shape.rank, ctypes.addressof(dims)
    result.nbytes = shape.byte_size
    result.packed = packed_size_bytes(shape.dtype, shape.element_count)
    result.source = source
