"""From the tree of `mlir.py` to `HloModule`."""

from haloc.formats.stablehlo.convert.module import to_hlo

__all__ = ["to_hlo"]
