"""The version, in the one place that says it besides pyproject.toml."""

VERSION = "0.1.0"
