"""haloc: an XLA-compatible compiler and runtime in Python."""

from haloc.version import VERSION as __version__

__all__ = ["__version__"]
