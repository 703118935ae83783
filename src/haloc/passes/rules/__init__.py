"""Simplification rules: small, directional functions, one family a file."""
