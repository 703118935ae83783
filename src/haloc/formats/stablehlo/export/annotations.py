"""What instructions carry beside their meaning: shardings and frontend attributes."""

from __future__ import annotations

from haloc.formats.stablehlo.mlir import Attribute
from haloc.ir.module import HloInstruction


def annotations(instruction: HloInstruction) -> dict[str, Attribute]:
    """mhlo.sharding and mhlo.frontend_attributes, where there are any."""
    found: dict[str, Attribute] = {}
    if instruction.frontend_attributes:
        found["mhlo.frontend_attributes"] = dict(instruction.frontend_attributes)
    if instruction.sharding is not None:
        found["mhlo.sharding"] = str(instruction.sharding)
    return found
