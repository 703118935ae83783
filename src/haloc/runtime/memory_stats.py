"""`CompiledMemoryStats`: what a compiled program needs, in bytes that are really allocated."""

from __future__ import annotations

from dataclasses import dataclass, fields

from haloc.analysis.memory import output_size_bytes
from haloc.runtime.backend import Program


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

    @property
    def peak_memory_in_bytes(self) -> int:
        """Arguments, outputs and scratch together, donated memory once."""
        both = self.argument_size_in_bytes + self.output_size_in_bytes
        return both + self.temp_size_in_bytes - self.alias_size_in_bytes

    def __str__(self) -> str:
        listed = ", ".join(f"{f.name}={getattr(self, f.name)}" for f in fields(self))
        return f"CompiledMemoryStats({listed})"


def compiled_memory_stats(program: Program) -> CompiledMemoryStats:
    return CompiledMemoryStats(
        generated_code_size_in_bytes=program.code_size_bytes,
        argument_size_in_bytes=sum(s.byte_size for s in program.parameters),
        output_size_in_bytes=output_size_bytes(program.result_shape),
        alias_size_in_bytes=sum(program.results[r].byte_size for r in program.aliases),
        temp_size_in_bytes=program.arena_bytes,
    )
