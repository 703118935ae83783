"""`CompiledMemoryStats`: what a compiled program needs, in bytes that are really allocated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial

from haloc.analysis.memory import output_size_bytes
from haloc.runtime.backend import Program
from haloc.runtime.buffer_assignment import serialized_buffer_assignment


@dataclass
class CompiledMemoryStats:
    """jaxlib's fields. Arguments and outputs as haloc stores them (a 4-bit element takes a byte);
    an output tuple counts 8 bytes a member, as in XLA; temp is the scratch memory of one run."""

    generated_code_size_in_bytes: int = 0
    argument_size_in_bytes: int = 0
    output_size_in_bytes: int = 0
    alias_size_in_bytes: int = 0
    temp_size_in_bytes: int = 0
    host_generated_code_size_in_bytes: int = 0
    host_argument_size_in_bytes: int = 0
    host_output_size_in_bytes: int = 0
    host_alias_size_in_bytes: int = 0
    host_temp_size_in_bytes: int = 0
    _assignment: Callable[[], bytes] = field(default=bytes, repr=False, compare=False)

    @property
    def peak_memory_in_bytes(self) -> int:
        """Arguments, outputs and scratch together, donated memory once."""
        both = self.argument_size_in_bytes + self.output_size_in_bytes
        return both + self.temp_size_in_bytes - self.alias_size_in_bytes

    @property
    def serialized_buffer_assignment_proto(self) -> bytes:
        """A BufferAssignmentProto; see `serialized_buffer_assignment`."""
        return self._assignment()

    def __str__(self) -> str:
        shown = [f.name for f in fields(self) if f.repr]
        listed = ", ".join(f"{name}={getattr(self, name)}" for name in shown)
        return f"CompiledMemoryStats({listed})"


def compiled_memory_stats(program: Program) -> CompiledMemoryStats:
    return CompiledMemoryStats(
        generated_code_size_in_bytes=program.code_size_bytes,
        argument_size_in_bytes=sum(s.byte_size for s in program.parameters),
        output_size_in_bytes=output_size_bytes(program.result_shape),
        alias_size_in_bytes=sum(program.results[r].byte_size for r in program.aliases),
        temp_size_in_bytes=program.arena_bytes,
        _assignment=partial(serialized_buffer_assignment, program),
    )
