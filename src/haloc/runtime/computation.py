"""Reads whatever a user hands to `compile`: any format haloc knows, or a module already read."""

from __future__ import annotations

from haloc.formats.sniff import load_module
from haloc.ir.module import HloModule
from haloc.runtime.hlo_module import XlaHloModule
from haloc.runtime.xla_computation import XlaComputation


def read_computation(
    computation: str | bytes | HloModule | XlaHloModule | XlaComputation, filename: str = "<string>"
) -> HloModule:
    """The module, the caller's to change. It is not verified yet.

    HloParseError for text or data that does not read, InvalidArgumentError for data in no known
    format, TypeError for other Python types.
    """
    if isinstance(computation, XlaHloModule):
        return computation.ir.clone()
    if isinstance(computation, XlaComputation):
        return computation.as_hlo_module().ir
    if isinstance(computation, HloModule):
        return computation.clone()
    if isinstance(computation, bytes | bytearray | memoryview):
        return load_module(bytes(computation), filename)
    if isinstance(computation, str):
        return load_module(computation, filename)
    raise TypeError(
        "a computation is HLO or StableHLO (str or bytes) or an HloModule, not "
        f"{type(computation).__name__}"
    )
