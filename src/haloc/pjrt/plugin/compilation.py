"""Programs in: compiled, or read back from what was serialised."""

from __future__ import annotations

import re
from typing import Any

from haloc.errors import UnimplementedError
from haloc.flags import no_progress
from haloc.ir.module import HloModule
from haloc.pjrt.abi import STRUCT
from haloc.pjrt.native.handles import address_of
from haloc.pjrt.native.library import library
from haloc.pjrt.plugin.client import CLIENTS, PluginClient
from haloc.pjrt.plugin.entry import bytes_at, entry, text_at
from haloc.pjrt.plugin.executable import EXECUTABLES, LENT, PluginExecutable, forget_destroyed
from haloc.runtime.backend import CpuBackend
from haloc.runtime.compilation import compile_computation
from haloc.runtime.compile_options import CompileOptions
from haloc.runtime.serialization import deserialized, serialized

_FORMATS = ("mlir", "hlo")
_FREE_LAYOUTS = ("default", "auto")


@entry("Client_Compile")
def client_compile(args: Any) -> None:
    executable = compiled(CLIENTS[args.client], args)
    executable.register()
    args.executable = executable.loaded_handle.address


def compiled(client: PluginClient, args: Any) -> PluginExecutable:
    """args: with `program` and `compile_options`, a serialised CompileOptionsProto or nothing."""
    forget_destroyed()
    program = STRUCT["Program"].from_address(args.program)
    form = text_at(program.format, program.format_size)
    if form not in _FORMATS:
        raise UnimplementedError(f"program format {form!r}; haloc compiles {', '.join(_FORMATS)}")
    code = bytes_at(program.code, program.code_size)
    options = bytes_at(args.compile_options, args.compile_options_size)
    parsed = CompileOptions.ParseFromString(options) if options else CompileOptions()
    devices = client.runtime.devices()
    compilation = compile_computation(CpuBackend(), devices, code, devices, parsed, no_progress)
    _check_layout_modes(compilation.program.optimized)
    return PluginExecutable(client, compilation, options)


def _check_layout_modes(module: HloModule) -> None:
    """The layouts that JAX asks for, one word an argument or result: buffers are row-major."""
    attributes = module.header.get("frontend_attributes", {})
    for which, what in (("arg", "argument"), ("out", "result")):
        stated = attributes.get(f"{which}_layout_modes", "")
        for number, word in enumerate(stated.split(";") if stated else ()):
            order = re.findall(r"\d+", word.partition(":")[0])
            if word in _FREE_LAYOUTS or order == [str(k) for k in reversed(range(len(order)))]:
                continue
            raise UnimplementedError(
                f"layout {word} of {what} {number}: haloc's arguments and results are row-major"
            )


@entry("Executable_Serialize")
def executable_serialize(args: Any) -> None:
    forget_destroyed()
    executable = EXECUTABLES[args.executable]
    data = serialized(executable.compilation, executable.about.fingerprint)
    address = address_of(data)
    LENT[address] = data
    args.serialized_bytes = args.serialized_executable = address
    args.serialized_bytes_size = len(data)
    args.serialized_executable_deleter = library().address("bury")


@entry("Executable_DeserializeAndLoad")
def executable_deserialize_and_load(args: Any) -> None:
    forget_destroyed()
    client = CLIENTS[args.client]
    data = bytes_at(args.serialized_executable, args.serialized_executable_size)
    options = None
    if args.has("overridden_serialized_compile_options_size"):
        given = bytes_at(
            args.overridden_serialized_compile_options,
            args.overridden_serialized_compile_options_size,
        )
        options = CompileOptions.ParseFromString(given) if given else None
    devices = client.runtime.devices()
    compilation, fingerprint = deserialized(data, CpuBackend.platform, devices, devices, options)
    executable = PluginExecutable(client, compilation, compilation.options_proto, fingerprint)
    executable.register()
    args.loaded_executable = executable.loaded_handle.address
