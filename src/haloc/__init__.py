"""haloc: an XLA-compatible compiler and runtime in Python."""
