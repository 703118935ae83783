"""`CApiExecutable`: a program that a plugin has compiled, and what the plugin says about it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from haloc.formats.sniff import load_module
from haloc.ir.shape import Shape
from haloc.pjrt.abi import STRUCT, dtype_of_buffer_type
from haloc.pjrt.abi.memory import bytes_at, int64s_at, pointers_at, text_at, texts_at
from haloc.pjrt.abi.named_values import read_named_values
from haloc.pjrt.client.plugin import Owned, Plugin
from haloc.runtime.hlo_module import XlaHloModule
from haloc.runtime.memory_stats import CompiledMemoryStats
from haloc.runtime.op_sharding import OpSharding

_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@dataclass
class PluginMemoryStats(CompiledMemoryStats):
    """With the plugin's own word on the peak."""

    peak: int = 0

    @property
    def peak_memory_in_bytes(self) -> int:
        return self.peak


class CApiExecutable:
    """A compiled program. needs: what must live as long."""

    def __init__(self, plugin: Plugin, address: int, *needs: Any):
        self.plugin = plugin
        self._executable = Owned(plugin, "Executable", address, *needs)

    def _ask(self, function: str, **given: Any) -> Any:
        function = f"Executable_{function}"
        return self.plugin.call(function, executable=self._executable.address, **given)

    # --- What it is -------------------------------------------------------------------------------

    @cached_property
    def name(self) -> str:
        args = self._ask("Name")
        return text_at(args.executable_name, args.executable_name_size)

    @cached_property
    def num_replicas(self) -> int:
        return self._ask("NumReplicas").num_replicas

    @cached_property
    def num_partitions(self) -> int:
        return self._ask("NumPartitions").num_partitions

    @cached_property
    def num_outputs(self) -> int:
        return self._ask("NumOutputs").num_outputs

    @cached_property
    def fingerprint(self) -> bytes:
        args = self._ask("Fingerprint")
        return bytes_at(args.executable_fingerprint, args.executable_fingerprint_size)

    def output_shapes(self) -> list[Shape]:
        """Of the array leaves of the result, each on one device."""
        types = self._ask("OutputElementTypes")
        numbers = (ctypes.c_uint32 * types.num_output_types).from_address(types.output_types)
        args = self._ask("OutputDimensions")
        ranks = int64s_at(args.dim_sizes, args.num_outputs)
        dims = iter(int64s_at(args.dims, sum(ranks)))
        return [
            Shape(dtype_of_buffer_type(number), tuple(next(dims) for _ in range(rank)))
            for number, rank in zip(numbers, ranks, strict=True)
        ]

    def get_output_memory_kinds(self) -> list[list[str]]:
        args = self._ask("OutputMemoryKinds")
        return [texts_at(args.memory_kinds, args.memory_kind_sizes, args.num_outputs)]

    def get_parameter_memory_kinds(self) -> list[list[str]]:
        args = self._ask("ParameterMemoryKinds")
        return [texts_at(args.memory_kinds, args.memory_kind_sizes, args.num_parameters)]

    def get_parameter_shardings(self) -> list[OpSharding] | None:
        """How the parameters are spread over partitions; None if the plugin does not say."""
        return self._shardings("ParameterShardings", "num_parameters")

    def get_output_shardings(self) -> list[OpSharding] | None:
        """How the results are spread over partitions; None if the plugin does not say."""
        return self._shardings("OutputShardings", "num_outputs")

    def _shardings(self, function: str, count: str) -> list[OpSharding] | None:
        if not self.plugin.has_extension("Shardings"):
            return None
        args = self.plugin.call_extension(
            "Shardings",
            f"Shardings_PJRT_Executable_{function}",
            executable=self._executable.address,
        )
        if not args.shardings:
            return None
        number = getattr(args, count)
        found = [OpSharding() for _ in range(number)]
        pointers, sizes = (
            pointers_at(args.shardings, number),
            int64s_at(args.sharding_sizes, number),
        )
        for sharding, pointer, size in zip(found, pointers, sizes):
            sharding.ParseFromString(bytes_at(pointer, size))
        return found

    # --- What it costs ----------------------------------------------------------------------------

    def size_of_generated_code_in_bytes(self) -> int:
        return self._ask("SizeOfGeneratedCodeInBytes").size_in_bytes

    def cost_analysis(self) -> dict[str, Any]:
        """The plugin's properties by name: "flops", "bytes accessed", ..."""
        args = self._ask("GetCostAnalysis")
        return read_named_values(args.properties, args.num_properties)

    def get_compiled_memory_stats(self) -> PluginMemoryStats:
        args = self._ask("GetCompiledMemoryStats")
        known = [f.name for f in fields(CompiledMemoryStats) if f.repr]
        return PluginMemoryStats(
            **{name: getattr(args, name) for name in known}, peak=args.peak_memory_in_bytes
        )

    # --- What it is made of -----------------------------------------------------------------------

    def optimized_program(self) -> tuple[str, bytes]:
        """(format, the program as the plugin runs it): "hlo_with_config", "hlo" or "mlir"."""
        program = STRUCT["Program"].sized()
        # Asked twice: for the size, then with memory of that size.
        self._ask("OptimizedProgram", program=ctypes.addressof(program))
        code = ctypes.create_string_buffer(program.code_size)
        program.code = ctypes.addressof(code)
        self._ask("OptimizedProgram", program=ctypes.addressof(program))
        return text_at(program.format, program.format_size), code.raw

    def hlo_modules(self) -> list[XlaHloModule]:
        """[the optimised module]."""
        return [XlaHloModule(load_module(self.optimized_program()[1], self.plugin.name))]

    def serialize(self) -> bytes:
        """For `deserialize_executable` of a client of the same plugin."""
        return self._own_bytes("Serialize", "serialized_bytes", "serialized_executable")

    def compile_options(self) -> bytes:
        """The CompileOptionsProto it was compiled with."""
        return self._own_bytes(
            "GetCompileOptions", "serialized_bytes", "serialized_compile_options"
        )

    def _own_bytes(self, function: str, name: str, owner: str) -> bytes:
        """A copy of bytes that the plugin wants to be told to free."""
        args = self._ask(function)
        data = bytes_at(getattr(args, name), getattr(args, f"{name}_size"))
        deleter = getattr(args, f"{owner}_deleter")
        if deleter:
            _DELETER(deleter)(getattr(args, owner))
        return data

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} of {self.plugin!r}>"
