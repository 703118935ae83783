"""`Executable`: a compiled program, and what is known about it."""

from __future__ import annotations

import hashlib

from haloc.analysis.cost import cost_analysis
from haloc.formats.hlo_text import to_text
from haloc.ir.module import HloInstruction, HloModule
from haloc.ir.shape import Shape, default_layout
from haloc.runtime.compilation import Compilation
from haloc.runtime.hlo_module import XlaHloModule
from haloc.runtime.memory_stats import CompiledMemoryStats, compiled_memory_stats
from haloc.runtime.op_sharding import OpSharding, XlaHloSharding
from haloc.runtime.partitioned import leaf_shardings
from haloc.runtime.serialization import serialized
from haloc.runtime.xla_shape import PjRtLayout


class Executable:
    """A compiled program and what is known about it."""

    def __init__(self, compilation: Compilation):
        self._compilation = compilation
        self._program = compilation.program
        self._fingerprint = b""

    def hlo_modules(self) -> list[XlaHloModule]:
        """[the optimised module]."""
        return [XlaHloModule(self._program.optimized)]

    @property
    def fingerprint(self) -> bytes:
        """Decimal digits; equal for equal optimised programs, in any process."""
        if not self._fingerprint:
            text = to_text(self._program.optimized).encode()
            digest = hashlib.sha256(text).digest()[:16]
            self._fingerprint = str(int.from_bytes(digest, "little")).encode()
        return self._fingerprint

    def serialize(self) -> bytes:
        """For `Client.deserialize_executable`, in this process or another, on a CPU with the same
        features. The format is described in docs/executable-format.md."""
        return serialized(self._compilation, self.fingerprint)

    def get_output_memory_kinds(self) -> list[list[str]]:
        """The kinds of memory that the array leaves of the result lie in."""
        results = self._program.results
        kinds = memory_kinds(self._program.optimized, "out", len(results))
        return [[kind for kind, s in zip(kinds, results) if s.is_array]]

    def get_parameter_layouts(self) -> list[PjRtLayout]:
        """Those that `execute` wants of its arguments: of the leaves of the parameters."""
        return [_layout_of(s) for s in self._program.parameters]

    def get_output_layouts(self) -> list[PjRtLayout]:
        """Of the array leaves of the result."""
        return [_layout_of(s) for s in self._program.results if s.is_array]

    def get_parameter_shardings(self) -> list[OpSharding] | None:
        """How the array leaves of the parameters are spread over partitions; None if the program
        is for one, or says nothing."""
        return self._shardings(self._compilation.shards.entry.parameters)

    def get_output_shardings(self) -> list[OpSharding] | None:
        """How the array leaves of the result are spread over partitions; None likewise."""
        return self._shardings([self._compilation.shards.entry.root])

    def _shardings(self, instructions: list[HloInstruction]) -> list[OpSharding] | None:
        if self._compilation.num_partitions == 1:
            return None
        found = leaf_shardings(instructions)
        return found and [XlaHloSharding(s).to_proto() for s in found]

    def get_compiled_memory_stats(self) -> CompiledMemoryStats:
        return compiled_memory_stats(self._program)

    def cost_analysis(self) -> dict[str, float]:
        """XLA's cost properties of the optimised module: "flops", "bytes accessed", ..."""
        return cost_analysis(self._program.optimized)

    def size_of_generated_code_in_bytes(self) -> int:
        return self._program.code_size_bytes


def memory_kinds(module: HloModule, which: str, count: int) -> list[str]:
    """The memory kinds that a program of JAX states for its arguments ("arg") or results ("out"),
    "device" where it states none."""
    stated = module.header.get("frontend_attributes", {}).get(f"{which}_memory_kinds", "")
    words = stated.split(";") if stated else []
    if len(words) != count:
        return ["device"] * count
    return ["device" if word == "default" else word for word in words]


def _layout_of(shape: Shape) -> PjRtLayout:
    return PjRtLayout(shape.layout or default_layout(shape.rank))
