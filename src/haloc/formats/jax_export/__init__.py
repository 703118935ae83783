"""`jax.export` artifacts, read without jax: the program, its types, its pytrees, its platforms."""

from haloc.formats.jax_export.artifact import (
    Artifact,
    Aval,
    DisabledCheck,
    NamedSharding,
    is_artifact,
    read_artifact,
)
from haloc.formats.jax_export.exported import Exported, read_exported
from haloc.formats.jax_export.pytree import Custom, PyTree

__all__ = [
    "Artifact",
    "Aval",
    "Custom",
    "DisabledCheck",
    "Exported",
    "NamedSharding",
    "PyTree",
    "is_artifact",
    "read_artifact",
    "read_exported",
]
