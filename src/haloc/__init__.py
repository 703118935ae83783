"""haloc: an XLA-compatible compiler and runtime in Python."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from haloc.version import VERSION as __version__

if TYPE_CHECKING:
    from haloc.ir.module import HloModule
    from haloc.runtime.exported import ExportedFunction

__all__ = ["__version__", "load", "load_exported"]

# Imports stand inside the functions: `import haloc` is instant, and needs nothing but Python.


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


def _read(source: str | PathLike[str] | bytes) -> tuple[bytes, str]:
    """Data and its name for messages."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "<bytes>"
    with open(source, "rb") as file:
        return file.read(), str(source)
