"""Programs from Python: the builder that XLA's Python API had, and tracing of functions."""
