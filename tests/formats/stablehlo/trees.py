"""Trees of MLIR in a form that compares: values by number, in order of appearance."""

from __future__ import annotations

from typing import Any

from haloc.formats.stablehlo.mlir import MlirModule, MlirOp, MlirValue


def tree(module: MlirModule) -> list[Any]:
    """One entry an op, nested ops behind it; function attributes are left out."""
    numbers: dict[MlirValue, int] = {}
    found: list[Any] = []

    def walk(ops: list[MlirOp]) -> None:
        for op in ops:
            attributes = {} if op.name == "func.func" else op.attributes
            operands = [numbers[o] for o in op.operands]
            types = [str(r.type) for r in op.results]
            found.append((op.name, operands, attributes, types, len(op.regions)))
            for region in op.regions:
                for block in region.blocks:
                    for argument in block.arguments:
                        numbers[argument] = len(numbers)
                    walk(block.operations)
            for result in op.results:
                numbers[result] = len(numbers)

    walk(module.operations)
    return found


def only(module: MlirModule, name: str) -> MlirOp:
    """The one op of this name in the functions' bodies."""
    ops = [o for f in module.operations for r in f.regions for b in r.blocks for o in b.operations]
    (found,) = [o for o in ops if o.name == name]
    return found
