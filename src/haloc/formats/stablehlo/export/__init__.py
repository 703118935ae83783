"""HLO to StableHLO: the reverse of `convert`, by the same rows."""

from haloc.formats.stablehlo.export.module import from_hlo

__all__ = ["from_hlo"]
