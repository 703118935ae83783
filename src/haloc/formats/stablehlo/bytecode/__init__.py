"""StableHLO bytecode: portable artifacts and what `jax.export` holds, read without MLIR."""

from haloc.formats.stablehlo.bytecode.reader import is_bytecode, parse_bytecode

__all__ = ["is_bytecode", "parse_bytecode"]
