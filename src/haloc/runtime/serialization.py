"""Executables as bytes: `serialize_executable` and back, in another process, without compiling."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from haloc.cpu.program import CpuProgram
from haloc.cpu.stored_program import from_parts, to_parts
from haloc.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from haloc.formats.hlo_proto import parse_hlo_module_proto, serialize_hlo_module
from haloc.ir.module import HloModule
from haloc.runtime.compilation import Compilation, Devices, assigned_devices, checked_devices
from haloc.runtime.compile_options import CompileOptions
from haloc.runtime.device import Device
from haloc.runtime.serialization_format import pack, unpack
from haloc.version import VERSION


def serialized(compilation: Compilation, fingerprint: bytes) -> bytes:
    """The container. UnimplementedError for programs that are not native code."""
    program = compilation.program
    if not isinstance(program, CpuProgram):
        raise UnimplementedError(f"serialization of {type(program).__name__}: only CPU programs")
    facts, blocks = to_parts(program)
    manifest = {
        "haloc": VERSION,
        "platform": "cpu",
        "machine": program.image.machine,
        "name": program.optimized.name,
        "fingerprint": fingerprint.decode(),
        "num_replicas": compilation.num_replicas,
        "device_ids": [device.id for device in compilation.devices],
        "program": facts,
    }
    # The module as it was given: for its shardings, and to trace.
    source = serialize_hlo_module(compilation.source)
    return pack(manifest, {**blocks, "source": source, "options": compilation.options_proto})


def deserialized(
    data: bytes,
    platform: str,
    client_devices: Sequence[Device],
    executable_devices: Devices,
    options: CompileOptions | None,
) -> tuple[Compilation, bytes]:
    """The executable in a container, and its fingerprint. options: take the place of those it was
    compiled with where they do not decide the code: device assignment, flags of running."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"serialized is {type(data).__name__}, not bytes")
    if options is not None and not isinstance(options, CompileOptions):
        raise TypeError(f"compile_options is a {type(options).__name__}, not a CompileOptions")
    manifest, blocks = unpack(bytes(data))
    if manifest["platform"] != platform:
        raise FailedPreconditionError(
            f"the executable is for platform {manifest['platform']!r}, the client is {platform!r}"
        )
    listed = checked_devices(executable_devices, client_devices[0].client)
    options_proto = bytes(blocks["options"])
    if options is None:
        options = CompileOptions.ParseFromString(options_proto)
    counts = (manifest["num_replicas"], manifest["program"]["num_partitions"])
    for name, count in zip(("num_replicas", "num_partitions"), counts, strict=True):
        given = getattr(options, name)
        if given not in (0, 1, count):
            raise InvalidArgumentError(
                f"compile_options.{name} is {given}, but the executable was compiled for {count}"
            )
    devices = assigned_devices(options.device_assignment, counts, listed, client_devices)
    source = bytes(blocks["source"])

    @cache
    def make_source() -> HloModule:
        return parse_hlo_module_proto(source)

    compilation = Compilation(
        from_parts(manifest["program"], blocks),
        make_source,
        *counts,
        devices,
        listed,
        options.flags(),
        options_proto,
    )
    return compilation, manifest["fingerprint"].encode()
