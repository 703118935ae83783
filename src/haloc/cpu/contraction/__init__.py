"""Contractions on CPU: `dot` and `convolution` as blocked, packed products in LLVM vectors.

Importing this package registers their kernels.
"""

from haloc.cpu.contraction import convolution, dot

__all__ = ["convolution", "dot"]
