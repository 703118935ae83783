"""What a plugin is given to compile: StableHLO of a version that it reads, and the options."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.formats.sniff import Format, detect_format
from haloc.formats.stablehlo import from_hlo, serialize_portable_artifact
from haloc.formats.stablehlo.bytecode.versions import NEWEST, Version, version_text
from haloc.ir.module import HloModule
from haloc.pjrt.abi import STRUCT
from haloc.pjrt.abi.memory import address_of_bytes
from haloc.pjrt.client.plugin import Plugin
from haloc.runtime.compilation import Computation
from haloc.runtime.compile_options import CompileOptions
from haloc.runtime.computation import read_computation
from haloc.runtime.device_assignment import DeviceAssignment

_UNSAID: Version = (1, 13, 7)
"""What jaxlib, too, gives a plugin that does not say which StableHLO it reads."""


class Program:
    """A PJRT_Program and serialised compile options for it.

    computation: StableHLO in MLIR text or bytecode goes to the plugin as it is; HLO in any form is
    turned into a StableHLO portable artifact. devices: those to use where the options name none, by
    their ids; as many as participants are needed.
    """

    def __init__(
        self,
        plugin: Plugin,
        computation: Computation,
        options: CompileOptions | None,
        devices: Sequence[Any],
    ):
        code, module = _stablehlo(plugin, computation)
        self._code, self._format = code, b"mlir"
        self.struct = STRUCT["Program"].sized(
            code=address_of_bytes(code),
            code_size=len(code),
            format=address_of_bytes(self._format),
            format_size=len(self._format),
        )
        self.options = _assigned(options, module, devices)

    def fields(self) -> dict[str, Any]:
        """The fields of `PJRT_Client_Compile_Args` and `PJRT_Compile_Args`."""
        return {
            "program": ctypes.addressof(self.struct),
            "compile_options": address_of_bytes(self.options),
            "compile_options_size": len(self.options),
        }


def _stablehlo(plugin: Plugin, computation: Computation) -> tuple[bytes, HloModule | None]:
    """The program for the plugin, and its HLO if that is what it was."""
    if isinstance(computation, str | bytes):
        data = computation.encode() if isinstance(computation, str) else computation
        if detect_format(computation) in (Format.STABLEHLO_TEXT, Format.STABLEHLO_BYTECODE):
            return data, None
    module = read_computation(computation)
    major, minor, patch = plugin.attributes.get("stablehlo_current_version", _UNSAID)
    version = min(NEWEST, (major, minor, patch))
    return serialize_portable_artifact(from_hlo(module), version_text(version)), module


def _assigned(
    options: CompileOptions | None, module: HloModule | None, devices: Sequence[Any]
) -> bytes:
    """The options, serialised, with counts of participants and devices for them."""
    options = CompileOptions() if options is None else options
    if not isinstance(options, CompileOptions):
        raise TypeError(f"compile_options is a {type(options).__name__}, not a CompileOptions")
    options = CompileOptions.ParseFromString(options.SerializeAsString())
    if module is not None:
        if options.num_replicas == 1:
            options.num_replicas = module.header.get("replica_count", 1)
        if options.num_partitions == 1:
            options.num_partitions = module.header.get("num_partitions", 1)
    wanted = options.num_replicas * options.num_partitions
    if options.device_assignment is None:
        if len(devices) < wanted:
            raise InvalidArgumentError(
                f"No matching device found for device_id {len(devices)}: {options.num_replicas} "
                f"replica(s) of {options.num_partitions} partition(s) take {wanted} devices"
            )
        ids = np.array([d.id for d in devices[:wanted]])
        options.device_assignment = DeviceAssignment.create(ids.reshape(options.num_replicas, -1))
    return options.SerializeAsString()
