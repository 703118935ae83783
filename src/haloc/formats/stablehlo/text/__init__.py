"""StableHLO text (MLIR) to the tree of `mlir.py`."""

from haloc.formats.stablehlo.text.parser import parse_mlir

__all__ = ["parse_mlir"]
