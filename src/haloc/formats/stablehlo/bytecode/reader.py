"""MLIR bytecode to an `MlirModule`: the one entry of this room."""

from __future__ import annotations

from haloc.formats.stablehlo.bytecode import builtin, sdy, stablehlo_dialect, vhlo
from haloc.formats.stablehlo.bytecode.container import MAGIC, read_container
from haloc.formats.stablehlo.bytecode.entries import Entries
from haloc.formats.stablehlo.bytecode.regions import RegionReader
from haloc.formats.stablehlo.mlir import MlirModule

_DECODERS = (
    {
        "builtin": builtin.ATTRIBUTES,
        "chlo": stablehlo_dialect.CHLO_ATTRIBUTES,
        "sdy": sdy.ATTRIBUTES,
        "stablehlo": stablehlo_dialect.ATTRIBUTES,
        "vhlo": vhlo.ATTRIBUTES,
    },
    {
        "builtin": builtin.TYPES,
        "stablehlo": stablehlo_dialect.TYPES,
        "vhlo": vhlo.TYPES,
    },
)


def is_bytecode(data: bytes) -> bool:
    return data.startswith(MAGIC)


def parse_bytecode(data: bytes, filename: str = "<bytecode>") -> MlirModule:
    """Read StableHLO bytecode: a portable artifact (VHLO 0.9 to 1.17, also mixed with Shardy), or
    MLIR's bytecode of a module in memory (StableHLO, CHLO, func, Shardy as in jaxlib 0.10.2).

    HloParseError for bytes that are not that, naming the offset and what was expected there.
    """
    container = read_container(bytes(data))
    reader = RegionReader(Entries(container, _DECODERS))
    block = reader.block(container.ir)
    if container.ir.remaining:
        container.ir.expected("the end of the section")
    if len(block.operations) != 1 or block.operations[0].name != "builtin.module":
        found = ", ".join(op.name for op in block.operations[:3]) or "nothing"
        container.ir.fail(f"found {found} at the top, expected one builtin.module")
    op = block.operations[0]
    name = op.attributes.pop("sym_name", "")
    op.attributes.pop("sym_visibility", None)
    if not isinstance(name, str):
        container.ir.fail("the module's name is not a string")
    operations = op.regions[0].blocks[0].operations if op.regions and op.regions[0].blocks else []
    return MlirModule(name, op.attributes, operations, op.location, "", filename)
