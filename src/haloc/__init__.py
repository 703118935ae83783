"""haloc: an XLA-compatible compiler and runtime in Python."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

from haloc.version import VERSION as __version__

if TYPE_CHECKING:
    from haloc.ir.module import HloModule
    from haloc.runtime.array import ArrayImpl
    from haloc.runtime.device import Device
    from haloc.runtime.exported import ExportedFunction

__all__ = [
    "__version__",
    "custom_call",
    "from_dlpack",
    "lax",
    "load",
    "load_exported",
    "numpy",
    "pjrt_plugin_path",
    "xla_computation",
]

_F = TypeVar("_F")

# Imports stand inside the functions: `import haloc` is instant, and needs nothing but Python.


_LAZY = {
    "lax": "haloc.lax",
    "numpy": "haloc.numpy",
    "xla_computation": "haloc.frontend.computation",
}
"""Public names that are modules, or stand in them."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'haloc' has no attribute {name!r}")
    module = import_module(_LAZY[name])
    return module if _LAZY[name] == f"haloc.{name}" else getattr(module, name)


def load(program: str | PathLike[str] | bytes) -> HloModule:
    """The program in a file, or in bytes, whatever it is written in.

    HLO text, HLO protos (HloModuleProto, HloProto, HloSnapshot, HloModuleProtoWithConfig),
    StableHLO text, StableHLO bytecode (portable artifacts), jax.export artifacts, and any of them
    compressed by gzip; told by content, not by name. The module is not verified; compiling does
    that. HloParseError, with the place, for what does not read.
    """
    from haloc.formats.sniff import load_module  # noqa: PLC0415

    data, name = _read(program)
    return load_module(data, name)


def load_exported(artifact: str | PathLike[str] | bytes) -> ExportedFunction:
    """The function in a jax.export artifact, to call with arrays; jax is not needed.

    f = haloc.load_exported("model.bin")
    y = f.call(x)
    """
    from haloc.runtime.exported import load  # noqa: PLC0415

    return load(*_read(artifact))


def custom_call(
    name: str, *, api_version: int = 0, writes_results: bool = False
) -> Callable[[_F], _F]:
    """A decorator that makes a function the target of custom-calls to `name`.

    A Python function gets the array operands as read-only NumPy views (valid during the call only)
    and the attributes of a typed call as keyword arguments, and returns the result, or a tuple of
    results, of exactly the call's dtypes and shapes; with writes_results=True it gets the results'
    arrays after the operands instead, to fill, and returns nothing. An exception ends the program:
    `execute` raises an XlaRuntimeError whose `__cause__` it is. A function of ctypes or numba is
    called natively: with api_version=0 as `void (void* out, const void** in)`, with 1 as a handler
    of XLA's FFI.

        @haloc.custom_call("double")
        def double(x):
            return 2 * x
    """
    from haloc.ffi.registration import custom_call as register  # noqa: PLC0415

    return register(name, api_version=api_version, writes_results=writes_results)


def from_dlpack(x: Any, /, *, device: Device | None = None, copy: bool | None = None) -> ArrayImpl:
    """The array in another library's memory, shared unless copy is True or it cannot be.

    x: an array of torch, NumPy or any library with `__dlpack__`, in CPU memory. device: default the
    first of the process's default client. See `haloc.runtime.dlpack_arrays.from_dlpack`.
    """
    from haloc.runtime.dlpack_arrays import from_dlpack as read  # noqa: PLC0415

    return read(x, device=device, copy=copy)


def pjrt_plugin_path() -> str:
    """The path of a shared object that any PJRT client can load: haloc as its CPU plugin.

    For clients in C, C++, Rust, Go, Julia, Elixir, ...: see docs/pjrt.md. UnimplementedError on
    systems other than Linux.
    """
    from haloc.pjrt.plugin_file import pjrt_plugin_path as path  # noqa: PLC0415

    return path()


def _read(source: str | PathLike[str] | bytes) -> tuple[bytes, str]:
    """Data and its name for messages."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "<bytes>"
    with open(source, "rb") as file:
        return file.read(), str(source)
