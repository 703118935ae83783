"""Executables: compilation, and what C reads of a compiled program."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from haloc.errors import UnimplementedError
from haloc.formats.hlo_proto import HloModuleProtoWithConfig
from haloc.pjrt.abi import STRUCT, buffer_type_of
from haloc.pjrt.abi.memory import int64s
from haloc.pjrt.abi.named_values import named_values
from haloc.pjrt.native.handles import Handle
from haloc.pjrt.native.library import library
from haloc.pjrt.plugin.client import PluginClient
from haloc.pjrt.plugin.entry import entry
from haloc.pjrt.plugin.plan import native_plan
from haloc.runtime.compilation import Compilation
from haloc.runtime.device_assignment import DeviceAssignment
from haloc.runtime.executable import Executable, memory_kinds


class PluginExecutable:
    """One compiled program: its PJRT_Executable and its PJRT_LoadedExecutable."""

    def __init__(
        self,
        client: PluginClient,
        compilation: Compilation,
        options: bytes,
        fingerprint: bytes = b"",
    ):
        self.client = client
        self.compilation = compilation
        self.program = compilation.program
        for leaf in (*self.program.parameters, *self.program.results):
            if not leaf.is_row_major:
                raise UnimplementedError(f"{leaf}: the plugin's buffers are row-major only so far")
        self.about = Executable(compilation)
        if fingerprint:
            self.about._fingerprint = fingerprint
        self.result_kinds = memory_kinds(self.program.optimized, "out", len(self.program.results))
        handles = {client.device_of[h.address]: h for h in client.devices}
        self.devices = [handles[d] for d in compilation.devices]
        self.handle = Handle(
            "Executable",
            num_replicas=compilation.num_replicas,
            num_partitions=compilation.num_partitions,
        )
        self._describe(options)
        self._describe_results()
        self.loaded_handle = Handle("LoadedExecutable", executable=self.handle)
        self._describe_loaded()
        self.result_memories = [
            [client.memory_on(device, kind) for kind in self.result_kinds]
            for device in compilation.devices
        ]
        """Where results lie, by device."""
        self.plan = native_plan(self.program, self.devices, self.result_memories)
        if self.plan is not None:
            self.loaded_handle.set("plan", self.plan.struct)

    def _describe(self, options: bytes) -> None:
        handle = self.handle
        handle.set_text("executable_name", self.program.optimized.name.encode())
        handle.set_text("executable_fingerprint", self.about.fingerprint)
        handle.set("size_in_bytes", self.program.code_size_bytes)
        costs = {k: float(v) for k, v in self.about.cost_analysis().items()}
        handle.set("properties", named_values(costs))
        handle.set("num_properties", len(costs))
        handle.set_text("serialized_bytes", options)
        handle.set("serialized_compile_options_deleter", library().address("nothing"))

    def _describe_results(self) -> None:
        handle, results = self.handle, self.program.results
        kinds = [kind.encode() for kind in self.result_kinds]
        handle.set_list("memory_kinds", "num_outputs", kinds)
        handle.set("memory_kind_sizes", int64s([len(k) for k in kinds]))
        types = [buffer_type_of(s.dtype) for s in results]
        handle.set("output_types", (ctypes.c_uint32 * max(1, len(types)))(*types))
        handle.set("num_output_types", len(types))
        handle.set("dims", int64s([d for s in results for d in s.dims]))
        handle.set("dim_sizes", int64s([s.rank for s in results]))

    def _describe_loaded(self) -> None:
        handle = self.loaded_handle
        handle.set_list("addressable_devices", "num_addressable_devices", self.devices)
        handle.set_text("executable_fingerprint", self.about.fingerprint)
        partitions = self.compilation.num_partitions
        ids = np.array([d.id for d in self.compilation.devices]).reshape(-1, partitions)
        assignment = DeviceAssignment.create(ids).serialize()
        handle.set_text("serialized_bytes", assignment)
        handle.set("serialized_device_assignment_deleter", library().address("nothing"))
        logical = [number for index in np.ndindex(ids.shape) for number in index]
        handle.set("addressable_device_logical_ids", (ctypes.c_int32 * len(logical))(*logical))
        handle.set("num_addressable_device_logical_ids", ids.size)

    def register(self) -> None:
        """Give the handles to C, until it destroys them."""
        EXECUTABLES[self.handle.address] = self
        EXECUTABLES[self.loaded_handle.address] = self


EXECUTABLES: dict[int, PluginExecutable] = {}
"""By the address of either handle, until C destroys it."""

LENT: dict[int, Any] = {}
"""Memory that C reads until it says otherwise, by address."""


def forget_destroyed() -> None:
    """Drop what C has destroyed since the last time."""
    native = library()
    grave = native.call("exhume")
    while grave:
        following, handle = (ctypes.c_uint64 * 2).from_address(grave)
        native.call("heap_free", grave, 64)
        EXECUTABLES.pop(handle, None)
        LENT.pop(handle, None)
        grave = following


@entry("LoadedExecutable_Delete")
def loaded_executable_delete(args: Any) -> None:
    EXECUTABLES[args.executable].loaded_handle.set("is_deleted", 1)


@entry("Executable_GetCompiledMemoryStats")
def executable_memory_stats(args: Any) -> None:
    stats = EXECUTABLES[args.executable].about.get_compiled_memory_stats()
    for name, *_ in args._fields_[3:]:
        if args.has(name):
            setattr(args, name, int(getattr(stats, name, 0)))


@entry("Executable_OptimizedProgram")
def executable_optimized_program(args: Any) -> None:
    # Asked twice: for the size, then with memory of that size.
    executable = EXECUTABLES[args.executable]
    data = HloModuleProtoWithConfig(executable.program.optimized).serialize()
    program = STRUCT["Program"].from_address(args.program)
    executable.handle.set_text("format", b"hlo_with_config")
    program.format = executable.handle.get("format")
    program.format_size = executable.handle.get("format_size")
    program.code_size = len(data)
    if program.code:
        ctypes.memmove(program.code, data, len(data))
