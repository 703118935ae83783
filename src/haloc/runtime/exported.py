"""Runs functions that `jax.export` wrote: native code, and no jax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from haloc.errors import InvalidArgumentError
from haloc.formats.jax_export import Exported, read_exported
from haloc.formats.sniff import Format, decompress, detect_format
from haloc.ir.module import HloModule
from haloc.runtime.array import ArrayImpl
from haloc.runtime.backend import CpuBackend
from haloc.runtime.client import Client
from haloc.runtime.loaded_executable import LoadedExecutable


class ExportedFunction:
    """An exported function and what has been compiled of it: one program per set of sizes.

    exported: its types, pytrees, platforms and the program itself.
    """

    def __init__(self, exported: Exported, client: Client | None = None):
        self.exported = exported
        self._client = client
        self._compiled: dict[tuple[tuple[int, ...], ...], LoadedExecutable] = {}

    @property
    def client(self) -> Client:
        """Where it runs; a CPU client of its own unless one was given."""
        if self._client is None:
            self._client = Client(CpuBackend())
        return self._client

    def to_hlo(
        self, platform: str = "cpu", argument_shapes: Sequence[Sequence[int]] | None = None
    ) -> HloModule:
        """The program for these sizes; see `Exported.to_hlo`."""
        return self.exported.to_hlo(platform, argument_shapes)

    def call(self, *arguments: Any, **keywords: Any) -> Any:
        """Call it with arrays (anything NumPy takes) in the pytrees it was exported with.

        Results are arrays in the function's own pytree. Raises InvalidArgumentError naming the
        argument that does not fit, or in the program's words when its symbolic sizes do not.
        """
        exported = self.exported
        flat = exported.flatten_arguments(*arguments, **keywords)
        arrays = [self._array(i, value) for i, value in enumerate(flat)]
        key = tuple([a.shape for a in arrays])
        device = self.client.devices()[0]
        executable = self._compiled.get(key)
        if executable is None:
            executable = self.client.compile_and_load(self.to_hlo("cpu", key), [device])
            self._compiled[key] = executable
        layouts = executable.get_parameter_layouts()
        given = [
            self.client.buffer_from_pyval(value, device, device_layout=layout)
            for value, layout in zip(exported.kept(arrays), layouts, strict=True)
        ]
        results: list[ArrayImpl] = executable.execute(given)
        return exported.unflatten_results(results)

    def vjp(self) -> ExportedFunction:
        """The exported derivative."""
        return ExportedFunction(self.exported.vjp(), self._client)

    def _array(self, number: int, value: Any) -> np.ndarray:
        aval = self.exported.in_avals[number]
        array = np.asarray(value)
        if aval.dtype.startswith("key<"):
            wanted: np.dtype | None = np.dtype(np.uint32)
        elif aval.dtype == "float0":
            wanted = np.dtype(np.bool_)
        else:
            wanted = aval.element_type.numpy
        if isinstance(value, bool | int | float | complex) and array.dtype != wanted:
            array = array.astype(wanted)
        if array.dtype != wanted:
            raise InvalidArgumentError(
                f"flat argument {number} of {self.exported.fun_name!r} is "
                f"{array.dtype}{list(array.shape)}, expected {aval}"
            )
        return array

    def __repr__(self) -> str:
        types = ", ".join(map(str, self.exported.in_avals))
        results = ", ".join(map(str, self.exported.out_avals))
        return f"<exported {self.exported.fun_name}({types}) -> ({results})>"


def load(
    data: bytes, filename: str = "<artifact>", client: Client | None = None
) -> ExportedFunction:
    """The function in an artifact, compressed by gzip or not."""
    if detect_format(data) is Format.GZIP:
        data = decompress(data)
    return ExportedFunction(read_exported(data, filename), client)
