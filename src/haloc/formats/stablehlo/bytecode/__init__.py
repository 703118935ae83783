"""StableHLO bytecode: portable artifacts, read and written without MLIR."""

from haloc.formats.stablehlo.bytecode.reader import is_bytecode, parse_bytecode
from haloc.formats.stablehlo.bytecode.writer import serialize_portable_artifact

__all__ = ["is_bytecode", "parse_bytecode", "serialize_portable_artifact"]
