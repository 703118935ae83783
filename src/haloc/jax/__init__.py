"""JAX on haloc: `install()` makes haloc one of JAX's platforms, or its CPU."""

from haloc.jax.compilation import compile
from haloc.jax.plugin import initialize, install

__all__ = ["compile", "initialize", "install"]
