"""From what a user hands to `compile` to a program: reading, checks, the backend, dumps."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from haloc.cpu.disk_cache import DiskCache
from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.flags import CompilerOptions, Flags, OnProgress
from haloc.formats.hlo_text import to_text
from haloc.ir.module import HloModule
from haloc.runtime.backend import Backend, Program
from haloc.runtime.compile_options import CompileOptions, check_supported
from haloc.runtime.computation import read_computation
from haloc.runtime.device import Device
from haloc.runtime.device_assignment import DeviceAssignment, DeviceList
from haloc.runtime.dump import Dumper, is_dumping
from haloc.runtime.entry_layouts import assign_entry_layouts
from haloc.runtime.hlo_module import XlaHloModule
from haloc.runtime.mlir import join_parameters
from haloc.runtime.partitioned import partitioned
from haloc.runtime.program_cache import ProgramKey, find, store
from haloc.verifier import verify

Computation = str | bytes | HloModule | XlaHloModule
Devices = DeviceList | Sequence[Device]


@dataclass(frozen=True)
class Compilation:
    """A program and what it was made for. make_source: gives `source`, the same module each time.
    devices: of its participants, by flattened logical id (replica * num_partitions + partition).
    listed: the devices the caller named. options_proto: the options, serialised."""

    program: Program
    make_source: Callable[[], HloModule]
    num_replicas: int
    num_partitions: int
    devices: tuple[Device, ...]
    listed: tuple[Device, ...]
    flags: Flags
    options_proto: bytes

    @property
    def source(self) -> HloModule:
        """The module before optimisation, and before partitioning."""
        return self.make_source()

    @cached_property
    def shards(self) -> HloModule:
        """`source` as one partition runs it; its parameters and root carry their shardings."""
        return partitioned(self.source, self.num_partitions, self.num_replicas)


def compile_computation(
    backend: Backend,
    client_devices: Sequence[Device],
    computation: Computation,
    executable_devices: Devices,
    options: CompileOptions | None,
    on_progress: OnProgress,
) -> Compilation:
    """`Client.compile_and_load` without the loading."""
    options = CompileOptions() if options is None else options
    if not isinstance(options, CompileOptions):
        raise TypeError(f"compile_options is a {type(options).__name__}, not a CompileOptions")
    listed = checked_devices(executable_devices, client_devices[0].client)
    assignment = options.device_assignment
    if assignment is not None and not isinstance(assignment, DeviceAssignment):
        raise TypeError(
            f"device_assignment is a {type(assignment).__name__}, not a DeviceAssignment"
        )
    check_supported(options)
    flags = options.flags()
    options_proto = options.SerializeAsString()
    # Modules are the caller's to change later.
    if not isinstance(computation, str | bytes):
        computation = read_computation(computation)
    cache = _cache_for(backend, flags)
    key = cache and ProgramKey(computation, options_proto, flags)
    if cache and key:
        make_source = lru_cache(lambda: _source(computation, options))
        found = find(cache, key, lambda: _optimized(make_source(), options, flags))
        if found is not None:
            counts = found.num_replicas, found.num_partitions
            devices = assigned_devices(options.device_assignment, counts, listed, client_devices)
            return Compilation(
                found.program, make_source, *counts, devices, listed, flags, options_proto
            )
    on_progress("parse", 0, 0)
    module = read_computation(computation)
    counts = _participants(module, options)
    devices = assigned_devices(options.device_assignment, counts, listed, client_devices)
    dumper = Dumper(flags, module.name, backend.platform)
    dumper.before(module)
    on_progress("verify", 0, 0)
    verify(module)
    _check_module(module)
    assign_entry_layouts(module, options)
    _tuple_arguments(module, options)
    shards = partitioned(module, counts[1], counts[0])
    started = time.perf_counter()
    _tell(flags, 4, lambda: f"--- before optimization ---\n{to_text(module)}")
    on_pass = dumper.after_pass if dumper.dumps_passes else None
    program = backend.compile(
        shards, CompilerOptions(flags, on_progress, *counts, on_pass, dumper.enabled)
    )
    _tell(flags, 4, lambda: f"--- after optimization ---\n{to_text(program.optimized)}")
    _tell(flags, 2, lambda: _summary(program, time.perf_counter() - started))
    dumper.after(program)
    if cache and key:
        store(cache, key, program, counts[0], module.name)
    return Compilation(program, lambda: module, *counts, devices, listed, flags, options_proto)


def _source(computation: Computation, options: CompileOptions) -> HloModule:
    """The module of a program that was compiled before."""
    module = read_computation(computation)
    assign_entry_layouts(module, options)
    _tuple_arguments(module, options)
    return module


def _tuple_arguments(module: HloModule, options: CompileOptions) -> None:
    """Act on tuple_arguments. An entry that takes one tuple already stays."""
    parameters = module.entry.parameters
    is_done = len(parameters) == 1 and parameters[0].shape.is_tuple
    if options.parameter_is_tupled_arguments and parameters and not is_done:
        join_parameters(module)


def _cache_for(backend: Backend, flags: Flags) -> DiskCache | None:
    """Where compiled programs are kept; None where there is something to see in the making."""
    if backend.platform != "cpu" or is_dumping(flags) or flags.debug >= 3:
        return None
    return DiskCache.of(flags)


def _optimized(module: HloModule, options: CompileOptions, flags: Flags) -> HloModule:
    # LLVM is loaded with the compiler, and a program from the cache runs without.
    from haloc.runtime.cpu_backend import optimize_for_cpu  # noqa: PLC0415

    replicas, partitions = _participants(module, options)
    return optimize_for_cpu(partitioned(module, partitions, replicas), CompilerOptions(flags))


# --- Participants and their devices --------------------------------------------------------------


def _participants(module: HloModule, options: CompileOptions) -> tuple[int, int]:
    """(num_replicas, num_partitions): the options', or the module's own where they say 1."""
    counts = []
    for key, option in (("replica_count", "num_replicas"), ("num_partitions", "num_partitions")):
        own, given = module.header.get(key, 1), getattr(options, option)
        if given != 1 and own not in (1, given):
            raise InvalidArgumentError(
                f"module {module.name} has {key}={own}, but compile_options.{option} is {given}"
            )
        counts.append(given if given != 1 else own)
    return counts[0], counts[1]


def checked_devices(devices: Devices, client: Any) -> tuple[Device, ...]:
    if isinstance(devices, str) or not isinstance(devices, Sequence | DeviceList):
        raise TypeError(
            "executable_devices is a DeviceList or a sequence of devices, not "
            f"{type(devices).__name__}"
        )
    listed = tuple(devices)
    if not listed:
        raise InvalidArgumentError("executable_devices is empty")
    for number, device in enumerate(listed):
        if not isinstance(device, Device):
            raise InvalidArgumentError(f"executable_devices[{number}] is {device!r}, not a Device")
        if device.client is not client:
            raise InvalidArgumentError(
                f"executable_devices[{number}] is a device of another client: {device!r}"
            )
        if device in listed[:number]:
            raise InvalidArgumentError(f"executable_devices lists {device!r} twice")
    return listed


def assigned_devices(
    assignment: DeviceAssignment | None,
    counts: tuple[int, int],
    listed: tuple[Device, ...],
    client_devices: Sequence[Device],
) -> tuple[Device, ...]:
    """The devices of all participants: the assignment's; else the first ones listed, or, if too
    few are listed, the client's first ones."""
    wanted = counts[0] * counts[1]
    if assignment is None:
        chosen = listed if len(listed) >= wanted else tuple(client_devices)
        if len(chosen) < wanted:
            raise InvalidArgumentError(
                f"No matching device found for device_id {len(chosen)}: {counts[0]} replica(s) of "
                f"{counts[1]} partition(s) take {wanted} devices"
            )
        return chosen[:wanted]
    if assignment.ids.shape != counts:
        raise InvalidArgumentError(
            f"device_assignment is of {assignment.replica_count()} replica(s) and "
            f"{assignment.computation_count()} partition(s), but num_replicas={counts[0]} and "
            f"num_partitions={counts[1]}"
        )
    by_id = {d.id: d for d in client_devices}
    ids = [int(i) for i in assignment.ids.ravel()]
    for position, number in enumerate(ids):
        if number not in by_id:
            raise InvalidArgumentError(f"No matching device found for device_id {number}")
        if number in ids[:position]:
            raise InvalidArgumentError(f"device_assignment names device {number} twice")
    return tuple(by_id[i] for i in ids)


# --- Checks and reports ---------------------------------------------------------------------------


def _check_module(module: HloModule) -> None:
    aliases = module.header.get("input_output_alias", ())
    taken = [(number, index) for _, number, index, *_ in aliases]
    for number, index in taken:
        if taken.count((number, index)) > 1:
            raise InvalidArgumentError(
                f"input_output_alias gives parameter {number} {{{','.join(map(str, index))}}} to "
                "more than one result"
            )
    parameters = [p.shape for p in module.entry.parameters]
    for number, shape in enumerate(parameters):
        for leaf in shape.leaves():
            is_passed = leaf.is_array or (leaf.is_token and shape.is_token)
            if not is_passed or not leaf.is_static:
                raise UnimplementedError(
                    f"parameter {number} of the entry is {shape}: only arrays of static shape, and "
                    "tokens that are parameters of their own, can be passed"
                )
    result = module.entry.root.shape
    if not result.is_static:
        raise UnimplementedError(
            f"the result of the entry is {result}: only arrays of static shape can be returned; "
            "haloc.interpreter.run gives arrays of the sizes there are"
        )


def _tell(flags: Flags, level: int, text: Any) -> None:
    if flags.debug >= level and (level > 2 or flags.xla_detailed_logging):
        print(text(), file=sys.stderr)


def _summary(program: Program, seconds: float) -> str:
    module = program.optimized
    count = sum(len(c) for c in module.post_order())
    return (
        f"haloc: compiled {module.name}: {count} instructions in {seconds:.3f} s, "
        f"{program.code_size_bytes} bytes of code, {program.arena_bytes} of scratch"
    )
